//! `plumb agent --page-faults`: samples of page faults stand for as many as the kernel counted, of who goes on and of who is soon gone.
//!
//! Takes root, BPF and a C compiler; elsewhere a test says so and does nothing.

#![cfg(all(feature = "agent", feature = "server"))]

use crate::spun;
use std::path::Path;
use std::process::Command;

use crate::agents::{CPU, Running, figure, free_address, serve, stored_functions};
use crate::spun::folder;
use plumb_fixtures::{Requirement, needs};

const FAULTS: &str = "page_faults:page_faults:count::";

/// Runs a copy of the program, which is a service of its own. What the kernel counted for it.
fn faults_of(folder: &Path, words: &[&str]) -> f64 {
    let out = Command::new(folder.join(words[0])).args(&words[1..]).output().expect("it starts");
    assert!(out.status.success());
    let text = String::from_utf8_lossy(&out.stdout);
    text.split_whitespace().next().and_then(|faults| faults.parse().ok()).expect("a number")
}

#[test]
fn page_faults_are_as_many_as_the_kernel_counted_and_where_they_were() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-page-faults");
    for name in ["touches-alone", "touches-children"] {
        if !spun::compiled(&folder, "tests/programs/touches.c", name) {
            return;
        }
    }
    let (address, url) = free_address();
    let _server = serve(&folder, &address);
    let words =
        ["agent", "--page-faults", "--to", &url, "--spool", "spool", "--interval", "2", "--symbols", "agent"];
    let (agent, mut log) = Running::agent(&folder, &[&words[..], &["--max-cpu", "100%"]].concat());
    // At the same time, in windows of which each has some of both.
    let counted = std::thread::scope(|scope| {
        let alone = scope.spawn(|| faults_of(&folder, &["touches-alone", "600"]));
        let children = scope.spawn(|| faults_of(&folder, &["touches-children", "400", "children"]));
        [alone, children].map(|running| running.join().expect("it ran"))
    });
    agent.terminate();
    let last = log.until("stopped");
    let functions = |kind: &str, selector: &str| stored_functions(&folder, &url, kind, selector);
    let total = |kind: &str| functions(kind, "{}")["total"].as_u64().unwrap_or(0);
    // To the last one.
    let [taken, sent] = ["page_faults_taken", "page_faults_sent"].map(|name| figure(&last, name));
    assert_eq!((taken, total(FAULTS)), (sent, sent), "{last}");
    assert_eq!(total(CPU), figure(&last, "sent_ns"), "samples of processor time are apart: {last}");
    for (service, counted) in ["touches-alone", "touches-children"].into_iter().zip(counted) {
        let seen = functions(FAULTS, &format!("{{service_name=\"{service}\"}}"));
        let total = seen["total"].as_f64().expect("a number");
        let rows = seen["rows"].as_array().expect("there are rows");
        let row = rows.iter().find(|row| row["function"] == "touch_pages");
        let own = row.map_or(0.0, |row| row["self"].as_f64().expect("a number"));
        // Four standard deviations of as many samples as there are.
        let chance = 4.0 * (997.0 / counted).sqrt();
        assert!((total / counted - 1.0).abs() < chance, "{service}: {total} of {counted}: {seen}");
        let main = rows
            .iter()
            .find(|row| row["function"] == "main")
            .map_or(0.0, |row| row["total"].as_f64().expect("a number"));
        assert!(
            own > 0.8 * total && main > 0.95 * total,
            "{service}: touch_pages {own}, main {main} of {total}"
        );
    }
}

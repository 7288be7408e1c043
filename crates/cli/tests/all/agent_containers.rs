//! `plumb agent`: the CPU time of a container is attributed to its pod, even if the container is gone before it is looked up.
//!
//! Needs root, BPF and permission to create cgroups; without them, the test prints so and is skipped.

#![cfg(all(feature = "agent", feature = "server"))]

use std::path::PathBuf;
use std::process::Command;

use crate::agents::{CPU, Running, free_address, serve, stored_functions};
use crate::spun::folder;
use plumb_fixtures::{Requirement, needs, skip};
use plumb_process::procfs;

/// Directory for cgroups in the hierarchy of perf events: with version 1 its own, with version 2 the only one.
fn hierarchy() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let mounts: Vec<Vec<&str>> = mounts.lines().map(|line| line.split(' ').collect()).collect();
    let own = mounts
        .iter()
        .find(|mount| mount[2] == "cgroup" && mount[3].split(',').any(|one| one == "perf_event"));
    own.or_else(|| mounts.iter().find(|mount| mount[2] == "cgroup2")).map(|mount| PathBuf::from(mount[1]))
}

/// Cgroups that are removed at the end of the test.
struct Groups(Vec<PathBuf>);

impl Drop for Groups {
    fn drop(&mut self) {
        self.0.iter().rev().for_each(|group| drop(std::fs::remove_dir(group)));
    }
}

#[test]
fn containers_of_a_tenth_of_a_second_are_of_their_pod() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let own = std::process::id();
    let uid = format!("{own:08x}-0000-4000-8000-000000000000");
    let Some(pod) = hierarchy().map(|root| root.join(format!("pod{uid}"))) else {
        return skip(Requirement::Cgroup, "there is no hierarchy of control groups");
    };
    if let Err(error) = std::fs::create_dir(&pod) {
        return skip(Requirement::Cgroup, format_args!("{}: {error}", pod.display()));
    }
    let mut groups = Groups(vec![pod.clone()]);
    let folder = folder("agent-containers");
    let (address, url) = free_address();
    let _server = serve(&folder, &address);
    let words = ["agent", "--to", &url, "--spool", "spool", "--interval", "2", "--max-cpu", "100%"];
    let (agent, mut log) = Running::agent(&folder, &words);
    log.until(" window ");
    for number in 0..40 {
        let container = pod.join(format!("{number:064x}"));
        std::fs::create_dir(&container).expect("the group can be made");
        groups.0.push(container.clone());
        let work = "exec sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; :'";
        let script = format!("echo $$ >{}/cgroup.procs && {work}", container.display());
        let status = Command::new("sh").args(["-c", &script]).status();
        assert!(status.is_ok_and(|status| status.success()));
        // An ended process may stay in the cgroup for a moment.
        while std::fs::remove_dir(&container).is_err() {
            std::thread::yield_now();
        }
        groups.0.pop();
    }
    agent.terminate();
    log.until("stopped");
    let (_, children) = procfs::cpu_time(own).expect("it runs");
    let selector = format!("{{k8s_pod_uid=\"{uid}\"}}");
    let stored = stored_functions(&folder, &url, CPU, &selector)["total"].as_f64().expect("a number") / 1e9;
    let used = children.total().as_secs_f64();
    // Four standard errors of samples of 1/97 s each; the start of each shell is outside of the container.
    let chance = 4.0 * (used / 97.0).sqrt();
    assert!((used - stored).abs() < chance + 0.1 * used, "{stored} of {used} s are the pod's: {}", log.text);
    assert!(used > 2.0 * chance, "too little to tell: {used} s");
}

//! `plumb agent` as strace sees it: it starts no program, and writes to no file but those of its spool.
//!
//! Takes root, BPF and strace; elsewhere a test says so and does nothing.

#![cfg(all(feature = "agent", feature = "server"))]

use std::collections::{BTreeSet, HashMap};
use std::process::{Command, Stdio};

use crate::agents::{AgentLog, Running, figure, free_address, serve};
use crate::spun::folder;
use plumb_fixtures::{Requirement, needs, skip};

#[test]
fn it_starts_no_program_and_writes_nowhere_but_into_its_spool() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    if Command::new("strace").arg("--version").stdout(Stdio::null()).status().is_err() {
        skip(Requirement::Strace, "strace is not installed");
        return;
    }
    let folder = folder("agent-writes");
    let (spool, trace) = (folder.join("spool"), folder.join("trace"));
    let (address, url) = free_address();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-s", "256", "-e", "trace=%file,%process,ftruncate", "-o"]).arg(&trace);
    strace
        .args([env!("CARGO_BIN_EXE_plumb"), "agent", "--to", &url, "--interval", "1", "--spool"])
        .arg(&spool);
    let mut agent =
        Running(strace.current_dir(&folder).stderr(Stdio::piped()).spawn().expect("strace starts"));
    let mut log = AgentLog::of(&mut agent);
    // Nobody is there at first, so that requests go to disk.
    (0..4).for_each(|_| drop(log.until("window")));
    let _server = serve(&folder, &address);
    (0..6).for_each(|_| drop(log.until("window")));
    let children =
        std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", agent.0.id())).expect("strace runs");
    let killed = Command::new("kill").arg(children.trim()).status();
    assert!(killed.is_ok_and(|status| status.success()), "{children}");
    let last = log.until("stopped taken");
    assert!(figure(&last, "sent") > 0, "{last}");
    assert!(agent.0.wait().is_ok_and(|status| status.success()));
    let trace = whole_calls(&std::fs::read_to_string(&trace).expect("strace wrote it"));
    let execs = trace.iter().filter(|line| line.contains(" execve") && line.contains(" = 0"));
    assert_eq!(execs.count(), 1, "it is started, and starts nothing");
    // All of its children are threads.
    let forks = trace.iter().filter(|line| {
        line.contains(" fork(")
            || line.contains(" vfork(")
            || (line.contains(" clone") && !line.contains("CLONE_THREAD"))
    });
    assert_eq!(forks.collect::<Vec<_>>(), [""; 0]);
    let changes = [
        "O_WRONLY",
        "O_RDWR",
        "O_CREAT",
        "O_TMPFILE",
        " mkdir",
        " rename",
        " unlink",
        " rmdir",
        " link",
        " symlink",
        " truncate",
        " creat",
        " chmod",
        " fchmod",
        " chown",
    ];
    let is_change =
        |line: &&str| changes.iter().any(|change| line.contains(change)) && !line.contains(" = -1 ");
    let (inside, outside): (Vec<&str>, Vec<&str>) = trace
        .iter()
        .map(String::as_str)
        .filter(is_change)
        .partition(|line| line.contains(&spool.display().to_string()));
    let outside: BTreeSet<&str> =
        outside.into_iter().filter(|line| !line.contains("\"/dev/null\"")).collect();
    assert!(outside.is_empty(), "{outside:#?}");
    assert!(inside.iter().any(|line| line.contains("O_CREAT")), "requests went to disk");
    assert!(inside.iter().any(|line| line.contains(" unlink")), "and were sent later");
}

/// The lines of a trace, those of calls that another thread's interrupted put together.
fn whole_calls(trace: &str) -> Vec<String> {
    let (mut begun, mut calls) = (HashMap::new(), Vec::new());
    for line in trace.lines() {
        let thread = line.split(' ').next().unwrap_or_default();
        if let Some(begin) = line.strip_suffix("<unfinished ...>") {
            begun.insert(thread, begin);
        } else if let (Some((_, end)), Some(begin)) = (line.split_once(" resumed>"), begun.remove(thread)) {
            calls.push(format!("{begin}{end}"));
        } else {
            calls.push(line.to_owned());
        }
    }
    calls.extend(begun.into_values().map(str::to_owned));
    calls
}

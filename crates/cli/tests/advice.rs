//! `plumb kernel --advice`: each rule on single calls holds for a program with the habit, and not for one without.
//!
//! Needs root, BPF and a C compiler; without them, a test prints so and is skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plumb_fixtures::{Requirement, compiles, needs, skip};
use serde_json::Value;

/// Threshold of a rule: calls per second, or for lock-contention the share of the time that a thread both runs and waits. The program
/// prints what the machine let it achieve.
const NEEDS: [(&str, f64); 9] = [
    ("small-file-io", 10_000.0),
    ("lock-contention", 0.1),
    ("one-event-a-wait", 50_000.0),
    ("small-messages", 20_000.0),
    ("one-request-in-flight", 20_000.0),
    ("very-many-calls", 100_000.0),
    ("repeated-identity", 10_000.0),
    ("sigmask-storm", 10_000.0),
    ("clock-by-syscall", 1000.0),
];

/// Run time of each program in milliseconds: longer if a busy machine left it too little for a rule to hold.
const LASTS: [&str; 3] = ["300", "1200", "4000"];

/// One program at a time, as they would take the CPUs from each other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A directory with the program.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("advice-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/habits.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-pthread", "-o"]).arg(folder.join("habits")).arg(source);
    if !compiles(&mut compiler) {
        return None;
    }
    Some(folder)
}

/// The advice on a command, and the command's own figures; `None`: tracing is not possible here.
fn advice(folder: &Path, command: &[&str]) -> Option<(Value, Option<f64>)> {
    if !needs(Requirement::Bpf) {
        return None;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["kernel", "--advice", "--json", "--"])
        .args(command)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("plumb runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let result: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let had = said.lines().find_map(|line| line.strip_prefix("habit: "));
    Some((result["advice"].clone(), had.map(|had| had.parse().expect("a number"))))
}

fn rules(advice: &Value) -> Vec<String> {
    let list = advice["advice"].as_array().expect("there is a list");
    list.iter().map(|one| one["rule"].as_str().expect("it has a name").to_owned()).collect()
}

/// Whether the program had too little of the habit in all of its runs, by its own figures: then the machine is too busy,
/// and the rule is right not to hold.
fn is_kept_from(rule: &str, had: &[Option<f64>]) -> bool {
    /// Tolerance for the rule's measure of the time, which begins with the recording.
    const MARGIN: f64 = 1.2;
    let Some((_, least)) = NEEDS.iter().find(|(name, _)| *name == rule) else { return false };
    had.iter().all(|had| had.expect("the program says how much it had") < MARGIN * least)
}

/// Runs the programs of these rules.
fn hold(name: &str, tried: &[&str]) {
    let Some(folder) = folder(name) else { return };
    let _alone = alone();
    for rule in tried {
        let (mut said, mut had) = (Vec::new(), Vec::new());
        let is_seen = LASTS.iter().any(|lasts| {
            let Some((bad, own)) = advice(&folder, &["./habits", rule, "bad", lasts]) else { return false };
            said.push(bad.to_string());
            had.push(own);
            rules(&bad).iter().any(|one| one == rule)
        });
        if said.is_empty() {
            return;
        }
        if !is_seen && is_kept_from(rule, &had) {
            skip(
                Requirement::Machine,
                format_args!("{rule}, of which this machine gave the program too little: {had:?}"),
            );
            continue;
        }
        assert!(is_seen, "{rule} is not seen, of which the program had {had:?}: {said:?}");
        let refused = refused_huge_pages();
        let (good, _) =
            advice(&folder, &["./habits", rule, "good", LASTS[0]]).expect("the other could be watched");
        if *rule == "huge-pages" && refused_huge_pages() > refused {
            skip(Requirement::Machine, "huge-pages, of which this machine has none free");
            continue;
        }
        assert!(!rules(&good).iter().any(|one| one == rule), "{rule} is seen where it isn't: {good}");
    }
}

/// Page faults on this machine for which the kernel had no huge page free.
fn refused_huge_pages() -> u64 {
    let counts = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let refused = counts.lines().filter_map(|line| line.strip_prefix("thp_fault_fallback "));
    refused.filter_map(|count| count.parse::<u64>().ok()).sum()
}

#[test]
fn memory() {
    let rules = ["brk-churn", "mmap-churn", "page-faults", "huge-pages", "purged-too-soon", "mprotect-storm"];
    let huge = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let without = huge.is_empty() || huge.contains("[never]");
    if without {
        skip(Requirement::Kernel, "huge-pages, as this kernel gives none");
    }
    let tried: Vec<&str> = rules.into_iter().filter(|rule| !without || *rule != "huge-pages").collect();
    hold("memory", &tried);
}

#[test]
fn files() {
    hold("files", &["small-file-io", "seek-then-read", "copy-loop", "search-path-storm", "reopened-file"]);
    hold("listings", &["small-listing-buffer", "process-scan"]);
}

/// A file system in memory causes no waits.
#[test]
fn disks() {
    let Some(here) = folder("where") else { return };
    let kind = Command::new("stat").args(["-f", "-c", "%T", "."]).current_dir(&here).output();
    let kind = kind.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    if kind.trim() == "tmpfs" {
        skip(Requirement::Machine, "files are in memory here");
        return;
    }
    hold("disks", &["fsync-wait"]);
}

#[test]
fn waiting() {
    let waits = ["lock-contention", "yield-loop", "polling-sleep", "sleep-under-lock", "poll-of-many"];
    hold("waiting", &[&waits[..], &["busy-polling"]].concat());
    hold("events", &["one-event-a-wait", "read-without-readiness", "delayed-ack"]);
}

#[test]
fn rates() {
    hold(
        "rates",
        &["clock-by-syscall", "ioctl-cost", "small-messages", "one-request-in-flight", "very-many-calls"],
    );
    hold("others", &["repeated-identity", "sigmask-storm"]);
}

/// The gain promised for brk-churn equals the savings when the heap is not released any more.
#[test]
fn a_promise_is_kept() {
    let Some(folder) = folder("promise") else { return };
    let _alone = alone();
    // Each run does the same amount of work.
    let Some((advised, _)) = advice(&folder, &["./habits", "brk-rounds", "bad", "150"]) else { return };
    let list = advised["advice"].as_array().expect("there is a list");
    let churn = list.iter().find(|one| one["rule"] == "brk-churn").expect("it is seen");
    let promised = churn["cpu_percent"].as_f64().expect("a number") / 100.0;
    // CPU time of the program, and the kernel's part of it.
    let cpu = |habit: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(["stat", "-n", "9", "--no-calls", "--json", "--", "./habits", "brk-rounds", habit, "150"])
            .current_dir(&folder)
            .output()
            .expect("plumb runs");
        let said = String::from_utf8_lossy(&output.stderr);
        let result: Value = serde_json::from_str(&said).expect("it is JSON");
        let all = result["metrics"]["cpu_ns"]["median"].as_f64().expect("a number");
        (all, all * result["modes"]["kernel_share"].as_f64().expect("it is sampled"))
    };
    let (bad, good) = (cpu("bad"), cpu("good"));
    let (saved, by_kernel) = ((bad.0 - good.0) / bad.0, (bad.1 - good.1) / bad.0);
    println!("promised {promised:.3}, saved {saved:.3}, by the kernel {by_kernel:.3}");
    // The bound covers calls and faults. User code gains in addition: its memory stays in the caches.
    assert!(by_kernel <= promised + 0.08, "at most {promised} was promised, {by_kernel} saved");
    assert!(saved >= 0.7 * promised, "{promised} was promised, {saved} saved");
}

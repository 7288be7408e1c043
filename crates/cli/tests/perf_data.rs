//! Other commands on a perf.data, as a user runs them. Needs perf; if it can't record, a test prints so and is
//! skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plumb_fixtures::{Requirement, needs};

/// A perf.data with stack copies, in a directory for a test of this name.
fn perf_data(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    if !needs(Requirement::PerfCommand) {
        return None;
    }
    let data = folder.join("perf.data");
    let burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let recorded = Command::new("perf")
        .args(["record", "-q", "-e", "cpu-clock:u", "-F", "999", "--call-graph=dwarf,1024", "-o"])
        .arg(&data)
        .args(["--", "sh", "-c", burn])
        .stdin(Stdio::null())
        .output();
    let output = recorded.expect("it was started before");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(data)
}

fn report(data: &Path) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_plumb")).args(["report", "--json"]).arg(data).output();
    let output = output.expect("plumb runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

#[test]
fn stacks_of_another_architecture_are_not_read_as_those_of_this_one() {
    let Some(data) = perf_data("architecture") else { return };
    let own = report(&data);
    // Change the architecture name in perf's header.
    let mut bytes = std::fs::read(&data).expect("perf wrote it");
    let (here, there) = (b"x86_64\0\0", b"aarch64\0");
    let places: Vec<usize> =
        (0..bytes.len() - here.len()).filter(|&at| bytes[at..].starts_with(here)).collect();
    assert!(!places.is_empty(), "perf names the architecture");
    places.into_iter().for_each(|at| bytes[at..at + there.len()].copy_from_slice(there));
    std::fs::write(&data, bytes).expect("the folder is there");
    let other = report(&data);
    let samples =
        |report: &serde_json::Value| report["reports"][0]["kept_samples"].as_u64().expect("a count");
    assert!(samples(&own) > 0);
    assert_eq!(samples(&other), samples(&own), "every sample is counted");
    let causes = |report: &serde_json::Value| report["reports"][0]["cut_causes"].to_string();
    assert!(causes(&other).contains("other-architecture"), "it says why: {}", causes(&other));
    assert!(!causes(&own).contains("other-architecture"), "{}", causes(&own));
    assert_eq!(other["reports"][0]["complete_percent"], 0.0);
}

//! Probes of functions that begin in different ways: wherever a probe is put, each call is counted once, and its stack is whole.
//!
//! Needs root, uprobes and a C compiler: where one is missing a test says so and does nothing.

use crate::spun::{compiled, folder, plumb, succeeds, text};
use plumb_fixtures::{Requirement, needs};
use serde_json::Value;

/// Functions, and whether the kernel single-steps the probe of each on x86-64.
const FUNCTIONS: [(&str, bool); 6] = [
    ("pushes", false),
    ("tests", false),
    ("moves", false),
    ("loops", true),
    ("reads", true),
    ("jumped_to", true),
];

#[test]
fn each_call_is_counted_once_wherever_the_probe_is() {
    let folder = folder("probes");
    if !cfg!(target_arch = "x86_64")
        || !needs(Requirement::Root)
        || !needs(Requirement::Perf)
        || !compiled(&folder, "tests/programs/probes.c", "probes")
    {
        return;
    }
    for capture in ["perf", "bpf"] {
        if capture == "bpf" && !needs(Requirement::Bpf) {
            continue;
        }
        let events = FUNCTIONS.map(|(function, _)| format!("uprobe:./probes:{function}")).join(",");
        let recorded =
            plumb(&folder, &["record", "--capture", capture, "-e", &events, "--", "./probes", "100"]);
        let said = text(&recorded.stderr);
        assert!(recorded.status.success(), "{said}");
        let report: Value =
            serde_json::from_str(&succeeds(&folder, &["report", "--json"])).expect("it is JSON");
        for (function, is_stepped) in FUNCTIONS {
            let event = format!("uprobe:./probes:{function}");
            let reports = report["reports"].as_array().expect("there are reports");
            let shown = reports.iter().find(|report| report["event"] == *event).expect("each event has one");
            assert_eq!(
                (&shown["weight"], &shown["complete_percent"]),
                (&100.into(), &100.0.into()),
                "{event}"
            );
            let stacks = succeeds(&folder, &["script", "-F", "sym", "--event", &event]);
            let with =
                stacks.split("\n\n").filter(|one| one.contains(function) && one.contains("main")).count();
            assert_eq!(with, 100, "{event}");
            assert_eq!(
                said.contains(&format!("{event}: the kernel single-steps")),
                is_stepped,
                "{event}: {said}"
            );
        }
    }
}

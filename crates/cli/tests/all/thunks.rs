//! Stacks through code whose call-frame information is wrong: no stack that lacks its outer frames is called complete.
//!
//! The program's own calls are the truth. Needs perf_event_open and gcc; without them, the test prints so and is skipped.

use std::process::Command;

use crate::spun::{folded, folder, may_record, plumb, text};
use plumb_fixtures::{Requirement, needs, skip};

#[test]
fn a_frame_with_wrong_rules_does_not_end_a_complete_stack() {
    let folder = folder("thunks");
    if !cfg!(target_arch = "x86_64") || !may_record() {
        return;
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/thunks.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-fomit-frame-pointer", "-fcf-protection=none", "-mindirect-branch=thunk-inline"]);
    let built = gcc.arg("-mfunction-return=thunk-inline").arg("-o").arg(folder.join("thunks")).arg(source);
    if !built.status().is_ok_and(|status| status.success()) {
        return skip(Requirement::Cc, "gcc with thunks for indirect branches");
    }
    for capture in ["perf", "bpf"] {
        if capture == "bpf" && !needs(Requirement::Bpf) {
            continue;
        }
        let arguments = ["record", "--user-only", "--capture", capture, "-o", "a.plumb", "--", "./thunks"];
        let output = plumb(&folder, &arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let (mut all, mut right) = (0, 0);
        for (stack, count) in folded(&folder, "a.plumb") {
            if !stack.ends_with(";leaf") {
                continue;
            }
            let is_cut = stack.contains(";[");
            all += count;
            right += if is_cut || stack.contains("_start;") && stack.contains(";main;calls;leaf") {
                count
            } else {
                0
            };
        }
        assert!(all > 50 && right * 100 >= all * 98, "{capture}: {right} of {all}");
    }
}

//! Stacks of more frames than are kept, and copies of stacks that end early: they are cut, and that is said with its reason, unless more can be had.
//!
//! Needs perf_event_open, BPF for some, and gcc: where they are missing a test says so and does nothing.

use crate::spun::{compiled, folded, folder, may_record, plumb, succeeds, text};
use plumb_fixtures::{Requirement, needs};

#[test]
fn a_stack_of_more_frames_than_are_kept_is_cut_there() {
    if !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("more-frames-than-are-kept");
    if !compiled(&folder, "tests/programs/deep.c", "deep") {
        return;
    }
    let output =
        plumb(&folder, &["record", "--user-only", "--capture", "bpf", "-o", "deep.plumb", "--", "./deep"]);
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains("frame limit reached"), "{said}");
    let (mut all, mut kept) = (0, 0);
    for (stack, count) in folded(&folder, "deep.plumb") {
        all += count;
        let is_cut = stack.starts_with("deep;[frame limit reached];deeper;");
        // And the process, the reason.
        kept += if is_cut && stack.split(';').count() == 4096 + 2 { count } else { 0 };
    }
    // Until the kernel has the tables, stacks are copied.
    assert!(all > 100 && kept * 10 > all * 8, "{kept} of {all}: {said}");
}

/// The kernel's copy of a stack ends at a page that was never touched. Later copies do not, as plumb has read that page.
#[test]
fn copies_reach_beyond_pages_that_the_program_never_touched() {
    let folder = folder("never-touched");
    if !may_record() || !compiled(&folder, "tests/programs/untouched.c", "untouched") {
        return;
    }
    succeeds(&folder, &["record", "--user-only", "--capture", "perf", "-o", "u.plumb", "--", "./untouched"]);
    let (mut all, mut whole) = (0, 0);
    for (stack, count) in folded(&folder, "u.plumb") {
        if stack.ends_with(";roomy;works") {
            all += count;
            whole += if stack.ends_with(";__libc_start_call_main;main;roomy;works") { count } else { 0 };
        }
    }
    // Stacks of the beginning are cut.
    assert!(all > 100 && whole * 100 >= all * 70, "{whole} of {all}");
}

//! Stacks of more frames than are kept: they are cut, and that is said with its reason.
//!
//! Needs BPF and gcc: where they are missing the test says so and does nothing.

mod spun;

use plumb_fixtures::{Requirement, needs};
use spun::{compiled, folded, folder, plumb, text};

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

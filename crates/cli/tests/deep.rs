//! Stacks of more frames than are kept: they are cut, and that is said with its reason.
//!
//! Needs BPF and gcc: where they are missing the test says so and does nothing.

mod spun;

use std::process::Command;

use plumb_fixtures::{Requirement, compiles, needs};
use spun::{folder, plumb, succeeds, text};

/// 20,000 calls below each other.
const RECURSION: &str = "volatile unsigned long sink;
__attribute__((noinline)) void spin(void) { for (long i = 0; i < 1000000000; i++) sink += i; }
__attribute__((noinline)) void deeper(int left) { if (left) deeper(left - 1); else spin(); sink++; }
int main(void) { deeper(20000); return 0; }
";

#[test]
fn a_stack_of_more_frames_than_are_kept_is_cut_there() {
    if !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("more-frames-than-are-kept");
    std::fs::write(folder.join("deep.c"), RECURSION).expect("a file in the folder");
    let mut gcc = Command::new("gcc");
    if !compiles(gcc.args(["-O1", "-fno-inline", "-o"]).arg(folder.join("deep")).arg(folder.join("deep.c"))) {
        return;
    }
    let output = plumb(&folder, &["record", "--user-only", "--capture", "bpf", "--", "./deep"]);
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains("frame limit reached"), "{said}");
    let (mut all, mut kept) = (0, 0);
    for line in succeeds(&folder, &["fold"]).lines() {
        let (stack, count) = line.rsplit_once(' ').expect("a line of folded stacks");
        let count: u64 = count.parse().expect("a count");
        all += count;
        let is_cut = stack.starts_with("deep;[frame limit reached];deeper;");
        // And the process, the reason.
        kept += if is_cut && stack.split(';').count() == 4096 + 2 { count } else { 0 };
    }
    // Until the kernel has the tables, stacks are copied.
    assert!(all > 100 && kept * 10 > all * 8, "{kept} of {all}: {said}");
}

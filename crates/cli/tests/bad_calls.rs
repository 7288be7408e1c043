//! Calls of addresses at which there is no code, from which a signal handler has been called: whoever made them is a caller.
//!
//! Needs perf_event_open and gcc: where they are missing the test says so and does nothing.

mod spun;

use std::process::Command;

use plumb_fixtures::{Requirement, compiles, needs};
use spun::{folder, may_record, plumb, succeeds, text};

const NULL_CALL: &str = "#include <signal.h>
#include <stdlib.h>
volatile unsigned long sink;
__attribute__((noinline)) void spin(void) { for (long i = 0; i < 400000000; i++) sink += i; }
static void handler(int signal) { spin(); _Exit(0); }
void (*volatile nothing)(void);
__attribute__((noinline)) void calls_nothing(void) { nothing(); sink++; }
int main(void) { signal(SIGSEGV, handler); calls_nothing(); return 0; }
";

#[test]
fn who_called_a_null_pointer_is_its_caller() {
    let folder = folder("null-call");
    std::fs::write(folder.join("null.c"), NULL_CALL).expect("a file in the folder");
    let mut gcc = Command::new("gcc");
    let is_built = compiles(gcc.args(["-O1", "-o"]).arg(folder.join("null")).arg(folder.join("null.c")));
    if !is_built || !may_record() {
        return;
    }
    for capture in ["perf", "bpf"] {
        if capture == "bpf" && !needs(Requirement::Bpf) {
            continue;
        }
        let output = plumb(&folder, &["record", "--user-only", "--capture", capture, "--", "./null"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let (mut all, mut right) = (0, 0);
        for line in succeeds(&folder, &["fold"]).lines() {
            let (stack, count) = line.rsplit_once(' ').expect("a line of folded stacks");
            let count: u64 = count.parse().expect("a count");
            let is_right = stack.ends_with(";main;calls_nothing;[0x0];<signal handler called>;handler;spin");
            all += count;
            right += if is_right && stack.starts_with("null;_start;") { count } else { 0 };
        }
        assert!(all > 50 && right * 100 >= all * 95, "{capture}: {right} of {all}");
    }
}

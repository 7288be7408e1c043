//! Calls to addresses without code, from which a signal handler is called: the function that made the call is a caller.
//!
//! Needs perf_event_open and gcc; without them, the test prints so and is skipped.

mod spun;

use plumb_fixtures::{Requirement, needs};
use spun::{compiled, folded, folder, may_record, plumb, text};

#[test]
fn who_called_a_null_pointer_is_its_caller() {
    let folder = folder("null-call");
    if !may_record() || !compiled(&folder, "tests/programs/null_call.c", "null") {
        return;
    }
    for capture in ["perf", "bpf"] {
        if capture == "bpf" && !needs(Requirement::Bpf) {
            continue;
        }
        let output = plumb(
            &folder,
            &["record", "--user-only", "--capture", capture, "-o", "null.plumb", "--", "./null"],
        );
        assert!(output.status.success(), "{}", text(&output.stderr));
        let (mut all, mut right) = (0, 0);
        for (stack, count) in folded(&folder, "null.plumb") {
            let is_right = stack.ends_with(";main;calls_nothing;0x0;<signal handler called>;handler;spin");
            all += count;
            right += if is_right && stack.starts_with("null;_start;") { count } else { 0 };
        }
        assert!(all > 50 && right * 100 >= all * 95, "{capture}: {right} of {all}");
    }
}

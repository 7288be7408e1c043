//! Calls to addresses without code, from which a signal handler is called: the function that made the call is a caller.
//!
//! Needs perf_event_open and gcc; without them, the test prints so and is skipped.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::spun::{compiled, folded, folder, may_record, plumb, text};
use crate::target::Target;
use plumb_fixtures::{Requirement, needs};

/// Records the program with these arguments; the number of samples, of those with the call and its callers, and of copies that lack them.
fn recorded(folder: &Path, capture: &str, arguments: &[&str]) -> (u64, u64, u64) {
    let options = ["record", "--user-only", "--capture", capture, "-o", "null.plumb", "--", "./null"];
    let output = plumb(folder, &[&options, arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (mut all, mut right, mut copied) = (0, 0, 0);
    for (stack, count) in folded(folder, "null.plumb") {
        let (callers, callees) = stack.split_once(";main;calls_nothing;").unwrap_or_default();
        let (called, handler) = callees.split_once(';').unwrap_or_default();
        let is_called = called.starts_with("0x") && (called == "0x0") != arguments.contains(&"data");
        let is_right = callers.starts_with("null;_start;")
            && is_called
            && handler == "<signal handler called>;handler;spin";
        all += count;
        right += if is_right { count } else { 0 };
        copied += if stack.contains("[callers on another stack, which was not copied]") { count } else { 0 };
    }
    (all, right, copied)
}

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
        let (all, right, _) = recorded(&folder, capture, &[]);
        assert!(all > 50 && right * 100 >= all * 95, "{capture}: {right} of {all}");
    }
}

/// A copy of the handler's stack has no caller; the kernel's walker goes on to the other stack.
#[test]
fn who_called_no_code_is_its_caller_below_a_handler_on_a_stack_of_its_own() {
    let folder = folder("null-call-other-stack");
    if !may_record() || !needs(Requirement::Bpf) || !compiled(&folder, "tests/programs/null_call.c", "null") {
        return;
    }
    for called in ["null", "data"] {
        let (all, right, copied) = recorded(&folder, "bpf", &[called, "own-stack"]);
        assert!(all > 50 && (right + copied) * 100 >= all * 95, "{called}: {right} and {copied} of {all}");
        // Copied until the kernel has the tables, which takes longer on a busy machine.
        assert!(right > copied, "{called}: {right} of {all}");
    }
}

/// The return address of such a call is on top of the stack, however that is aligned: in the handler, and where the call has just failed.
#[test]
fn a_call_of_a_null_pointer_need_not_align_the_stack() {
    let folder = folder("null-call-unaligned");
    if !may_record() || !compiled(&folder, "tests/programs/null_call_unaligned.c", "null") {
        return;
    }
    for capture in ["perf", "bpf"] {
        if capture == "bpf" && !needs(Requirement::Bpf) {
            continue;
        }
        let arguments = ["record", "-F", "2000", "--capture", capture, "-o", "null.plumb", "--", "./null"];
        let output = plumb(&folder, &arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let (mut all, mut right, mut at_once) = (0, 0, 0);
        for (stack, count) in folded(&folder, "null.plumb") {
            all += count;
            let Some((callers, callees)) = stack.split_once(";main;calls_unaligned;0x0") else { continue };
            right += if callers.starts_with("null;_start") { count } else { 0 };
            at_once += if callees.contains("handler") { 0 } else { count };
        }
        assert!(all > 50 && right * 100 >= all * 95, "{capture}: {right} of {all}");
        assert!(at_once > 0, "{capture}: no sample of a failed call");
    }
    if needs(Requirement::Ptrace) {
        let program = folder.join("null");
        let target = Target(Command::new(program).spawn().expect("it starts"));
        std::thread::sleep(Duration::from_millis(200));
        let output = plumb(&folder, &["stack", "-p", &target.pid()]);
        let shown = text(&output.stdout);
        let names: Vec<&str> = shown.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
        assert!(names.join(" ").contains("?? calls_unaligned main __libc_start"), "{shown}");
    }
}

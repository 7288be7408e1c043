//! Labels of kernel time causes and programs in texts for people.

use plumb_analyze::{Cause, Program};
use plumb_profile::Event;

/// Returns the label of a cause of CPU time; a system call's name for a system call.
pub fn cause(cause: Cause, name: &str) -> &str {
    match cause {
        Cause::User => "user code",
        Cause::Call => name,
        Cause::Fault => "page faults",
        Cause::Fork => "fork",
        Cause::Exec => "exec",
        Cause::Exit => "exit",
        Cause::Interrupt => "interrupts",
        Cause::Thread => "kernel threads",
        Cause::Entry => "entry to and return from system calls",
        Cause::Idle => "idle",
        Cause::Other => "other",
    }
}

/// Returns the name of a thread's reason to wait; `event` is `off-cpu` or `run-queue`. A thread blocks in the kernel: if an off-CPU stack has no kernel
/// frame, kernel frames were not recorded.
pub fn wait<'a>(event: &str, of: Cause, name: &'a str) -> &'a str {
    match of {
        Cause::User if event == Event::OFF_CPU => "no stack recorded",
        of => cause(of, name),
    }
}

/// Formats a number of samples with its noun.
pub fn samples(count: u64) -> String {
    if count == 1 { "1 sample".into() } else { format!("{count} samples") }
}

/// Returns the label of a program: its file, the script that it runs, and whether it is only forked.
pub fn program(one: &Program<'_>, full: bool) -> String {
    let mut text = match (full, one.exe) {
        (true, exe) if !exe.is_empty() => exe.to_owned(),
        _ => one.name().to_owned(),
    };
    // The kernel truncates names to 15 bytes.
    let is_cut = one.comm.len() >= 15 && one.name().starts_with(one.comm);
    if one.comm != one.name() && !one.comm.is_empty() && !is_cut {
        text.push_str(&format!(" ({})", one.comm));
    }
    if text.is_empty() {
        text.push_str("[unnamed process]");
    }
    if one.forked {
        text.push_str(" [forked]");
    }
    text
}

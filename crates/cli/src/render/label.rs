//! What rows are called: causes of kernel time, programs, stacks in one line.

use plumb_analyze::{Cause, Filter, NodeId, Program, View, without_parameters};
use plumb_profile::Meta;

use crate::terminal::printable;

/// Frames of a stack in one line; of more those in the middle are left out.
const FRAMES: usize = 12;

/// What people call a cause of processor time; a system call by its name.
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

/// The name of what a thread waited for; `event` is `off-cpu` or `run-queue`. A thread blocks in the kernel: if an off-CPU stack has no kernel
/// frame, it was not recorded.
pub fn wait<'a>(event: &str, of: Cause, name: &'a str) -> &'a str {
    match of {
        Cause::User if event == "off-cpu" => "no stack recorded",
        of => cause(of, name),
    }
}

/// Samples that the kernel dropped: of which part of a recording is not known.
pub fn lost(meta: &Meta, filter: &Filter) -> String {
    match meta.lost_samples {
        lost if lost == 0 || filter.is_whole() => format!("{lost} lost"),
        lost => format!("{lost} lost in the whole recording"),
    }
}

/// So many samples.
pub fn samples(count: u64) -> String {
    if count == 1 { "1 sample".into() } else { format!("{count} samples") }
}

/// What a program is called: its file, the script that it runs, and whether it is only forked.
pub fn program(one: &Program<'_>, full: bool) -> String {
    let mut text = match (full, one.exe) {
        (true, exe) if !exe.is_empty() => exe.to_owned(),
        _ => one.name().to_owned(),
    };
    // The kernel cuts names after 15 bytes.
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
    printable(&text).into_owned()
}

/// A stack in one line, innermost function first. `full`: however long it is.
pub fn stack(view: &View<'_>, node: NodeId, full: bool) -> String {
    let names: Vec<String> =
        view.stack(node).map(|frame| printable(without_parameters(&frame.name)).into_owned()).collect();
    match names.len() > FRAMES && !full {
        true => format!("{} < … < {}", names[..FRAMES - 2].join(" < "), names[names.len() - 1]),
        false => names.join(" < "),
    }
}

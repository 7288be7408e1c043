//! What rows are called: causes of kernel time, programs, stacks in one line.

use plumb_analyze::{Cause, Filter, NodeId, Program, View, without_parameters};
use plumb_profile::Meta;

use crate::terminal::printable;

pub use plumb_report::label::{cause, samples};

/// Frames of a stack in one line; of more those in the middle are left out.
const FRAMES: usize = 12;

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

/// What a program is called ([`plumb_report::label::program`]), without what would steer a terminal.
pub fn program(one: &Program<'_>, full: bool) -> String {
    printable(&plumb_report::label::program(one, full)).into_owned()
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

//! Names of rows: causes of kernel time, programs, stacks in one line.

use plumb_analyze::{Filter, NodeId, Program, View, without_parameters};
use plumb_profile::Meta;

use crate::terminal::printable;

pub use plumb_documents::label::{cause, samples};

/// Most frames of a stack in one line; others are left out of the middle.
const FRAMES: usize = 12;

/// Number of samples that the kernel dropped: their place in the recording is unknown.
pub fn lost(meta: &Meta, filter: &Filter) -> String {
    match meta.lost_samples {
        lost if lost == 0 || filter.is_whole() => format!("{lost} lost"),
        lost => format!("{lost} lost in the whole recording"),
    }
}

/// The name of a program ([`plumb_documents::label::program`]), without terminal control characters.
pub fn program(one: &Program<'_>, full: bool) -> String {
    printable(&plumb_documents::label::program(one, full)).into_owned()
}

/// A stack in one line, innermost function first. `full`: without a limit.
pub fn stack(view: &View<'_>, node: NodeId, full: bool) -> String {
    let names: Vec<String> =
        view.stack(node).map(|frame| printable(without_parameters(&frame.name)).into_owned()).collect();
    match names.len() > FRAMES && !full {
        true => format!("{} < … < {}", names[..FRAMES - 2].join(" < "), names[names.len() - 1]),
        false => names.join(" < "),
    }
}

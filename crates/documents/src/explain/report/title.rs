//! Of whom the report is: the command, the file, the machine, or the programs that were recorded.

use std::path::Path;

use plumb_analyze::Explanation;
use plumb_profile::Scope;

use crate::label;

/// Programs that are named.
const NAMED: usize = 3;

/// `file`: the recording that it is of, unless that was made for it.
pub(super) fn of(report: &Explanation<'_>, file: Option<&Path>) -> String {
    let meta = &report.view.profile().meta;
    match file {
        _ if !meta.command.is_empty() => meta.command.join(" "),
        Some(file) => file.display().to_string(),
        None if meta.scope == Scope::System => "the whole machine".to_owned(),
        None => {
            let programs = report.procs.programs.iter().take(NAMED);
            let names: Vec<String> = programs.map(|program| label::program(program, false)).collect();
            if names.is_empty() {
                "a program that was never seen to run".to_owned()
            } else {
                names.join(", ")
            }
        }
    }
}

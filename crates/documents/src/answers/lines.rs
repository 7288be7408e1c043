//! Source lines of a function as known from the profile itself, if its files are on another machine.

use std::collections::HashMap;

use plumb_analyze::{Cost, View};

use super::AnswerError;

/// Note added to every such listing.
const NOTE: &str = "lines only: instructions and the text of lines are in files of the machine that was profiled; \
                    for these run plumb annotate FUNCTION on a recording there";

/// Returns the lines with own samples of a function, as a listing without instructions.
pub(super) fn document<'a>(
    view: &'a View<'_>,
    name: &'a str,
    file: Option<&str>,
) -> Result<LinesDocument<'a>, AnswerError> {
    let mut lines: HashMap<(&str, u32), Cost> = HashMap::new();
    let (mut own, mut path) = (Cost::default(), "");
    for (_, node, cost) in view.costs() {
        let frame = view.frame(view.node(node).frame);
        if frame.name != name || file.is_some_and(|file| file != frame.dso_path) {
            continue;
        }
        own += cost;
        path = frame.dso_path;
        *lines.entry((frame.file, frame.line)).or_default() += cost;
    }
    if own.samples == 0 {
        let message =
            format!("no sample of the selection is in {name:?} itself; see Table for what it calls");
        return Err(AnswerError::NotFound(message));
    }
    let unknown = lines.remove(&("", 0)).unwrap_or_default();
    let mut sorted: Vec<((&str, u32), Cost)> = lines.into_iter().collect();
    sorted.sort_by_key(|&(place, cost)| (std::cmp::Reverse(cost.weight), place));
    let mut notes = vec![NOTE.to_owned()];
    if unknown.samples > 0 {
        let share = unknown.percent_of(own);
        notes.push(format!("{share:.1}% of the function's samples have no line: build it with -g1 or -g"));
    }
    let lines = sorted.into_iter().map(|row| ListedPlace::new(view, name, own, row)).collect();
    Ok(LinesDocument::new(view, (name, path), own, lines, notes))
}

document! {
    /// A listing without instructions.
    pub(super) struct LinesDocument<'a> as "LinesListing" of (
        view: &View<'_>,
        function: (&'a str, &'a str),
        own: Cost,
        lines: Vec<ListedPlace<'a>>,
        notes: Vec<String>,
    ) {
        version: u32 = crate::JSON_VERSION,
        function: &'a str = function.0,
        file: &'a str = function.1,
        code: &'static str = "",
        adjusted: bool = false,
        weight: u64 = own.weight,
        samples: u64 = own.samples,
        percent_of_all: f64 = own.percent_of(view.whole()),
        instructions: [u64; 0] = [],
        lines: Vec<ListedPlace<'a>> = lines,
        notes: Vec<String> = notes,
    }
}

document! {
    /// A line of the listing.
    pub(super) struct ListedPlace<'a> as "ListedPlace" of (
        view: &View<'_>,
        function: &'a str,
        own: Cost,
        row: ((&'a str, u32), Cost),
    ) {
        function: &'a str = function,
        file: &'a str = row.0.0,
        line: u32 = row.0.1,
        text: Option<&'a str> = None,
        weight: u64 = row.1.weight,
        samples: u64 = row.1.samples,
        percent_of_function: f64 = row.1.percent_of(own),
        percent_of_all: f64 = row.1.percent_of(view.whole()),
        adjusted_percent_of_function: f64 = row.1.percent_of(own),
    }
}

//! Source lines of a function as known from the profile itself, if its files are on another machine.

use std::collections::HashMap;

use plumb_analyze::{Cost, View};
use serde_json::{Value, json};

use super::AnswerError;

/// Note added to every such listing.
const NOTE: &str = "lines only: instructions and the text of lines are in files of the machine that was profiled; \
                    for these run plumb annotate FUNCTION on a recording there";

/// Returns the lines with own samples of a function, as a listing without instructions.
pub(super) fn document(view: &View<'_>, name: &str, file: Option<&str>) -> Result<Value, AnswerError> {
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
    let row = |((file, line), cost): ((&str, u32), Cost)| {
        json!({
            "function": name,
            "file": file,
            "line": line,
            "text": null,
            "weight": cost.weight,
            "samples": cost.samples,
            "percent_of_function": cost.percent_of(own),
            "percent_of_all": cost.percent_of(view.whole()),
            "adjusted_percent_of_function": cost.percent_of(own),
        })
    };
    let mut notes = vec![NOTE.to_owned()];
    if unknown.samples > 0 {
        let share = unknown.percent_of(own);
        notes.push(format!("{share:.1}% of the function's samples have no line: build it with -g1 or -g"));
    }
    Ok(json!({
        "version": crate::JSON_VERSION,
        "function": name,
        "file": path,
        "code": "",
        "adjusted": false,
        "weight": own.weight,
        "samples": own.samples,
        "percent_of_all": own.percent_of(view.whole()),
        "instructions": [],
        "lines": sorted.into_iter().map(row).collect::<Vec<_>>(),
        "notes": notes,
    }))
}

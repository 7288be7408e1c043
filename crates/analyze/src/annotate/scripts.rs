//! Functions of interpreted programs, line by line: they have no machine code of their own, and their frames say the line.

use std::collections::{BTreeMap, HashMap};

use plumb_profile::{Address, DsoKind, FunctionId, InstructionSet};

use super::{AnnotatedRow, Annotation, Listing, SampledFunction, SourcePlace};
use crate::cost::Cost;
use crate::frame::ViewFrame;
use crate::pattern::Pattern;
use crate::view::View;

/// The function of a visible frame, if that is one of an interpreted program with a source file.
fn script(view: &View<'_>, frame: &ViewFrame<'_>) -> Option<FunctionId> {
    let is_script = |dso| view.profile().dsos[dso].kind == DsoKind::Script;
    frame.function.filter(|_| frame.dso.is_some_and(is_script) && !frame.file.is_empty())
}

/// The functions of interpreted programs on sampled stacks that `function` names, in a source file that `module` names: most expensive
/// first. Without `function`: those with samples of their own.
pub fn sampled_scripts(
    view: &View<'_>,
    function: Option<&Pattern>,
    module: Option<&Pattern>,
) -> Vec<SampledFunction> {
    let profile = view.profile();
    let mut found: HashMap<FunctionId, SampledFunction> = HashMap::new();
    for (_, node, cost) in view.costs() {
        for (depth, frame) in view.stack(node).enumerate() {
            let Some(id) = script(view, frame) else { continue };
            let is_wanted = function.is_none_or(|function| function.matches_function(&frame.name))
                && module.is_none_or(|module| module.matches_path(frame.file));
            if !is_wanted || (depth > 0 && function.is_none()) {
                continue;
            }
            let (Some(dso), start) = (frame.dso, profile.symbols.functions[id].start) else { continue };
            let entry = found.entry(id).or_insert_with(|| SampledFunction {
                name: frame.name.clone().into_owned(),
                dso,
                path: frame.file.to_owned(),
                start,
                address: start.unwrap_or(Address(0)),
                extent: None,
                own: Cost::default(),
                inlined: Vec::new(),
            });
            if depth == 0 {
                entry.own += cost;
            }
        }
    }
    let mut functions: Vec<SampledFunction> = found.into_values().collect();
    functions.sort_by_key(|one| (std::cmp::Reverse(one.own.weight), one.dso, one.start));
    functions
}

impl SampledFunction {
    /// Whether it is a function of an interpreted program.
    pub fn is_script(&self, view: &View<'_>) -> bool {
        view.profile().dsos[self.dso].kind == DsoKind::Script
    }
}

impl Annotation {
    /// Annotates the lines of a function of an interpreted program: a row for each, without instructions.
    pub fn of_script(view: &View<'_>, function: &SampledFunction) -> Annotation {
        let profile = view.profile();
        let is_it = |frame: &ViewFrame<'_>| {
            let id = script(view, frame);
            id.is_some_and(|id| {
                frame.dso == Some(function.dso) && profile.symbols.functions[id].start == function.start
            })
        };
        let mut lines: BTreeMap<(&str, u32), AnnotatedRow> = BTreeMap::new();
        let mut own = Cost::default();
        for (_, node, cost) in view.costs() {
            let mut counted = Vec::new();
            for (depth, frame) in view.stack(node).enumerate().filter(|(_, frame)| is_it(frame)) {
                let row = lines.entry((frame.file, frame.line)).or_default();
                if depth == 0 {
                    row.own += cost;
                    own += cost;
                    counted.push(frame.line);
                } else if !counted.contains(&frame.line) {
                    // A function that calls itself is on the stack more than once.
                    counted.push(frame.line);
                    row.called += cost;
                }
            }
        }
        let rows = lines.into_iter().map(|((file, line), row)| {
            let place = SourcePlace { function: function.name.clone(), file: file.to_owned(), line };
            AnnotatedRow { adjusted: row.own.weight as f64, places: vec![place], ..row }
        });
        Annotation {
            rows: rows.collect(),
            listing: Listing::decode(Address(0), &[], InstructionSet::X86_64),
            own,
            outside: Cost::default(),
            whole: view.whole(),
            is_adjusted: false,
        }
    }
}

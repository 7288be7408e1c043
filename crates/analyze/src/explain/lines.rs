//! Lines of the user's own code by the library calls they make, for time that no rule explains.

use std::collections::HashMap;

use crate::cost::Cost;
use crate::frame::{FrameIndex, Kind};
use crate::own_code::{FrameCosts, OwnCode, SourceLine, source_line};
use crate::view::{NodeId, View};

/// Lines below this share of the total, in percent, are not reported.
const LEAST_PERCENT: f64 = 25.0;
/// Interpreter loops and call trampolines, which are skipped between a line and its callee.
const HAND_ON: [&str; 9] = [
    "_PyEval_",
    "PyEval_",
    "PyObject_",
    "_PyObject_",
    "_PyFunction_",
    "PyVectorcall_",
    "method_vectorcall",
    "cfunction_",
    "vectorcall_",
];

/// A line and its callees.
#[derive(Clone, Debug)]
pub struct CallingLine {
    /// The line.
    pub frame: FrameIndex,
    /// Cost of its calls into code that is not the user's, without user code that these call back.
    pub cost: Cost,
    /// Callees and their costs, most expensive first.
    pub calls: Vec<(FrameIndex, Cost)>,
}

impl CallingLine {
    /// Returns the lines whose calls took a large share of the total, most expensive first.
    pub(super) fn of(view: &View<'_>, own: &OwnCode) -> Vec<Self> {
        let entries = entries(view, own);
        let mut lines: HashMap<SourceLine<'_>, Self> = HashMap::new();
        let mut calls: HashMap<SourceLine<'_>, FrameCosts<(&str, &str)>> = HashMap::new();
        for (_, node, cost) in view.costs_by(|_| 0) {
            let Some((entry, user)) = entries[node.index()].zip(own.innermost(node)) else { continue };
            let (frame, called) = (view.node(user).frame, view.node(entry).frame);
            let key = source_line(view, frame);
            let line =
                lines.entry(key).or_insert(CallingLine { frame, cost: Cost::default(), calls: Vec::new() });
            line.cost += cost;
            line.frame = line.frame.min(frame);
            let shown = view.frame(called);
            calls.entry(key).or_default().add((&*shown.name, shown.dso_path), called, cost);
        }
        let mut lines: Vec<Self> = lines
            .into_iter()
            .map(|(key, line)| Self { calls: calls.remove(&key).unwrap_or_default().first(), ..line })
            .filter(|line| line.cost.percent_of(view.whole()) >= LEAST_PERCENT)
            .collect();
        lines.sort_by_key(|line| (std::cmp::Reverse(line.cost), line.frame));
        lines
    }
}

/// Returns, for each node, the library function that the innermost own code on its stack called: the node itself or one of its callers.
fn entries(view: &View<'_>, own: &OwnCode) -> Vec<Option<NodeId>> {
    let mut entries: Vec<Option<NodeId>> = Vec::with_capacity(view.node_count());
    for id in (0..view.node_count()).map(NodeId::from_index) {
        let (node, user) = (view.node(id), own.innermost(id));
        let frame = view.frame(node.frame);
        // Callers come before callees.
        let above = node.caller.and_then(|caller| entries[caller.index()]);
        let is_called = || {
            let file = user.map(|user| view.frame(view.node(user).frame).dso_path);
            let hands_on = HAND_ON.iter().any(|begin| frame.name.starts_with(begin));
            frame.kind == Kind::User
                && frame.named
                && !hands_on
                // Inlined code is part of the line.
                && file.is_some_and(|file| file != frame.dso_path || !frame.inlined)
        };
        let entry = match user {
            None => None,
            Some(user) if user == id => None,
            Some(_) => above.or_else(|| is_called().then_some(id)),
        };
        entries.push(entry);
    }
    entries
}

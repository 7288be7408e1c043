//! Lines of the user's own code by what they call in libraries, whose reason no rule need know.

use std::collections::HashMap;

use crate::cost::Cost;
use crate::frame::{FrameIndex, Kind};
use crate::own_code::{FrameCosts, OwnCode, SourceLine, source_line};
use crate::view::{NodeId, View};

/// Below this share of all a line says little, in percent.
const LEAST_PERCENT: f64 = 25.0;
/// Loops of interpreters and what hands on calls stand between a line and what it calls.
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

/// A line, and what it calls.
#[derive(Clone, Debug)]
pub struct CallingLine {
    /// The line.
    pub frame: FrameIndex,
    /// What its calls of functions that aren't the user's took, without code of the user that these call back.
    pub cost: Cost,
    /// The functions that it calls, and what these took: those with more first.
    pub calls: Vec<(FrameIndex, Cost)>,
}

impl CallingLine {
    /// The lines whose calls took a good part of all, those with more first.
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

/// Per node the function of a library that the innermost own code of its stack called: the node's, or one of its callers'.
fn entries(view: &View<'_>, own: &OwnCode) -> Vec<Option<NodeId>> {
    let mut entries: Vec<Option<NodeId>> = Vec::with_capacity(view.node_count());
    for id in (0..view.node_count()).map(NodeId::from_index) {
        let (node, user) = (view.node(id), own.innermost(id));
        let frame = view.frame(node.frame);
        // Callers come before what they call.
        let above = node.caller.and_then(|caller| entries[caller.index()]);
        let is_called = || {
            let file = user.map(|user| view.frame(view.node(user).frame).dso_path);
            let hands_on = HAND_ON.iter().any(|begin| frame.name.starts_with(begin));
            frame.kind == Kind::User
                && frame.named
                && !hands_on
                // What is inlined is a part of the line.
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

//! Answers about system calls: their time in the samples of every event that measures time, and their exact counts if such a document was loaded.

use std::collections::HashMap;

use plumb_analyze::{Cause, Filter, NodeId, View};
use plumb_profile::EventId;
use serde_json::Value;

use super::selected::Selected;
use super::{Answer, AnswerError, Question, body};
use crate::kernel_time;

/// Number of callers listed per call.
const CALLERS: usize = 5;

/// One event's share of a call.
#[derive(Clone, Default)]
pub(crate) struct Part {
    weight: u64,
    samples: u64,
    callers: HashMap<String, u64>,
}

/// Answers with the time in each system call: on-CPU, off-CPU, and in the run queue.
pub(super) fn calls(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let Question { recording, parameters, .. } = *asked;
    let profile = &*recording.profile;
    let filter = Selected::new(parameters, &[])?.any_event(profile)?;
    let is_time = |event: EventId| profile.strings.get(profile.events[event].unit) == "ns";
    let mut events: Vec<(&str, u64)> = Vec::new();
    let mut parts: HashMap<String, Vec<Part>> = HashMap::new();
    for (event, known) in profile.events.iter().filter(|&(event, _)| is_time(event)) {
        let filter = Filter { event: Some(event), ..filter.clone() };
        let view = View::new(profile, &filter);
        if view.part().samples == 0 {
            continue;
        }
        let index = events.len();
        events.push((profile.strings.get(known.name), view.part().weight));
        for row in kernel_time::of_view(&view, &filter).rows {
            if row.cause != Cause::Call {
                continue;
            }
            let of_call = parts.entry(row.name).or_default();
            of_call.resize_with(index + 1, Part::default);
            let part = &mut of_call[index];
            (part.weight, part.samples) = (row.cost.weight, row.cost.samples);
            for (node, cost) in row.stacks {
                *part.callers.entry(caller(&view, node)).or_default() += cost.weight;
            }
        }
    }
    let count = events.len();
    let mut rows: Vec<(String, Vec<Part>)> = parts.into_iter().collect();
    rows.iter_mut().for_each(|(_, parts)| parts.resize_with(count, Part::default));
    rows.sort_by(|a, b| (total(&b.1), &a.0).cmp(&(total(&a.1), &b.0)));
    body(&CallsAnswer::new(&events, &rows, recording.calls.as_deref()))
}

document! {
    /// System calls in samples.
    pub(crate) struct CallsAnswer<'a> as "SampledCalls" of (
        events: &[(&'a str, u64)],
        rows: &'a [(String, Vec<Part>)],
        counted: Option<&'a Value>,
    ) {
        version: u32 = crate::JSON_VERSION,
        events: Vec<CallEvent<'a>> = events.iter().map(|&event| CallEvent::new(event)).collect(),
        rows: Vec<CallRow<'a>> = rows.iter().map(|(name, parts)| CallRow::new(name, parts)).collect(),
        /// Exact counts of calls: a document that was loaded.
        #[cfg_attr(test, ts(skip))]
        counted: Option<&'a Value> = counted,
    }
}

document! {
    pub(crate) struct CallEvent<'a> as "CallEvent" of (event: (&'a str, u64)) {
        name: &'a str = event.0,
        weight: u64 = event.1,
    }
}

document! {
    /// A system call, by event.
    pub(crate) struct CallRow<'a> as "CallRow" of (name: &'a str, parts: &'a [Part]) {
        name: &'a str = name,
        weights: Vec<u64> = parts.iter().map(|part| part.weight).collect(),
        samples: Vec<u64> = parts.iter().map(|part| part.samples).collect(),
        callers: Vec<SampledCaller<'a>> = callers(parts),
    }
}

document! {
    pub(crate) struct SampledCaller<'a> as "SampledCaller" of (caller: (&'a str, u64)) {
        function: &'a str = caller.0,
        weight: u64 = caller.1,
    }
}

fn total(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.weight).sum()
}

/// The functions that call most, of all events.
fn callers(parts: &[Part]) -> Vec<SampledCaller<'_>> {
    let mut callers: HashMap<&str, u64> = HashMap::new();
    for (name, weight) in parts.iter().flat_map(|part| &part.callers) {
        *callers.entry(name).or_default() += weight;
    }
    callers.remove("");
    let mut callers: Vec<(&str, u64)> = callers.into_iter().collect();
    callers.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
    callers.into_iter().take(CALLERS).map(SampledCaller::new).collect()
}

/// Returns the innermost function of the program itself: neither the kernel's nor the C library's wrapper of the call.
fn caller(view: &View<'_>, node: NodeId) -> String {
    let of_program = |frame: &&plumb_analyze::ViewFrame<'_>| {
        frame.kind == plumb_analyze::Kind::User && !is_c_library(frame.dso_name())
    };
    view.stack(node).find(of_program).map(|frame| frame.name.to_string()).unwrap_or_default()
}

fn is_c_library(file: &str) -> bool {
    ["libc.so", "libc-", "libpthread", "ld-linux", "ld-musl", "[vdso]"]
        .iter()
        .any(|begin| file.starts_with(begin))
}

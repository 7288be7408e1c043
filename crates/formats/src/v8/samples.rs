//! Samples of V8's profiler: each is a node of a tree, after an interval.

use std::borrow::Cow;
use std::collections::HashMap;

use plumb_profile::{EventId, FrameId, FrameKind, StackId, ThreadId};
use serde::Deserialize;

use crate::foreign::{Assembly, Counted, ForeignError, Place, TOO_LARGE, whole};

/// A function at a call site. It refers to its children in a file, and to its parent in a trace.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Node<'a> {
    id: u64,
    #[serde(borrow)]
    call_frame: CallFrame<'a>,
    #[serde(default)]
    children: Vec<u64>,
    #[serde(default)]
    parent: Option<u64>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallFrame<'a> {
    #[serde(borrow)]
    function_name: Cow<'a, str>,
    #[serde(borrow, default)]
    url: Cow<'a, str>,
    /// First line of the function, counted from 0.
    #[serde(default)]
    line_number: Option<f64>,
}

/// A node's frame and parent.
struct Known {
    /// `None` for the root, which is not a function.
    frame: Option<FrameId>,
    is_idle: bool,
    parent: Option<u64>,
}

/// The nodes and samples of a profile.
pub(crate) struct Samples {
    nodes: HashMap<u64, Known>,
    stacks: HashMap<u64, Option<StackId>>,
    /// Time of the last sample in microseconds.
    now: f64,
    samples: Vec<(f64, u64)>,
}

impl Samples {
    /// Creates an empty profile that starts at `start`, in microseconds.
    pub fn new(start: f64) -> Self {
        Samples { nodes: HashMap::new(), stacks: HashMap::new(), now: start, samples: Vec::new() }
    }

    /// Adds nodes, in any order.
    pub fn add_nodes(&mut self, assembly: &mut Assembly, nodes: &[Node<'_>]) -> Result<(), ForeignError> {
        for node in nodes {
            let frame = &node.call_frame;
            let name = if frame.function_name.is_empty() { "(anonymous)" } else { &frame.function_name };
            let file = frame.url.strip_prefix("file://").unwrap_or(&frame.url);
            // The conversion saturates.
            let line = frame.line_number.filter(|_| !file.is_empty()).map_or(0, |line| (line + 1.0) as u32);
            let place = Place { name, file, line, start_line: line, ..Place::default() };
            let is_root = name == "(root)";
            let id = (!is_root).then(|| assembly.frame(FrameKind::User, "", &[place]));
            let parent = self.nodes.get(&node.id).and_then(|known| known.parent).or(node.parent);
            self.nodes.insert(node.id, Known { frame: id, is_idle: name == "(idle)", parent });
        }
        for (row, node) in nodes.iter().enumerate() {
            for child in &node.children {
                let known = self.nodes.get_mut(child).ok_or_else(|| ForeignError::Row {
                    table: "nodes",
                    row,
                    message: format!("there is no node {child}"),
                })?;
                known.parent = Some(node.id);
            }
        }
        Ok(())
    }

    /// Adds the nodes of samples, and the microseconds before each.
    pub fn add(&mut self, samples: &[u64], deltas: &[f64]) -> Result<(), ForeignError> {
        if samples.len() != deltas.len() {
            return Err(ForeignError::Row {
                table: "samples",
                row: samples.len().min(deltas.len()),
                message: format!("there are {} samples and {} time deltas", samples.len(), deltas.len()),
            });
        }
        for (&node, &delta) in samples.iter().zip(deltas) {
            self.now += delta;
            self.samples.push((self.now, node));
        }
        Ok(())
    }

    /// Adds the samples to the profile, each with the time until the next one, and the last with that until `end`. Returns the idle time in
    /// nanoseconds, which is in no sample.
    pub fn finish(
        mut self,
        assembly: &mut Assembly,
        thread: ThreadId,
        event: EventId,
        end: Option<f64>,
    ) -> Result<u64, ForeignError> {
        let mut samples = std::mem::take(&mut self.samples);
        // V8's sampling thread may write them late.
        samples.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut idle_ns = 0_u64;
        for (row, &(time, node)) in samples.iter().enumerate() {
            let wrong = |message: String| ForeignError::Row { table: "samples", row, message };
            let next = samples.get(row + 1).map(|next| next.0).or(end).unwrap_or(time).max(time);
            let (weight, _) = whole((next - time) * 1e3).map_err(|why| wrong(format!("its time {why}")))?;
            let known = self.nodes.get(&node).ok_or_else(|| wrong(format!("there is no node {node}")))?;
            if known.is_idle {
                idle_ns = idle_ns.saturating_add(weight);
                continue;
            }
            let weight = assembly.weigh(weight).ok_or_else(|| wrong(TOO_LARGE.into()))?;
            let stack =
                self.stack(assembly, node).ok_or_else(|| wrong("its node is its own caller".into()))?;
            let time_ns = (time.max(0.0) * 1e3) as u64;
            assembly.sample(time_ns, &Counted { thread, event, stack, count: 1, weight });
        }
        Ok(idle_ns)
    }

    /// Returns the stack of a node, or `None` if its callers form a cycle.
    fn stack(&mut self, assembly: &mut Assembly, node: u64) -> Option<Option<StackId>> {
        let mut path = Vec::new();
        let mut at = Some(node);
        while let Some(id) = at.filter(|id| !self.stacks.contains_key(id)) {
            if path.len() > self.nodes.len() {
                return None;
            }
            path.push(id);
            at = self.nodes.get(&id).and_then(|known| known.parent);
        }
        let mut stack = at.and_then(|id| self.stacks.get(&id).copied()).flatten();
        for id in path.into_iter().rev() {
            if let Some(frame) = self.nodes.get(&id).and_then(|known| known.frame) {
                stack = Some(assembly.profile.stacks.add(stack, frame));
            }
            self.stacks.insert(id, stack);
        }
        Some(stack)
    }
}

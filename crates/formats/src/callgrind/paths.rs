//! Estimates stacks from a call graph.
//!
//! Costs flow from the functions without callers to their callees: the inflow of a function is divided between its own cost and its
//! calls in the graph's proportions. Without recursion the costs of each function and each call come out unchanged; which
//! of several callers' callers a cost belongs to is an estimate. Calls of functions already on the path are ignored.
//!
//! Invariant: own costs of each line come out exactly; costs that were not reached become stacks without callers.

use std::collections::HashSet;

use plumb_profile::{EventId, FrameId, FrameKind, StackId, ThreadId};

use super::graph::{Costs, Graph};
use crate::foreign::{Assembly, Counted, Place, TOO_LARGE};

/// Paths below this fraction (1/n) of the total are not followed further.
const SMALLEST_PART: u64 = 100_000;
/// Longest path, in functions.
const MOST_DEPTH: usize = 256;
/// Largest number of paths.
const MOST_PATHS: usize = 200_000;

/// Adds samples of all events; returns the share of costs that lack the callers they should have.
pub(super) fn add(
    assembly: &mut Assembly,
    graph: &Graph,
    events: &[(String, String)],
) -> Result<f64, &'static str> {
    let thread = assembly.thread(None, None, "", "");
    let (mut left_out, mut all) = (0.0, 0.0);
    for (number, (name, unit)) in events.iter().enumerate() {
        let event = assembly.event(name, unit);
        let mut flow = Flow::new(assembly, graph, number, thread, event)?;
        for root in flow.roots() {
            flow.follow(root)?;
        }
        left_out += flow.finish()? as f64;
        all += flow.total as f64;
    }
    Ok(if all > 0.0 { left_out / all } else { 0.0 })
}

struct Flow<'a> {
    assembly: &'a mut Assembly,
    graph: &'a Graph,
    /// Index of the event.
    number: usize,
    thread: ThreadId,
    event: EventId,
    total: u64,
    /// Own costs of lines not yet on a stack, by function: frame and cost.
    rest: Vec<Vec<(FrameId, u64)>>,
    /// The initial total own cost per function.
    own: Vec<u64>,
    /// Callees and the costs of these calls, without recursive ones.
    calls: Vec<Vec<(usize, FrameId, u64)>>,
}

/// A function on a path and its inflow.
struct Step {
    function: usize,
    caller: Option<StackId>,
    flow: u64,
    depth: usize,
}

impl<'a> Flow<'a> {
    fn new(
        assembly: &'a mut Assembly,
        graph: &'a Graph,
        number: usize,
        thread: ThreadId,
        event: EventId,
    ) -> Result<Self, &'static str> {
        let mut flow = Flow {
            assembly,
            graph,
            number,
            thread,
            event,
            total: 0,
            rest: Vec::new(),
            own: Vec::new(),
            calls: Vec::new(),
        };
        for (function, costs) in graph.costs.iter().enumerate() {
            flow.function(function, costs)?;
        }
        Ok(flow)
    }

    fn function(&mut self, function: usize, costs: &Costs) -> Result<(), &'static str> {
        let cost = |costs: &[u64]| costs.get(self.number).copied().unwrap_or(0);
        let (mut lines, mut own) = (Vec::new(), 0_u64);
        let named = &self.graph.functions[function];
        let kind = if named.object.starts_with("[kernel") { FrameKind::Kernel } else { FrameKind::User };
        let place = |file, line| Place { name: &named.name, file, line, ..Place::default() };
        for ((file, line), costs) in &costs.own {
            let cost = cost(costs);
            if cost > 0 {
                let frame = self.assembly.frame(kind, &named.object, &[place(file, *line)]);
                own = own.checked_add(cost).ok_or(TOO_LARGE)?;
                lines.push((frame, cost));
            }
        }
        let mut calls = Vec::new();
        for (&callee, (costs, line)) in &costs.calls {
            let cost = cost(costs);
            if callee != function && cost > 0 {
                calls.push((
                    callee,
                    self.assembly.frame(kind, &named.object, &[place(&named.file, *line)]),
                    cost,
                ));
            }
        }
        self.total = self.total.checked_add(own).ok_or(TOO_LARGE)?;
        self.rest.push(lines);
        self.own.push(own);
        self.calls.push(calls);
        Ok(())
    }

    /// Returns the functions that cost more than all calls of them, with the difference.
    fn roots(&self) -> Vec<Step> {
        let mut incoming = vec![0_u64; self.calls.len()];
        for &(callee, _, cost) in self.calls.iter().flatten() {
            incoming[callee] = incoming[callee].saturating_add(cost);
        }
        let calls =
            self.calls.iter().map(|calls| calls.iter().fold(0_u64, |sum, call| sum.saturating_add(call.2)));
        let flows = calls
            .zip(&self.own)
            .zip(incoming)
            .map(|((calls, own), incoming)| calls.saturating_add(*own).saturating_sub(incoming));
        let steps = flows.enumerate().map(|(function, flow)| Step { function, caller: None, flow, depth: 0 });
        steps.filter(|step| step.flow > 0).collect()
    }

    /// Follows all paths from a root.
    fn follow(&mut self, root: Step) -> Result<(), &'static str> {
        let smallest = self.total / SMALLEST_PART;
        let mut path: Vec<usize> = Vec::new();
        let mut on_path: HashSet<usize> = HashSet::new();
        let mut todo = vec![root];
        let mut paths = 0;
        while let Some(step) = todo.pop() {
            for left in path.drain(step.depth..) {
                on_path.remove(&left);
            }
            path.push(step.function);
            on_path.insert(step.function);
            paths += 1;
            let calls: Vec<_> =
                self.calls[step.function].iter().filter(|call| !on_path.contains(&call.0)).copied().collect();
            let own = self.own[step.function];
            let all = calls.iter().fold(u128::from(own), |sum, call| sum + u128::from(call.2)).max(1);
            let part = |cost: u64| (u128::from(step.flow) * u128::from(cost) / all) as u64;
            let mut left = step.flow;
            let is_last = step.flow < smallest || step.depth >= MOST_DEPTH || paths > MOST_PATHS;
            for (function, frame, cost) in calls.into_iter().filter(|_| !is_last) {
                let flow = part(cost);
                left -= flow;
                if flow > 0 {
                    let caller = Some(self.assembly.profile.stacks.add(step.caller, frame));
                    todo.push(Step { function, caller, flow, depth: step.depth + 1 });
                }
            }
            self.spend(step.function, step.caller, left)?;
        }
        Ok(())
    }

    /// Adds samples of a function's own lines, up to their remaining cost.
    fn spend(&mut self, function: usize, caller: Option<StackId>, flow: u64) -> Result<u64, &'static str> {
        let mut lines = std::mem::take(&mut self.rest[function]);
        let all = lines.iter().fold(0_u64, |sum, line| sum.saturating_add(line.1));
        let flow = flow.min(all);
        let mut left = flow;
        let mut spent: Vec<u64> = lines
            .iter()
            .map(|line| (u128::from(flow) * u128::from(line.1) / u128::from(all.max(1))) as u64)
            .collect();
        left -= spent.iter().sum::<u64>();
        for (spent, line) in spent.iter_mut().zip(&lines) {
            let more = left.min(line.1 - *spent);
            *spent += more;
            left -= more;
        }
        for (weight, (frame, rest)) in spent.into_iter().zip(&mut lines) {
            if weight > 0 {
                *rest -= weight;
                let weight = self.assembly.weigh(weight).ok_or(TOO_LARGE)?;
                let stack = Some(self.assembly.profile.stacks.add(caller, *frame));
                let (thread, event) = (self.thread, self.event);
                self.assembly.sample(0, &Counted { thread, event, stack, count: 1, weight });
            }
        }
        self.rest[function] = lines;
        Ok(flow)
    }

    /// Adds the remaining costs without callers; returns their sum.
    fn finish(&mut self) -> Result<u64, &'static str> {
        let mut left_out = 0_u64;
        for function in 0..self.rest.len() {
            left_out += self.spend(function, None, u64::MAX)?;
        }
        Ok(left_out)
    }
}

//! The verdict: the largest bottleneck above a threshold, or the advice to stop.
//!
//! A share is compared with the threshold by its confidence interval: if the interval contains the threshold, the share is neither above nor below.

use std::collections::HashSet;

use crate::advice::{Advice, CallAdvice, CodeAdvice, Extent};
use crate::cost::Cost;
use crate::frame::{FrameIndex, Kind, SymbolId};
use crate::kernel::{Cause, KernelRow, KernelTime};
use crate::own_code::{KernelCallers, source_line};
use crate::share::{Sampling, Share};
use crate::view::View;

use super::hot::HotFunction;
use super::lines::CallingLine;

/// A consumer of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// A function itself.
    Function(FrameIndex),
    /// Work of the kernel: index of the row in [`KernelTime::rows`].
    Kernel(usize),
    /// A cause in user code: index in [`Explanation::causes`](super::Explanation::causes).
    Code(usize),
    /// System calls or page faults that a rule is about: index in [`Explanation::calls`](super::Explanation::calls).
    Calls(usize),
    /// Library calls of a line of the user's own code, without a known cause: index in [`Outlook::lines`].
    Line(usize),
    /// A program whose processes cost much: index in [`Explanation::processes`](super::Explanation::processes).
    Processes(usize),
}

/// The verdict.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// The threshold, in percent of CPU time.
    pub threshold: f64,
    /// Bottlenecks above the threshold, largest first.
    pub above: Vec<(Bottleneck, Share)>,
    /// Bottlenecks that may be above or below the threshold, each with the number of samples that would decide.
    pub unsure: Vec<(Bottleneck, Share, Option<u64>)>,
    /// The largest of all.
    pub largest: Option<(Bottleneck, Share)>,
    /// Lines of the user's own code whose calls take a good part, those with more first.
    pub lines: Vec<CallingLine>,
    /// There are too few samples to say anything about shares.
    pub is_few: bool,
    /// The share of code without names, if it is large enough to hide bottlenecks.
    pub hidden: Option<Share>,
}

/// The reason why it is unknown whether anything is above the threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Obstacle {
    /// So much of the time is in code without names.
    Names(Share),
    /// There are too few samples.
    Samples,
}

/// Fewest samples for statements about shares.
const LEAST_SAMPLES: u64 = 5;

/// A cause in code precedes the advice on many processes if it has at least this part of their cost.
const MOST_OF_PROCESSES: f64 = 0.85;
/// A cause in code precedes the advice on the page faults that it leads to if it has at least this part of their cost.
const MOST_OF_FAULTS: f64 = 0.5;
/// A known cause precedes a larger bottleneck without one if it has at least this part of that bottleneck's share.
const KNOWN_BEFORE_LARGE: f64 = 0.5;

impl Outlook {
    /// Returns the first bottleneck to report: the largest with a known cause, unless another is much larger. A cause in a program's code precedes
    /// the fact that there are many processes of the program.
    pub(super) fn first_of(
        &self,
        causes: &[CodeAdvice],
        calls: &[CallAdvice],
    ) -> Option<(Bottleneck, Share)> {
        let &(largest, most) = self.above.first()?;
        let is_large = |(_, share): &&(Bottleneck, Share)| share.percent >= KNOWN_BEFORE_LARGE * most.percent;
        let is_known = |what: Bottleneck| {
            matches!(what, Bottleneck::Code(_) | Bottleneck::Calls(_) | Bottleneck::Processes(_))
        };
        let known = self.above.iter().find(|(what, _)| is_known(*what)).filter(is_large);
        let Some(&(what, share)) = known else { return Some((largest, most)) };
        let part = match what {
            Bottleneck::Processes(_) => MOST_OF_PROCESSES,
            Bottleneck::Calls(index) if calls[index].faults => MOST_OF_FAULTS,
            _ => return Some((what, share)),
        };
        // Why there are faults says more than that there are.
        let is_reason = |index: usize| {
            let is_told = matches!(what, Bottleneck::Calls(of) if calls[of].tells_why_faults());
            !(is_told && causes[index].is_of_faults())
        };
        let is_code =
            |(what, _): &&(Bottleneck, Share)| matches!(*what, Bottleneck::Code(index) if is_reason(index));
        let code = self.above.iter().find(is_code).filter(|(_, code)| code.percent >= part * share.percent);
        Some(code.copied().unwrap_or((what, share)))
    }

    /// Returns the obstacle to a verdict; `None` if there is a verdict.
    pub fn obstacle(&self) -> Option<Obstacle> {
        if !self.above.is_empty() || self.is_done() {
            return None;
        }
        let doubted = self.unsure.first().map_or(0.0, |(_, share, _)| share.percent);
        let names = self.hidden.filter(|hidden| hidden.percent >= doubted && !self.is_few);
        Some(names.map_or(Obstacle::Samples, Obstacle::Names))
    }

    /// Nothing is above the threshold, for all that the samples can tell.
    pub fn is_done(&self) -> bool {
        self.above.is_empty() && self.unsure.is_empty() && self.hidden.is_none()
    }
}

/// Returns whether a cause is reported on its own, not as a part of another. For a loop, the reason of its cost is known; other instructions are
/// a part of a function, which is reported as a whole.
fn is_own(cause: &CodeAdvice) -> bool {
    cause.within.is_none() && (cause.extent != Extent::Instructions || !cause.loops.is_empty())
}

/// Returns whether most of a line's calls belong to a cause, which says more.
fn is_cause_of(view: &View<'_>, cause: &CodeAdvice, line: &CallingLine) -> bool {
    let is_here = |frame: FrameIndex| source_line(view, frame) == source_line(view, line.frame);
    let here: u64 =
        cause.places.iter().filter(|(frame, _)| is_here(*frame)).map(|(_, cost)| cost.weight).sum();
    here.saturating_mul(2) >= line.cost.weight
}

/// Whether most of what a line calls are system calls that a rule is about.
fn is_made_by(
    view: &View<'_>,
    advice: &CallAdvice,
    line: &CallingLine,
    (time, callers): (&KernelTime, &[KernelCallers]),
) -> bool {
    let rows = time.rows.iter().zip(callers).filter(|(row, _)| is_about(advice, row));
    let is_here =
        |&(frame, _): &(FrameIndex, Cost)| source_line(view, frame) == source_line(view, line.frame);
    advice.cpu_percent * 2.0 >= line.cost.percent_of(view.whole())
        && rows.flat_map(|(_, callers)| &callers.places).any(is_here)
}

/// Returns whether most of what a line calls is work of the kernel, which is reported separately.
fn is_kernel_of(view: &View<'_>, callers: &KernelCallers, line: &CallingLine) -> bool {
    let is_here = |frame: FrameIndex| source_line(view, frame) == source_line(view, line.frame);
    let here: u64 =
        callers.places.iter().filter(|(frame, _)| is_here(*frame)).map(|(_, cost)| cost.weight).sum();
    here.saturating_mul(2) >= line.cost.weight
}

/// Whether most of what the kernel did is a part of a cause in user code, which says more: a flush has its writes.
/// `kernel`: how much of the cause's cost is the kernel's.
fn is_kernel_part(
    view: &View<'_>,
    &(cause, kernel): &(&CodeAdvice, u64),
    (row, callers): (&KernelRow, &KernelCallers),
) -> bool {
    let lines: Vec<_> = callers.places.iter().map(|&(frame, _)| source_line(view, frame)).collect();
    let here: u64 = cause
        .places
        .iter()
        .filter(|&&(frame, _)| lines.contains(&source_line(view, frame)))
        .map(|(_, cost)| cost.weight)
        .sum();
    here.min(kernel).saturating_mul(2) >= row.cost.weight
}

/// The causes that are reported on their own, each with how much of its cost is the kernel's.
fn with_kernel_costs<'a>(view: &View<'_>, causes: &'a [CodeAdvice]) -> Vec<(&'a CodeAdvice, u64)> {
    let kernel = view.frames().filter(|(_, frame)| frame.kind == Kind::Kernel);
    let symbols: HashSet<SymbolId> = kernel.map(|(_, frame)| frame.symbol).collect();
    let cost = |cause: &CodeAdvice| symbols.iter().map(|&symbol| cause.own_of(symbol).weight).sum();
    causes.iter().filter(|cause| is_own(cause)).map(|cause| (cause, cost(cause))).collect()
}

/// Work of the kernel that no rule is about.
fn kernel_rows<'a>(
    view: &'a View<'_>,
    (time, callers): (&'a KernelTime, &'a [KernelCallers]),
    causes: &'a [CodeAdvice],
    calls: &'a [CallAdvice],
) -> impl Iterator<Item = (Bottleneck, Cost)> {
    let is_told = move |row: &KernelRow| {
        matches!(row.cause, Cause::User | Cause::Idle)
            || row.cause == Cause::Fault && causes.iter().any(CodeAdvice::is_of_faults)
    };
    let is_of_calls = move |row: &KernelRow| {
        calls.iter().any(|advice| {
            is_about(advice, row) && advice.cpu_percent * 2.0 >= row.cost.percent_of(time.whole)
        })
    };
    let is_of_much = move |row: &KernelRow| {
        row.cause == Cause::Entry && calls.iter().any(|advice| is_about_much(advice, time))
    };
    let own_causes = with_kernel_costs(view, causes);
    let is_part = move |index: usize, row: &KernelRow| {
        own_causes.iter().any(|cause| is_kernel_part(view, cause, (row, &callers[index])))
    };
    let rows = time.rows.iter().enumerate();
    let rows = rows.filter(move |&(index, row)| {
        !is_told(row) && !is_of_calls(row) && !is_of_much(row) && !is_part(index, row)
    });
    rows.map(|(index, row)| (Bottleneck::Kernel(index), row.cost))
}

/// Lines of the user's own code whose calls no rule is about.
fn unknown_lines(
    view: &View<'_>,
    lines: &[CallingLine],
    (causes, calls): (&[CodeAdvice], &[CallAdvice]),
    of_kernel: (&KernelTime, &[KernelCallers]),
    told: &[(Bottleneck, Cost)],
) -> Vec<(Bottleneck, Cost)> {
    let is_told = |line: &CallingLine| {
        let of_code = causes.iter().any(|cause| is_own(cause) && is_cause_of(view, cause, line));
        of_code
            || calls.iter().any(|advice| is_made_by(view, advice, line, of_kernel))
            || told.iter().any(|&(what, _)| matches!(what, Bottleneck::Kernel(row) if is_kernel_of(view, &of_kernel.1[row], line)))
    };
    let unknown = lines.iter().enumerate().filter(|(_, line)| !is_told(line));
    unknown.map(|(index, line)| (Bottleneck::Line(index), line.cost)).collect()
}

/// Weighs what time went into.
pub(super) fn outlook(
    view: &View<'_>,
    (threshold, nameless): (f64, Share),
    sampling: &Sampling,
    (functions, time): (&[HotFunction], &KernelTime),
    (causes, processes, calls): (&[CodeAdvice], &[Advice], &[CallAdvice]),
    (lines, kernel_callers): (Vec<CallingLine>, &[KernelCallers]),
) -> Outlook {
    // Page faults that no line of the user's leads to are a runtime's, which may need them.
    let is_whose =
        |cause: &CodeAdvice| !(cause.is_activity && cause.is_of_faults() && cause.places.is_empty());
    let outer = causes.iter().enumerate().filter(|(_, cause)| is_own(cause) && is_whose(cause));
    let code = outer.map(|(index, cause)| (Bottleneck::Code(index), cause.cost));
    let programs =
        processes.iter().enumerate().map(|(index, advice)| (Bottleneck::Processes(index), advice.bound));
    // A cause says more than the functions that are a part of it.
    let is_part = |function: &HotFunction, cause: &CodeAdvice| {
        let inside = cause.own_of(view.frame(function.frame).symbol);
        is_own(cause)
            && cause.share.low >= threshold
            && inside.weight.saturating_mul(2) >= function.own.weight
    };
    // The cost of kernel functions is in the rows by cause.
    let is_user = |function: &&HotFunction| view.frame(function.frame).kind == Kind::User;
    let is_told = |function: &HotFunction| causes.iter().any(|cause| is_part(function, cause));
    let own = functions.iter().filter(is_user).filter(|function| !is_told(function));
    let own = own.map(|function| (Bottleneck::Function(function.frame), function.own));
    let watched = calls.iter().enumerate().filter(|_| time.is_time);
    let watched = watched.map(|(index, advice)| (Bottleneck::Calls(index), of_calls(advice, time)));
    let rows: Vec<_> = kernel_rows(view, (time, kernel_callers), causes, calls).collect();
    let unknown = unknown_lines(view, &lines, (causes, calls), (time, kernel_callers), &rows);
    let mut all: Vec<(Bottleneck, Share)> = code
        .chain(programs)
        .chain(watched)
        .chain(own)
        .chain(rows)
        .chain(unknown)
        .map(|(what, cost)| (what, sampling.share(cost)))
        .collect();
    all.sort_by(|one, other| other.1.percent.total_cmp(&one.1.percent));
    let is_few = sampling.whole().samples < LEAST_SAMPLES;
    let above = all.iter().copied().filter(|(_, share)| share.low >= threshold && !is_few).collect();
    let is_unsure = |share: &Share| (share.low < threshold || is_few) && share.high >= threshold;
    let unsure = all.iter().filter(|(_, share)| is_unsure(share));
    Outlook {
        threshold,
        above,
        unsure: unsure
            .map(|&(what, share)| (what, share, sampling.needed(share.percent, threshold)))
            .collect(),
        largest: all.first().copied(),
        lines,
        is_few,
        hidden: (nameless.percent > 0.0 && nameless.high >= threshold).then_some(nameless),
    }
}

/// Whether a row of kernel time is of what a rule is about.
pub(super) fn is_about(advice: &CallAdvice, row: &KernelRow) -> bool {
    match row.cause {
        Cause::Fault => advice.faults,
        Cause::Call => advice.calls.contains(&&row.name[..]),
        _ => false,
    }
}

/// Whether much of what system calls did was done by those that a rule is about: then the way in and out of the kernel is theirs too.
fn is_about_much(advice: &CallAdvice, time: &KernelTime) -> bool {
    let calls = time.rows.iter().filter(|row| row.cause == Cause::Call);
    let sum = |rows: &mut dyn Iterator<Item = &KernelRow>| rows.map(|row| row.cost.weight).sum::<u64>();
    let all = sum(&mut calls.clone());
    let own = sum(&mut calls.filter(|row| is_about(advice, row)));
    let sampled = own as f64 / time.whole.weight.max(1) as f64 * 100.0;
    // A rule may be about some of the calls of a name only.
    own * 3 >= all && own > 0 && advice.cpu_percent * 2.0 >= sampled
}

/// CPU time of the calls, as samples would show it.
fn of_calls(advice: &CallAdvice, time: &KernelTime) -> Cost {
    let has_entry = is_about_much(advice, time);
    let is_own = |row: &&KernelRow| has_entry && (row.cause == Cause::Entry || is_about(advice, row));
    let rows: f64 = time.rows.iter().filter(is_own).map(|row| row.cost.percent_of(time.whole)).sum();
    let part = advice.cpu_percent.max(rows) / 100.0;
    Cost {
        weight: (time.whole.weight as f64 * part) as u64,
        samples: (time.whole.samples as f64 * part) as u64,
    }
}

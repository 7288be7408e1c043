//! Rule: very many short-lived processes, as in shell loops, makefiles and test runners.

use super::{Advice, Found, Measure, ProgramRule, Rule, ms_each, text};
use crate::procs::{Procs, Program, SHORT_NS};

/// Minimum number of short processes per second.
const LEAST_PER_SECOND: f64 = 50.0;

/// Minimum share of the processes below another program that a program starts, for it to be reported in place of the
/// other.
const NEARLY_ALL: f64 = 0.9;

/// Name of the rule.
pub(super) const NAME: &str = "short-processes";

pub(super) fn rule() -> ProgramRule {
    let rule = Rule {
        name: NAME,
        claim: "starts short-lived processes, one after the other",
        pattern: text(format!("many processes that each live for less than {} ms", SHORT_NS as f64 / 1e6)),
        threshold: text(format!("at least {LEAST_PER_SECOND} a second")),
        remedy: "do the work in the caller (a shell's builtin, a library call), give one process many inputs, or keep one running",
        bound: "all that these processes cost, and the forks that started them",
        source: "measured: 0.65 ms of processor time for each /bin/true from a small process, of which its own code is 38%",
    };
    ProgramRule { rule, find }
}

/// Judges all programs that a program starts, and the program itself if it is forked repeatedly.
fn find(procs: &Procs<'_>, index: usize, program: &Program<'_>) -> Option<Found> {
    let mut short = 0;
    let (mut bound, mut processes) = (crate::cost::Cost::default(), 0);
    let (mut lived_ns, mut ended) = (0.0, 0);
    // Programs come after the ones that started them.
    let mut is_counted = vec![false; procs.programs.len()];
    for at in (0..procs.programs.len()).filter(|&at| is_below(procs, at, index)) {
        let one = &procs.programs[at];
        // An exec does not make a process a new one.
        short += one.short.begun;
        // Long-lived processes do work of their own.
        if one.short.all * 2 < one.processes {
            continue;
        }
        is_counted[at] = true;
        bound += one.own();
        // Forks by a counted program are already part of that program's own cost.
        if !one.parent.is_some_and(|above| is_counted[above]) {
            bound += one.forking;
        }
        processes += one.processes;
        if let Some(ns) = one.mean_life_ns {
            lived_ns += ns * one.processes as f64;
            ended += one.processes;
        }
    }
    bound += program.forking;
    bound += program.waiting;
    let rate = short as f64 * 1e9 / procs.span_ns.max(1) as f64;
    if rate < LEAST_PER_SECOND {
        return None;
    }
    let mut measured = vec![
        Measure { what: "short processes", value: short as f64, unit: "" },
        Measure { what: "short processes", value: rate, unit: "/s" },
    ];
    if ended > 0 {
        measured.push(Measure { what: "average life", value: lived_ns / ended as f64 / 1e6, unit: "ms" });
    }
    if procs.is_time {
        let each = ms_each(bound.weight, processes);
        measured.push(Measure { what: "CPU of each with its fork", value: each, unit: "ms" });
    }
    Some(Found { measured, bound })
}

/// Returns whether the program at `at` was started by the one at `top`, directly or indirectly.
fn is_below(procs: &Procs<'_>, at: usize, top: usize) -> bool {
    let mut above = procs.programs[at].parent;
    let chain = std::iter::from_fn(|| {
        let now = above?;
        above = procs.programs[now].parent;
        Some(now)
    });
    chain.take(procs.programs.len()).any(|one| one == top)
}

/// Keeps one of several findings about the same processes: that of the innermost program that starts nearly all of
/// them.
///
/// An indirect starter counts as their starter too, so otherwise each program of a chain would be reported.
pub(super) fn tell_once(procs: &Procs<'_>, found: &mut Vec<Advice>) {
    let is_of_rule = |advice: &Advice| advice.rule.name == NAME;
    let short = |advice: &Advice| advice.measured.first().map_or(0.0, |measure| measure.value);
    // Programs come after the ones that started them.
    let mut all: Vec<(usize, f64)> =
        found.iter().filter(|one| is_of_rule(one)).map(|one| (one.program, short(one))).collect();
    all.sort_by_key(|&(program, _)| program);
    let mut told = Vec::new();
    while let Some(&(top, count)) = all.first() {
        let (below, others): (Vec<_>, Vec<_>) =
            all.iter().copied().partition(|&(at, _)| at == top || is_below(procs, at, top));
        let starts_most = |&&(_, short): &&(usize, f64)| short >= count * NEARLY_ALL;
        told.extend(below.iter().rev().find(starts_most).map(|&(at, _)| at));
        all = others;
    }
    found.retain(|advice| !is_of_rule(advice) || told.contains(&advice.program));
}

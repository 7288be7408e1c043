//! Very many processes that live shortly: shell loops, makefiles, test runners.

use super::{Found, Measure, ProgramRule, Rule, ms_each};
use crate::procs::{Procs, Program};

/// From this many a second.
const LEAST_PER_SECOND: f64 = 50.0;

pub(super) const RULE: ProgramRule = ProgramRule {
    rule: Rule {
        name: "short-processes",
        claim: "starts short-lived processes, one after the other",
        pattern: "many processes that each live for less than 10 ms",
        threshold: "at least 50 a second",
        remedy: "do the work in the caller (a shell's builtin, a library call), give one process many inputs, or keep one running",
        bound: "all that these processes cost, and the forks that started them",
        source: "measured: 0.65 ms of processor time for each /bin/true from a small process, of which its own code is 38%",
    },
    find,
};

/// Of all programs that a program starts, and of itself where it is forked again and again.
fn find(procs: &Procs<'_>, index: usize, program: &Program<'_>) -> Option<Found> {
    let is_below = |at: usize| {
        let mut above = procs.programs[at].parent;
        std::iter::from_fn(|| {
            let now = above?;
            above = procs.programs[now].parent;
            Some(now)
        })
        .take(procs.programs.len())
        .any(|one| one == index)
    };
    let mut short = 0;
    let (mut bound, mut processes) = (crate::cost::Cost::default(), 0);
    let (mut lived_ns, mut ended) = (0.0, 0);
    // Programs come after those that started them.
    let mut is_counted = vec![false; procs.programs.len()];
    for at in (0..procs.programs.len()).filter(|&at| is_below(at)) {
        let one = &procs.programs[at];
        short += one.short;
        // Those that live long do work of their own.
        if one.short * 2 < one.processes {
            continue;
        }
        is_counted[at] = true;
        bound += one.own();
        // What a program forks is a part of its own cost.
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

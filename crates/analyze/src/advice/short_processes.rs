//! Very many processes that live shortly: shell loops, makefiles, test runners.

use super::{Found, Measure, ProgramRule, Rule, ms_each};
use crate::procs::{Procs, Program};

/// From this many a second.
const LEAST_PER_SECOND: f64 = 50.0;

pub(super) const RULE: ProgramRule = ProgramRule {
    rule: Rule {
        name: "short-processes",
        claim: "runs as many short-lived processes",
        pattern: "many processes that each live for less than 10 ms",
        threshold: "at least 50 a second",
        remedy: "do the work in the caller (a shell's builtin, a library call), give one process many inputs, or keep one running",
        bound: "all that these processes cost, and the forks that started them",
        source: "measured: 0.65 ms of processor time for each /bin/true from a small process, of which its own code is 38%",
    },
    find,
};

fn find(procs: &Procs<'_>, _: usize, program: &Program<'_>) -> Option<Found> {
    let rate = program.short as f64 * 1e9 / procs.span_ns.max(1) as f64;
    if rate < LEAST_PER_SECOND {
        return None;
    }
    let mut bound = program.own();
    bound += program.forking;
    let mut measured = vec![
        Measure { what: "short processes", value: program.short as f64, unit: "" },
        Measure { what: "short processes", value: rate, unit: "/s" },
    ];
    if let Some(ns) = program.mean_life_ns {
        measured.push(Measure { what: "average life", value: ns / 1e6, unit: "ms" });
    }
    if procs.is_time {
        let each = ms_each(bound.weight, program.processes);
        measured.push(Measure { what: "CPU of each with its fork", value: each, unit: "ms" });
    }
    Some(Found { measured, bound })
}

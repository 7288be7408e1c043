//! Rule: threads of a Python program run one at a time.

use std::collections::HashMap;

use plumb_profile::ThreadId;

use crate::advice::code::spent::{Code, Spent};
use crate::advice::code::{CodeRule, Rule, percent, text, word};
use crate::cost::Cost;

/// Minimum number of threads that want the lock.
const LEAST_THREADS: usize = 2;
/// Minimum share of all threads' time, for a thread to count.
const LEAST_OF_THREADS: f64 = 0.15;
/// Minimum number of changes between threads for them to take turns.
const LEAST_TURNS: usize = 20;
/// Minimum share of successive samples that are of different threads, if there are fewer changes.
const LEAST_CHANGES: f64 = 0.02;
/// Maximum number of CPUs that threads use together if they run one at a time.
const ALONE: f64 = 1.15;

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 10.0;

pub(in crate::advice) fn rule() -> CodeRule {
    let rule = Rule {
        name: "gil",
        claim: "runs in several threads, but one thread at a time (GIL)",
        pattern: "threads of Python want the interpreter lock at the same time: they take turns on several processors and never use more than one",
        threshold: text(format!(
            "{} threads with {} of Python's time each, which take turns {LEAST_TURNS} times or more and use {ALONE} processors at most, where there \
             are several and threads don't wait for them",
            word(LEAST_THREADS as u64),
            percent(LEAST_OF_THREADS)
        )),
        remedy: "processes instead of threads (multiprocessing, concurrent.futures.ProcessPoolExecutor), or code that releases the lock",
        bound: "the elapsed time of all threads but one; the processor time stays",
        source: "CPython: Python/ceval_gil.c",
    };
    CodeRule::new(rule, LEAST, find)
}

fn find(code: &Code<'_, '_>) -> Spent {
    if take_turns(code) { code.own_scripts() } else { Spent::default() }
}

/// Returns whether several threads run the interpreter in turns.
fn take_turns(code: &Code<'_, '_>) -> bool {
    let view = code.view();
    let meta = &view.profile().meta;
    let waited = meta.queued.as_ref().map_or(0, |queued| queued.waited_ns);
    let samples: Vec<_> =
        view.samples().filter(|one| code.is_in_own_script(one.node)).map(|one| one.sample).collect();
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return false };
    let mut by_thread: HashMap<_, Cost> = HashMap::new();
    let mut cpus: Vec<u32> = Vec::new();
    let mut all = Cost::default();
    for sample in &samples {
        *by_thread.entry(sample.thread).or_default() += Cost::of_sample(sample.weight);
        all += Cost::of_sample(sample.weight);
        if !cpus.contains(&sample.cpu) {
            cpus.push(sample.cpu);
        }
    }
    by_thread.retain(|_, cost| cost.weight as f64 >= LEAST_OF_THREADS * all.weight as f64);
    let own: Vec<_> = samples.iter().filter(|sample| by_thread.contains_key(&sample.thread)).collect();
    let changes = own.windows(2).filter(|pair| pair[0].thread != pair[1].thread).count();
    let span = last.time_ns.saturating_sub(first.time_ns) as f64;
    let has_room = cpus.len() >= 2 && waited as f64 <= 0.5 * span;
    let threads = &view.profile().threads;
    let process = |thread: &ThreadId| threads[*thread].process;
    let is_one = by_thread.keys().all(|thread| by_thread.keys().next().map(process) == Some(process(thread)));
    by_thread.len() >= LEAST_THREADS
        && is_one
        && has_room
        && changes >= LEAST_TURNS
        && changes as f64 >= LEAST_CHANGES * own.len() as f64
        && all.weight as f64 <= ALONE * span
}

//! BPF programs of other tools: while one runs, the kernel calls no program for a sample, and drops it silently
//! (`bpf_prog_active`: bpf_overflow_handler in kernel/events/core.c, trace_call_bpf in kernel/trace/bpf_trace.c).
//!
//! The kernel's run-time statistics are enabled only while there are such programs, as they slow each run of every program.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use aya::programs::loaded_programs;
use aya::sys::{Stats, enable_stats};
use plumb_capture_api::OtherPrograms;

use crate::run_stats;

/// Types of programs that count, from `enum bpf_prog_type`: probes, and tracepoints by perf. Sampling programs interrupt no other program, and other
/// types don't suppress samples.
const TYPES: [u32; 2] = [2, 5];
/// Time between two checks, with and without such programs.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// The pause is at least this multiple of the duration of the last check.
const PAUSE_TIMES: u32 = 30;

/// State of the checks.
#[derive(Debug, Default)]
pub(crate) struct Others {
    /// By ID: name, run time when first seen, and last run time.
    programs: HashMap<u32, (String, Duration, Duration)>,
    /// Keeps the kernel's statistics enabled.
    asked: Option<std::os::fd::OwnedFd>,
    next: Option<Instant>,
}

impl Others {
    /// Checks them, if due or `now`.
    pub fn look(&mut self, now: bool) -> OtherPrograms {
        let begin = Instant::now();
        if now || self.next.is_none_or(|next| begin >= next) {
            self.read();
            let pause = if self.programs.is_empty() { PAUSE.1 } else { PAUSE.0 };
            self.next = Some(begin + pause.max(begin.elapsed() * PAUSE_TIMES));
        }
        let mut ran: Vec<(&str, Duration)> = self
            .programs
            .values()
            .map(|(name, first, last)| (name.as_str(), last.saturating_sub(*first)))
            .filter(|(_, ran)| !ran.is_zero())
            .collect();
        ran.sort_unstable_by_key(|&(name, ran)| (std::cmp::Reverse(ran), name));
        let run_ns = ran.iter().map(|(_, ran)| ran.as_nanos() as u64).sum();
        let mut names: Vec<String> = Vec::new();
        ran.iter().for_each(|(name, _)| {
            if !names.iter().any(|known| known == name) {
                names.push((*name).to_owned());
            }
        });
        OtherPrograms { run_ns, names }
    }

    fn read(&mut self) {
        let found = loaded_programs()
            .map_while(Result::ok)
            .filter(|one| TYPES.contains(&(one.program_type() as u32)));
        let found: Vec<_> = found.collect();
        if found.is_empty() {
            return;
        }
        let own: HashSet<u32> = run_stats::own_numbers();
        for one in found.iter().filter(|one| !own.contains(&one.id())) {
            if self.asked.is_none() {
                // Without the privilege, their run times are unknown.
                self.asked = enable_stats(Stats::RunTime).ok();
            }
            let name = || String::from_utf8_lossy(one.name()).into_owned();
            let known =
                self.programs.entry(one.id()).or_insert_with(|| (name(), one.run_time(), one.run_time()));
            known.2 = one.run_time();
        }
    }
}

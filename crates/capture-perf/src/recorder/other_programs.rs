//! Samples that the kernel drops while another tool's program runs: detects missing samples, and falls back to copying stacks.
//!
//! Elsewhere: finding which programs ran (`KernelUnwinder::other_programs`).

use plumb_capture_api::OtherPrograms;
use plumb_process::usage::monotonic_ns;

use super::Recorder;
use crate::attr::{Counter, period_ns};
use plumb_profile::Scope;

/// Shortest time between two checks.
const INTERVAL_NS: u64 = 100_000_000;
/// Stacks are copied if such programs ran for at least this fraction of the time, or this fraction of samples is missing.
const TOO_MUCH: f64 = 0.05;
/// With less CPU time of the target than this, the missing share is unknown.
const ENOUGH_NS: u64 = 20_000_000;

/// Observations so far.
#[derive(Debug, Default)]
pub(super) struct Blind {
    /// Time and totals of the last check.
    before: Sight,
    /// Programs that suppressed samples so far.
    pub others: OtherPrograms,
    /// Whether stacks are copied now.
    is_over: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sight {
    now_ns: u64,
    /// Total run time of other tools' programs.
    others_ns: u64,
    /// Count of a clock, from which the expected samples follow, and the time that samples represent.
    clock_ns: Option<u64>,
    sampled_ns: u64,
}

impl Sight {
    /// Whether too many samples were dropped since `before`.
    fn is_too_much(self, before: Sight) -> bool {
        let others_ns = self.others_ns.saturating_sub(before.others_ns) as f64;
        let time_ns = self.now_ns.saturating_sub(before.now_ns) as f64;
        match (self.clock_ns, before.clock_ns) {
            (Some(now), Some(then)) => {
                let asked = now.saturating_sub(then);
                let missing = asked.saturating_sub(self.sampled_ns.saturating_sub(before.sampled_ns)) as f64;
                asked >= ENOUGH_NS && missing > TOO_MUCH * asked as f64 && others_ns > missing / 2.0
            }
            _ => others_ns > TOO_MUCH * time_ns,
        }
    }
}

impl Recorder {
    /// Falls back to copying where other tools' programs suppress too many samples.
    pub(super) fn heed_other_programs(&mut self) {
        let now_ns = monotonic_ns();
        let is_due = now_ns >= self.copies.blind.before.now_ns + INTERVAL_NS;
        if self.copies.blind.is_over || !is_due || !self.sampled.iter().any(|one| one.events.is_decided()) {
            return;
        }
        self.look_at_other_programs(false);
        let others_ns = self.copies.blind.others.run_ns;
        if others_ns == 0 {
            self.copies.blind.before = Sight { now_ns, ..Sight::default() };
            return;
        }
        let (clock_ns, sampled_ns) = self.clock_and_samples().unzip();
        let now = Sight { now_ns, others_ns, clock_ns, sampled_ns: sampled_ns.unwrap_or(0) };
        let before = std::mem::replace(&mut self.copies.blind.before, now);
        // The first check has no earlier one to compare with.
        if before.now_ns == 0 || !now.is_too_much(before) {
            return;
        }
        self.copies.blind.is_over = true;
        let decided = self.sampled.iter_mut().filter(|one| one.events.is_decided());
        let went_on = decided.map(|one| one.events.go_on_without()).collect::<Result<Vec<_>, _>>();
        self.belonging.learn(&self.sampled);
        if went_on.is_ok() {
            let names = self.copies.blind.others.names.join(", ");
            let seconds = self.elapsed().as_secs_f64();
            self.setup.limits.push(format!(
                "stacks are copied from {seconds:.1} s on, as with --capture perf: the kernel drops samples that a BPF program is to take \
                 while one of another tool runs ({names})"
            ));
        }
    }

    /// Checks which programs of other tools run, if due or `now`, unless the fallback is in effect.
    pub(super) fn look_at_other_programs(&mut self, now: bool) {
        if let Some(unwinder) = self.unwinder.as_mut().filter(|_| !self.copies.blind.is_over) {
            self.copies.blind.others = unwinder.other_programs(now);
        }
    }

    /// The clock's count for the target and the time that its samples represent, if only the target is counted.
    fn clock_and_samples(&self) -> Option<(u64, u64)> {
        let mut decided = self.sampled.iter().filter(|one| one.events.is_decided());
        let clock = decided
            .next()
            .filter(|one| one.events.sampling().counter == Counter::CpuClock && one.is_clock())?;
        if decided.next().is_some() || !self.counts_target_only() || self.setup.scope == Scope::System {
            return None;
        }
        let asked = self.unwinder.as_ref()?.kernel().handed_over().asked();
        Some((clock.events.counted()?, asked.saturating_mul(period_ns(self.setup.frequency_hz))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sight(now: u64, others: u64, clock: Option<u64>, sampled: u64) -> Sight {
        let clock_ns = clock.map(|clock| clock * MS);
        Sight { now_ns: now * MS, others_ns: others * MS, clock_ns, sampled_ns: sampled * MS }
    }

    #[test]
    fn stacks_are_copied_where_samples_are_missing_because_of_others() {
        let before = sight(100, 10, Some(50), 50);
        let is_too_much = |now: Sight| now.is_too_much(before);
        assert!(is_too_much(sight(200, 60, Some(150), 100)), "half is missing");
        assert!(!is_too_much(sight(200, 60, Some(150), 149)), "they ran on behalf of somebody else");
        assert!(!is_too_much(sight(200, 12, Some(150), 100)), "something else drops them");
        assert!(!is_too_much(sight(200, 20, Some(60), 50)), "too little to tell");
        assert!(sight(200, 16, None, 0).is_too_much(sight(100, 10, None, 0)));
        assert!(!sight(200, 14, None, 0).is_too_much(sight(100, 10, None, 0)));
    }
}

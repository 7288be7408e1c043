//! Samples that the kernel drops while another tool's program runs: decides when to fall back to copying stacks.
//!
//! Elsewhere: finding which programs ran (`KernelUnwinder::other_programs`).

use plumb_capture_api::OtherPrograms;

use crate::unwinder::AttachedUnwinder;

/// Shortest time between two checks.
const INTERVAL_NS: u64 = 100_000_000;
/// Stacks are copied if such programs ran for at least this fraction of the time, or this fraction of samples is missing.
const TOO_MUCH: f64 = 0.05;
/// With less CPU time of the target than this, the missing share is unknown.
const ENOUGH_NS: u64 = 20_000_000;

/// Watches the programs of other tools, until stacks are copied because of them.
#[derive(Debug, Default)]
pub(super) struct OtherProgramsWatch {
    /// Time and totals of the last check.
    before: Sight,
    /// Programs that suppressed samples so far.
    pub seen: OtherPrograms,
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

impl OtherProgramsWatch {
    /// Whether a check is due.
    pub fn is_due(&self, now_ns: u64) -> bool {
        !self.is_over && now_ns >= self.before.now_ns + INTERVAL_NS
    }

    /// Asks which programs of other tools ran, if due or `now`, unless stacks are copied already.
    pub fn look(&mut self, unwinder: Option<&mut AttachedUnwinder>, now: bool) {
        if let Some(unwinder) = unwinder.filter(|_| !self.is_over) {
            self.seen = unwinder.other_programs(now);
        }
    }

    /// Whether the programs seen suppress too many samples, so that stacks have to be copied from now on. `clock`: a clock's count for the target,
    /// and the time that its samples represent, if only the target is counted.
    pub fn suppress_samples(&mut self, now_ns: u64, clock: impl FnOnce() -> Option<(u64, u64)>) -> bool {
        let others_ns = self.seen.run_ns;
        if others_ns == 0 {
            self.before = Sight { now_ns, ..Sight::default() };
            return false;
        }
        let (clock_ns, sampled_ns) = clock().unzip();
        let now = Sight { now_ns, others_ns, clock_ns, sampled_ns: sampled_ns.unwrap_or(0) };
        let before = std::mem::replace(&mut self.before, now);
        // The first check has no earlier one to compare with.
        self.is_over = before.now_ns != 0 && now.is_too_much(before);
        self.is_over
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

    #[test]
    fn the_watch_ends_once_stacks_are_copied() {
        let mut watch = OtherProgramsWatch::default();
        let mut look = |now: u64, others: u64| {
            let is_due = watch.is_due(now * MS);
            watch.seen.run_ns = others * MS;
            (is_due, is_due && watch.suppress_samples(now * MS, || None))
        };
        assert_eq!(look(1000, 0), (true, false));
        assert_eq!(look(1050, 0), (false, false), "looked a moment ago");
        assert_eq!(look(1100, 50), (true, true));
        assert_eq!(look(1200, 100), (false, false), "stacks are copied");
    }
}

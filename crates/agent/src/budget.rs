//! Budget control: derives the sample rate from the agent's recent cost, so that the agent stays within its share of the machine.
//!
//! Invariant: the rate is between [`LOWEST_HZ`] and the requested rate. It falls after a single period over budget, and rises only after several
//! periods in a row with room, so that it does not oscillate. Pure; elsewhere: `cost` measures, `capture` changes the events.

use std::time::Duration;

/// Lowest sample rate, in samples per second of CPU time.
pub(crate) const LOWEST_HZ: u32 = 5;
/// Start-up time whose cost does not influence the rate.
const WARM: Duration = Duration::from_secs(10);
/// Fraction of the budget that a new rate aims for.
const AIM: f64 = 0.85;
/// Fraction of the budget below which a period has room.
const ROOM: f64 = 0.7;
/// Consecutive periods with room before the rate rises.
const CALM: u32 = 3;
/// Largest factors by which the rate rises and falls in one step.
const RISE: f64 = 1.25;
const FALL: f64 = 4.0;

/// A change of the sample rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RateChange {
    /// To this lower rate: the agent is over budget.
    Lower(u32),
    /// To this higher rate: the budget has room.
    Higher(u32),
    /// The rate is at its lowest and the agent is still over budget. Reported once.
    Exhausted,
}

/// A share of the machine, and the sample rate that keeps the agent within it.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Share of all CPUs together, 1 for the whole machine.
    share: f64,
    asked_hz: u32,
    now_hz: u32,
    elapsed: Duration,
    calm: u32,
    is_exhausted: bool,
}

impl Budget {
    /// A budget of `share` of the whole machine (1 for all of it) that starts at the requested rate.
    pub fn new(share: f64, asked_hz: u32) -> Self {
        Self { share, asked_hz, now_hz: asked_hz, elapsed: Duration::ZERO, calm: 0, is_exhausted: false }
    }

    /// Current sample rate.
    pub fn hz(&self) -> u32 {
        self.now_hz
    }

    /// Judges a period in which the agent cost `share` of the machine. Returns the change of the rate, if any.
    pub fn judge(&mut self, share: f64, period: Duration) -> Option<RateChange> {
        let is_warm = self.elapsed >= WARM;
        self.elapsed += period;
        if !is_warm {
            return None;
        }
        let lowest = LOWEST_HZ.min(self.asked_hz);
        let wanted = f64::from(self.now_hz) * self.share * AIM / share.max(1e-9);
        if share > self.share {
            self.calm = 0;
            if self.now_hz == lowest {
                return (!std::mem::replace(&mut self.is_exhausted, true)).then_some(RateChange::Exhausted);
            }
            let hz = (wanted.max(f64::from(self.now_hz) / FALL) as u32).clamp(lowest, self.now_hz - 1);
            self.now_hz = hz;
            return Some(RateChange::Lower(hz));
        }
        self.is_exhausted = false;
        let has_room = share < self.share * ROOM && self.now_hz < self.asked_hz;
        self.calm = if has_room { self.calm + 1 } else { 0 };
        if self.calm < CALM {
            return None;
        }
        self.calm = 0;
        let hz = wanted.min(f64::from(self.now_hz) * RISE).ceil() as u32;
        self.now_hz = hz.clamp(self.now_hz + 1, self.asked_hz);
        Some(RateChange::Higher(self.now_hz))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(15);

    /// Simulates a machine on which the agent costs `fixed` plus `each` per sample a second. Returns the final share and rate.
    fn run(budget: &mut Budget, fixed: f64, each: f64, periods: usize) -> (f64, u32) {
        let mut share = 0.0;
        for _ in 0..periods {
            share = fixed + each * f64::from(budget.hz());
            budget.judge(share, PERIOD);
        }
        (share, budget.hz())
    }

    #[test]
    fn the_rate_falls_below_the_budget_and_comes_back() {
        let mut budget = Budget::new(0.01, 97);
        let (_, hz) = run(&mut budget, 0.001, 0.000_05, 10);
        assert_eq!(hz, 97, "it costs 0.6%");
        let (share, busy) = run(&mut budget, 0.004, 0.000_2, 10);
        assert!(share <= 0.01 && (15..60).contains(&busy), "{share} at {busy}");
        let (share, steady) = run(&mut budget, 0.004, 0.000_2, 40);
        assert!(share <= 0.01 && steady.abs_diff(busy) <= 5, "it does not swing: {share} at {steady}");
        // The rate recovers slowly: not within three periods, but eventually.
        let (_, soon) = run(&mut budget, 0.001, 0.000_05, 3);
        assert!(soon <= steady * 5 / 4 + 1, "{soon}");
        assert_eq!(run(&mut budget, 0.001, 0.000_05, 60).1, 97);
    }

    #[test]
    fn what_can_not_be_met_is_said_once() {
        let mut budget = Budget::new(0.0001, 97);
        assert_eq!(budget.judge(0.5, PERIOD), None, "the beginning is dearer");
        let changes: Vec<_> = (0..10).filter_map(|_| budget.judge(0.02, PERIOD)).collect();
        assert_eq!(changes.last(), Some(&RateChange::Exhausted), "{changes:?}");
        assert_eq!(changes.iter().filter(|change| **change == RateChange::Exhausted).count(), 1);
        assert_eq!(budget.hz(), LOWEST_HZ);
        let mut rare = Budget::new(0.0001, 2);
        (0..10).for_each(|_| assert!(!matches!(rare.judge(0.02, PERIOD), Some(RateChange::Lower(_)))));
        assert_eq!(rare.hz(), 2, "it never rises above what was asked for");
    }

    #[test]
    fn an_idle_agent_stays_as_it_is() {
        let mut budget = Budget::new(0.01, 97);
        assert_eq!(run(&mut budget, 0.0, 0.0, 20).1, 97);
    }
}

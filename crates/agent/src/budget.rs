//! Keeping to a share of the machine: from what the agent cost lately to the rate at which it samples.
//!
//! Invariant: the rate is between [`LOWEST_HZ`] and what was asked for. It falls as soon as a period was too dear, and rises only when several in a
//! row had room, so that it does not swing. Pure: measuring is in `cost`, changing the events in `capture`.

use std::time::Duration;

/// Samples per second of processor time that are always taken.
pub(crate) const LOWEST_HZ: u32 = 5;
/// What was spent when the agent began is no matter of its rate.
const WARM: Duration = Duration::from_secs(10);
/// The rate is chosen to spend this part of the budget.
const AIM: f64 = 0.85;
/// Below this part of the budget there is room.
const ROOM: f64 = 0.7;
/// So many periods in a row have to have room before the rate rises.
const CALM: u32 = 3;
/// It rises and falls by no more than this at once.
const RISE: f64 = 1.25;
const FALL: f64 = 4.0;

/// A change of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RateChange {
    /// To a lower one: over the budget.
    Lower(u32),
    /// To a higher one: there is room.
    Higher(u32),
    /// It is as low as it can be, and still over the budget: said once.
    Exhausted,
}

/// A share of the machine, and the rate that keeps to it.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Of all processors.
    share: f64,
    asked_hz: u32,
    now_hz: u32,
    elapsed: Duration,
    calm: u32,
    is_exhausted: bool,
}

impl Budget {
    /// `share`: of the whole machine, 1 for all of it.
    pub fn new(share: f64, asked_hz: u32) -> Self {
        Self { share, asked_hz, now_hz: asked_hz, elapsed: Duration::ZERO, calm: 0, is_exhausted: false }
    }

    /// The rate that there should be.
    pub fn hz(&self) -> u32 {
        self.now_hz
    }

    /// Judges a period in which the agent cost `share` of the machine.
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

    /// Runs a machine on which the agent costs `fixed` and so much for each sample a second; gives back the shares and the rates.
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
        // Slowly: not within three periods, but in the end.
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

//! Spending of the running agent: measures its cost each period, compares it with the budget, and adjusts the sample rate.
//!
//! Elsewhere: measuring the cost (`cost`), choosing the rate (`budget`).

use std::time::{Duration, Instant};

use crate::budget::{Budget, RateChange};
use crate::capture::Capture;
use crate::cost::{CostMeter, OwnCost};
use crate::options::AgentOptions;

/// Interval between two measurements of the cost.
const PERIOD: Duration = Duration::from_secs(10);
/// Period over which the budget spreads the cost of a trace. A trace costs more than the budget allows at once, but is rare.
const SPREAD: Duration = Duration::from_secs(120);

/// The agent's spending and its budget.
pub(crate) struct Spending {
    meter: CostMeter,
    budget: Budget,
    looked: Instant,
    max_cpu: f64,
    /// Whether the last period was over budget.
    is_over: bool,
    /// Cost since the last comparison.
    of_period: OwnCost,
    /// Cost of the window so far.
    of_window: OwnCost,
    /// Cost of traces that was not charged to the budget yet, in nanoseconds.
    due_ns: f64,
}

impl Spending {
    /// Starts with nothing spent.
    pub fn begin(options: &AgentOptions, mut meter: CostMeter, frequency_hz: u32) -> Self {
        if !meter.sees_programs() {
            tracing::warn!(
                "the kernel does not say how long BPF programs run: the budget is held against the agent's threads alone; to include \
                 programs: sysctl kernel.bpf_stats_enabled=1"
            );
        }
        meter.take();
        let budget = Budget::new(options.max_cpu, frequency_hz);
        let max_cpu = options.max_cpu;
        let (of_period, of_window) = Default::default();
        Self {
            meter,
            budget,
            looked: Instant::now(),
            max_cpu,
            is_over: false,
            of_period,
            of_window,
            due_ns: 0.0,
        }
    }

    /// Compares the cost since the last comparison with the budget, and adjusts the sample rate, if a period has passed.
    pub fn look(&mut self, capture: &mut Capture) {
        if self.looked.elapsed() < PERIOD {
            return;
        }
        self.looked = Instant::now();
        self.measure();
        let mut cost = std::mem::take(&mut self.of_period);
        let period = Duration::from_nanos(cost.elapsed_ns);
        cost.watch_ns = share_of_period(&mut self.due_ns, cost.watch_ns, period);
        let share = self.meter.share(cost);
        self.is_over = share > self.max_cpu;
        let before_hz = self.budget.hz();
        let Some(change) = self.budget.judge(share, period) else { return };
        let (cost, budget) = (in_percent(share), in_percent(self.max_cpu));
        match change {
            RateChange::Exhausted => tracing::warn!(
                cost,
                budget,
                hz = before_hz,
                "over the budget at the lowest sampling rate: what processes do, not samples, takes it; to allow it: --max-cpu"
            ),
            RateChange::Lower(hz) => {
                tracing::warn!(cost, budget, from_hz = before_hz, to_hz = hz, "sampling rate lowered");
                capture.set_frequency(hz);
            }
            RateChange::Higher(hz) => {
                tracing::info!(cost, budget, from_hz = before_hz, to_hz = hz, "sampling rate raised");
                capture.set_frequency(hz);
            }
        }
    }

    /// Adds `watch_ns` by which tracing slowed system calls.
    pub fn add_watches(&mut self, watch_ns: u64) {
        self.meter.add_watch(watch_ns);
    }

    /// Whether the last period was over budget.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Cost of the window that ends now, and its share of the machine in percent.
    pub fn of_window(&mut self) -> (OwnCost, String) {
        self.measure();
        let cost = std::mem::take(&mut self.of_window);
        (cost, in_percent(self.meter.share(cost)))
    }

    /// Time that all CPUs together have in `elapsed_ns`.
    pub fn machine_ns(&self, elapsed_ns: u64) -> u64 {
        self.meter.machine_ns(elapsed_ns)
    }

    fn measure(&mut self) {
        let cost = self.meter.take();
        self.of_period += cost;
        self.of_window += cost;
    }
}

/// The cost of traces charged to a period: of all outstanding cost, the fraction that the period is of [`SPREAD`].
fn share_of_period(due_ns: &mut f64, new_ns: u64, period: Duration) -> u64 {
    *due_ns += new_ns as f64;
    let now_ns = *due_ns * period.div_duration_f64(SPREAD).min(1.0);
    *due_ns -= now_ns;
    now_ns as u64
}

fn in_percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_watches_cost_is_held_against_the_budget_in_some_minutes() {
        let (mut due_ns, mut had) = (0.0, Vec::new());
        for period in 0..200 {
            had.push(share_of_period(&mut due_ns, if period == 0 { 120_000_000 } else { 0 }, PERIOD));
        }
        assert_eq!(had[0], 10_000_000, "a twelfth at once");
        assert!(had.is_sorted_by(|one, next| one >= next), "{had:?}");
        let sum: u64 = had.iter().sum();
        assert!(sum.abs_diff(120_000_000) < 1000, "{sum}");
        assert_eq!(share_of_period(&mut 0.0, 7, 2 * SPREAD), 7, "no more than there is");
    }
}

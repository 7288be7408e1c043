//! What the agent spends while it runs: measured each period, held against its budget, and the rate changed where it has to be.
//!
//! Not here: how it is measured (`cost`), which rate follows (`budget`).

use std::time::{Duration, Instant};

use crate::budget::{Budget, RateChange};
use crate::capture::Capture;
use crate::cost::{CostMeter, OwnCost};
use crate::options::AgentOptions;

/// Time between two looks at the cost.
const PERIOD: Duration = Duration::from_secs(10);

/// What the agent spends.
pub(crate) struct Spending {
    meter: CostMeter,
    budget: Budget,
    looked: Instant,
    max_cpu: f64,
    /// Since the last look.
    of_period: OwnCost,
    /// Of the window so far.
    of_window: OwnCost,
}

impl Spending {
    /// Nothing is spent yet.
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
        Self { meter, budget, looked: Instant::now(), max_cpu, of_period, of_window }
    }

    /// Holds what was spent since the last look against the budget, if it is time to.
    pub fn look(&mut self, capture: &mut Capture) {
        if self.looked.elapsed() < PERIOD {
            return;
        }
        self.looked = Instant::now();
        self.measure();
        let cost = std::mem::take(&mut self.of_period);
        let share = self.meter.share(cost);
        let (before_hz, period) = (self.budget.hz(), Duration::from_nanos(cost.elapsed_ns));
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

    /// What a window took that ends now, and its share of the machine in percent.
    pub fn of_window(&mut self) -> (OwnCost, String) {
        self.measure();
        let cost = std::mem::take(&mut self.of_window);
        (cost, in_percent(self.meter.share(cost)))
    }

    fn measure(&mut self) {
        let cost = self.meter.take();
        self.of_period += cost;
        self.of_window += cost;
    }
}

fn in_percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

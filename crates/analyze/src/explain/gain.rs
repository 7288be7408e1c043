//! Predicted gain of removing a bottleneck, in CPU time and in elapsed time.

use super::{Bottleneck, Explanation};
use crate::advice::{CallAdvice, Extent, Prediction};
use crate::cost::Cost;
use crate::frame::FrameIndex;

/// A gain, as an interval in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedGain {
    /// Bounds in percent of CPU time.
    pub cpu: (f64, f64),
    /// Bounds in percent of elapsed time. `None` (nothing is promised): several threads ran at a time, or the elapsed time is unknown.
    pub elapsed: Option<(f64, f64)>,
    /// The gain is waiting that disappears: elapsed time, not CPU time.
    pub is_wait: bool,
}

/// Least waiting saved, in percent of the elapsed time, for a rule to be about waiting.
const LEAST_WAIT: f64 = 10.0;
/// CPU time below this, in percent, is not promised to disappear with a wait.
const LITTLE_CPU: f64 = 10.0;
/// Bounds of the part of the observed waiting that disappears. Waits that began before the observation or had not ended by then were not seen.
const LEAST_OF_WAIT: f64 = 0.85;
const MOST_OF_WAIT: f64 = 1.2;
/// With more CPUs in use than this, on average, threads ran at the same time.
const ALONE: f64 = 1.05;
/// Parts of what a program's processes cost that go with them, at least and at most: those who start them have less to do as well.
const PROCESSES: (f64, f64) = (0.9, 1.2);

/// Whether calls that take this much of the elapsed time and of CPU time mostly wait. `cores`: CPUs in use, on average.
fn mostly_waits(wall_percent: f64, cpu_percent: f64, cores: Option<f64>) -> bool {
    // A share of little CPU time is little of the elapsed time.
    let ran = cpu_percent * cores.unwrap_or(1.0).min(1.0);
    wall_percent >= LEAST_WAIT && wall_percent > ran
}

/// Returns the most of a wait that can disappear, in percent of the elapsed time.
fn most_of_wait(advice: &CallAdvice) -> f64 {
    let times = if advice.tells_of_locks() { 1.0 } else { MOST_OF_WAIT };
    (advice.wall_percent * times).min(100.0)
}

impl Explanation<'_> {
    /// Returns the bounds of the gain. `None`: the cost of the replacement can't be estimated.
    pub fn gain_of(&self, what: Bottleneck) -> Option<PredictedGain> {
        match what {
            Bottleneck::Function(_) | Bottleneck::Kernel(_) | Bottleneck::Line(_) => None,
            Bottleneck::Code(index) => {
                let cause = &self.causes[index];
                // Only the unnecessary part disappears, which may be nothing.
                let least = |gain: Prediction| if cause.is_activity { 0.0 } else { gain.low };
                cause.gain.map(|gain| self.gain(Prediction { low: least(gain), ..gain }))
            }
            Bottleneck::Calls(index) => {
                let advice = &self.calls[index];
                let gain = self.gain(self.prediction_of(advice));
                let cores = self.pace.cores().map(|cores| cores * self.pace.reported);
                let is_wait =
                    mostly_waits(advice.wall_percent, advice.cpu_percent, cores) && !advice.may_idle;
                Some(if is_wait {
                    PredictedGain {
                        // The wakeup that replaces the wait has a cost too.
                        cpu: if advice.cpu_percent < LITTLE_CPU { (0.0, gain.cpu.1) } else { gain.cpu },
                        elapsed: Some((self.least_of_wait(advice), most_of_wait(advice))),
                        is_wait,
                    }
                } else {
                    gain
                })
            }
            Bottleneck::Processes(index) => {
                let share = self.sampling.share(self.processes[index].bound);
                let (least, most) = PROCESSES;
                let high = (share.high * most).min(100.0);
                Some(self.gain(Prediction { low: share.low * least, high, is_cpu_only: false }))
            }
        }
    }

    /// Returns the least of a wait that disappears, in percent of the elapsed time: run-queue wait remains, and the work done under a lock may
    /// need the lock.
    fn least_of_wait(&self, advice: &CallAdvice) -> f64 {
        if advice.tells_of_locks() {
            return 0.0;
        }
        let queued = self.pace.waited_ns().zip(self.pace.elapsed_ns);
        let queued =
            queued.map_or(0.0, |((waited, _), elapsed)| waited as f64 / elapsed.max(1) as f64 * 100.0);
        (advice.wall_percent * LEAST_OF_WAIT - queued).clamp(0.0, 100.0)
    }

    /// Index in [`calls`](Self::calls) of the rule that saves the most waiting, if that exceeds every saving of CPU time. A rule on work that is done
    /// under a lock comes before one on waiting for the lock.
    pub fn waiting_rule(&self) -> Option<usize> {
        let is_wait = |&index: &usize| {
            let advice = &self.calls[index];
            advice.wall_percent >= LEAST_WAIT && !advice.may_idle
        };
        let rank = |index: usize| (!self.calls[index].tells_of_locks(), self.calls[index].wall_percent);
        let index = (0..self.calls.len()).filter(is_wait).max_by(|&one, &other| {
            let (one, other) = (rank(one), rank(other));
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
        })?;
        let largest =
            self.outlook.above.first().and_then(|(_, share)| self.pace.elapsed_percent(share.percent));
        (self.calls[index].wall_percent > largest.unwrap_or(0.0)).then_some(index)
    }

    /// The cause that most of a function's own time is instructions of, by its number in [`causes`](Self::causes).
    pub fn instructions_of(&self, frame: FrameIndex) -> Option<usize> {
        let function = self.functions.iter().find(|function| function.frame == frame)?;
        let symbol = |frame: FrameIndex| self.view.frame(frame).symbol;
        self.causes.iter().position(|cause| {
            let is_it = |&&(of, _): &&(FrameIndex, Cost)| symbol(of) == symbol(frame);
            let named: u64 = cause.functions.iter().filter(is_it).map(|(_, cost)| cost.weight).sum();
            // Inlined functions are not listed, so both have at least this much in common.
            let both = cause.cost.weight.saturating_add(function.own.weight);
            let common = both.saturating_sub(self.sampling.whole().weight);
            let is_most = named.max(common).saturating_mul(2) >= function.own.weight;
            cause.within.is_none() && cause.extent == Extent::Instructions && is_most
        })
    }

    /// The rule that knows of threads that wait for a lock while others run, by its number in [`calls`](Self::calls), if that is a good
    /// part of the elapsed time.
    pub fn contended(&self) -> Option<usize> {
        let is_it = |advice: &CallAdvice| {
            advice.tells_of_locks() && !advice.may_idle && advice.wall_percent >= LEAST_WAIT
        };
        self.calls.iter().position(is_it)
    }

    fn gain(&self, prediction: Prediction) -> PredictedGain {
        let Prediction { low, high, is_cpu_only } = prediction;
        let is_alone = self.pace.cores().is_some_and(|cores| cores <= ALONE);
        let elapsed = match is_cpu_only {
            true => Some((0.0, 0.0)),
            // Run-queue wait behind other programs disappears too, but not for sure.
            false => {
                let least = self.pace.cores().map(|cores| low * self.pace.reported * cores.min(1.0));
                least.zip(self.pace.elapsed_percent(high)).filter(|_| is_alone)
            }
        };
        PredictedGain { cpu: (low, high), elapsed, is_wait: false }
    }
}

#[cfg(test)]
mod tests {
    use super::mostly_waits;

    #[test]
    fn a_share_of_little_processor_time_is_no_share_of_the_elapsed_time() {
        // fsync: 90% of the CPU time, which is a tenth of the elapsed time; two thirds of that is waiting.
        assert!(mostly_waits(66.0, 90.0, Some(0.1)));
        assert!(!mostly_waits(66.0, 90.0, Some(1.0)), "it runs meanwhile");
        assert!(!mostly_waits(66.0, 90.0, Some(2.0)));
        assert!(!mostly_waits(5.0, 1.0, Some(0.1)), "too little to be what it is about");
        assert!(mostly_waits(66.0, 30.0, None) && !mostly_waits(66.0, 90.0, None));
    }
}

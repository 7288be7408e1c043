//! What is gained by removing what the time goes into: of processor time, and of the elapsed time.

use super::{Bottleneck, Explanation};
use crate::advice::Prediction;

/// A gain, as an interval in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedGain {
    /// Of processor time, at least and at most.
    pub cpu: (f64, f64),
    /// Of the elapsed time, likewise. `None`: several threads ran at a time, or it is not known how long it took, so that nothing is promised.
    pub elapsed: Option<(f64, f64)>,
}

/// A rule that saves this much waiting, in percent of the elapsed time, is about that.
const LEAST_WAIT: f64 = 10.0;
/// Less processor time than this, in percent, is not promised to go with a wait.
const LITTLE_CPU: f64 = 10.0;
/// Parts of the waiting that was seen which go: what began before it was looked, or had not ended then, was not seen.
const LEAST_OF_WAIT: f64 = 0.85;
const MOST_OF_WAIT: f64 = 1.2;
/// Threads that have nothing to do wait by these calls too, so that waiting tells nothing of it.
const ALSO_IDLE: &str = "lock-contention";
/// With more processors in use than this, on average, threads ran at the same time.
const ALONE: f64 = 1.05;
/// Parts of what a program's processes cost that go with them, at least and at most: those who start them have less to do as well.
const PROCESSES: (f64, f64) = (0.9, 1.2);

impl Explanation<'_> {
    /// What is gained at least and at most. `None`: what replaces it can't be estimated.
    pub fn gain_of(&self, what: Bottleneck) -> Option<PredictedGain> {
        match what {
            Bottleneck::Function(_) | Bottleneck::Kernel(_) | Bottleneck::Line(_) => None,
            Bottleneck::Code(index) => {
                let cause = &self.causes[index];
                // As much as isn't needed, which may be nothing.
                let least = |gain: Prediction| if cause.is_activity { 0.0 } else { gain.low };
                cause.gain.map(|gain| self.gain(Prediction { low: least(gain), ..gain }))
            }
            Bottleneck::Calls(index) => {
                let advice = &self.calls[index];
                let gain = self.gain(self.prediction_of(advice));
                let wait = advice.wall_percent;
                let is_wait =
                    wait >= LEAST_WAIT && wait > advice.cpu_percent && advice.rule.name != ALSO_IDLE;
                Some(if is_wait {
                    PredictedGain {
                        // What wakes in place of the wait takes some as well.
                        cpu: if advice.cpu_percent < LITTLE_CPU { (0.0, gain.cpu.1) } else { gain.cpu },
                        elapsed: Some(((wait * LEAST_OF_WAIT).min(100.0), (wait * MOST_OF_WAIT).min(100.0))),
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

    /// The rule on calls that saves most waiting, by its number in [`calls`](Self::calls), if that is more than any processor time that
    /// could be saved.
    pub fn waiting_rule(&self) -> Option<usize> {
        let is_wait = |&index: &usize| {
            let advice = &self.calls[index];
            advice.wall_percent >= LEAST_WAIT && advice.rule.name != ALSO_IDLE
        };
        let waits = (0..self.calls.len()).filter(is_wait);
        let index = waits
            .max_by(|&one, &other| self.calls[one].wall_percent.total_cmp(&self.calls[other].wall_percent))?;
        let largest =
            self.outlook.above.first().and_then(|(_, share)| self.pace.elapsed_percent(share.percent));
        (self.calls[index].wall_percent > largest.unwrap_or(0.0)).then_some(index)
    }

    fn gain(&self, prediction: Prediction) -> PredictedGain {
        let Prediction { low, high, is_cpu_only } = prediction;
        let is_alone = self.pace.cores().is_some_and(|cores| cores <= ALONE);
        let elapsed = match is_cpu_only {
            true => Some((0.0, 0.0)),
            // What others keep it from running goes as well, which is not sure.
            false => {
                let least = self.pace.cores().map(|cores| low * self.pace.reported * cores.min(1.0));
                least.zip(self.pace.elapsed_percent(high)).filter(|_| is_alone)
            }
        };
        PredictedGain { cpu: (low, high), elapsed }
    }
}

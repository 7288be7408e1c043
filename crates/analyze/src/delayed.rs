//! Samples delayed by the kernel: a clock samples by an interrupt, which waits while interrupts are disabled and arrives where they are enabled.
//!
//! The time passed in the caller, which had disabled them. Hardware counters interrupt by NMI on x86 and are not delayed.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::cost::Cost;
use crate::frame::{Kind, ViewFrame};
use crate::percent::rounded_shares;
use crate::view::View;

/// Functions that do little else than enable interrupts: kernel/locking/spinlock.c, kernel/sched/core.c.
const ENABLING: [&str; 7] = [
    "_raw_spin_unlock_irqrestore",
    "_raw_spin_unlock_irq",
    "_raw_read_unlock_irqrestore",
    "_raw_read_unlock_irq",
    "_raw_write_unlock_irqrestore",
    "_raw_write_unlock_irq",
    "finish_task_switch",
];

/// Events that the kernel samples by a timer's interrupt (kernel/events/core.c).
const TIMERS: [&str; 2] = ["cpu-clock", "task-clock"];

/// Smallest share that is mentioned, in percent.
const LEAST_PERCENT: f64 = 2.0;
/// Smallest number of samples that is mentioned.
const LEAST_SAMPLES: u64 = 20;
/// Callers that are mentioned.
const CALLERS: usize = 4;

impl View<'_> {
    /// Warnings about the recording, and about samples that were delayed.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.meta().warnings.clone();
        warnings.extend(self.delayed_samples());
        warnings
    }

    /// Returns a sentence on delayed samples, if there are many: where they are shown, and the callers that spent the time.
    pub fn delayed_samples(&self) -> Option<String> {
        let delayed = Delayed::new(self);
        let whole = self.whole().weight;
        let is_much = delayed.cost.weight as f64 >= whole as f64 * LEAST_PERCENT / 100.0;
        (is_much && delayed.cost.samples >= LEAST_SAMPLES).then(|| delayed.sentence(whole))
    }
}

/// Delayed samples by the function where they are shown, and by its caller.
#[derive(Default)]
struct Delayed<'v> {
    cost: Cost,
    shown: HashMap<&'v str, u64>,
    spent: HashMap<&'v str, u64>,
}

impl<'v> Delayed<'v> {
    fn new(view: &'v View<'_>) -> Self {
        let profile = view.profile();
        let is_enabling: Vec<bool> = view.frames().map(|(_, frame)| is_enabling(frame)).collect();
        let mut delayed = Self::default();
        if !is_enabling.contains(&true) {
            return delayed;
        }
        let is_timer = |name: &str| TIMERS.contains(&name.split(':').next().unwrap_or_default());
        for kept in view.samples() {
            let node = view.node(kept.node);
            let event = &profile.events[kept.sample.event];
            if !is_enabling[node.frame.0 as usize] || !is_timer(profile.strings.get(event.name)) {
                continue;
            }
            let caller =
                node.caller.map_or("unknown callers", |caller| &view.frame(view.node(caller).frame).name);
            delayed.cost += Cost::of_sample(kept.sample.weight);
            *delayed.shown.entry(&view.frame(node.frame).name).or_default() += kept.sample.weight;
            *delayed.spent.entry(caller).or_default() += kept.sample.weight;
        }
        delayed
    }

    fn sentence(&self, whole: u64) -> String {
        format!(
            "{} of the time is shown where the kernel enables interrupts, as the sampling timer waits until then: at {}; it was spent \
             with interrupts disabled in {}",
            tenths(self.cost.weight, whole),
            listed(&self.shown, ENABLING.len(), whole),
            listed(&self.spent, CALLERS, whole)
        )
    }
}

fn is_enabling(frame: &ViewFrame<'_>) -> bool {
    // Compilers name parts and variants of a function `f.isra.0`.
    frame.kind == Kind::Kernel && ENABLING.contains(&frame.name.split('.').next().unwrap_or_default())
}

fn tenths(part: u64, whole: u64) -> String {
    format!("{:.1}%", f64::from(rounded_shares(&[part], whole, 10)[0]) / 10.0)
}

/// Formats the largest of these sums with their shares, and the rest as one.
fn listed(sums: &HashMap<&str, u64>, most: usize, whole: u64) -> String {
    let mut sums: Vec<_> = sums.iter().collect();
    sums.sort_by_key(|&(name, sum)| (Reverse(sum), name));
    let (shown, rest) = sums.split_at(most.min(sums.len()));
    let mut words: Vec<_> =
        shown.iter().map(|(name, sum)| format!("{name} ({})", tenths(**sum, whole))).collect();
    let rest: u64 = rest.iter().map(|(_, sum)| **sum).sum();
    words.extend((rest > 0).then(|| format!("others ({})", tenths(rest, whole))));
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use plumb_fixtures::Made;

    use crate::filter::Filter;
    use crate::view::View;

    fn warnings(event: &str, samples: u64) -> Vec<String> {
        let mut made = Made::new();
        made.event(event, "ns");
        for _ in 0..samples {
            made.sample("app/1", "main@app;entry_SYSCALL_64@k;pipe_write@k;_raw_spin_unlock_irqrestore@k", 2);
            made.sample("app/1", "main@app;schedule@k;__schedule@k;finish_task_switch.isra.0@k", 1);
        }
        made.sample("app/1", "main@app", 3 * samples);
        View::new(&made.profile, &Filter::default()).warnings()
    }

    #[test]
    fn time_with_interrupts_disabled_is_told_by_the_caller_that_spent_it() {
        assert_eq!(
            warnings("cpu-clock", 20),
            [
                "50.0% of the time is shown where the kernel enables interrupts, as the sampling timer waits until then: at \
              _raw_spin_unlock_irqrestore (33.3%), finish_task_switch.isra.0 (16.7%); it was spent with interrupts disabled in \
              pipe_write (33.3%), __schedule (16.7%)"
            ]
        );
    }

    #[test]
    fn few_samples_and_those_of_hardware_counters_are_not_called_delayed() {
        assert_eq!((warnings("cpu-clock", 5).len(), warnings("cycles", 100).len()), (0, 0));
    }
}

//! How fast a target went: time on the clock, on processors and waiting for one, and which of them it is bound by.
//!
//! A target that others keep from the processor uses as little of it as one that sleeps: it is only said to wait where it is known that
//! it didn't want to run. Not here: what it waited for, which samples of processor time don't tell.

use plumb_profile::{Queued, QueuedThread, Scope};

use crate::kernel::KernelTime;
use crate::share::Share;
use crate::view::View;

/// With less of a processor in use or wanted than this, a target mostly waits. (VTune calls less than half a processor idle.)
const WAITS_BELOW: f64 = 0.5;
/// With more of a processor in use than this, or by one thread in use or wanted, it hardly waits.
const BUSY_FROM: f64 = 0.9;
/// From this share of processor time in the kernel it is bound by that.
const KERNEL_FROM: f64 = 50.0;
/// Below this share it is bound by user code.
const KERNEL_BELOW: f64 = 30.0;

/// What a target is bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundBy {
    /// It runs, in user code.
    Cpu,
    /// It runs, in the kernel.
    Kernel,
    /// It sleeps, waiting for something else than a processor.
    Waiting,
    /// More than one of them.
    Mixed,
}

impl BoundBy {
    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            BoundBy::Cpu => "CPU-bound",
            BoundBy::Kernel => "kernel-bound",
            BoundBy::Waiting => "waiting",
            BoundBy::Mixed => "mixed",
        }
    }
}

/// Time on the clock and on processors.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Time on the clock, in nanoseconds, if it is known.
    pub elapsed_ns: Option<u64>,
    /// Time on processors, in nanoseconds: the kernel's account of it, or what samples stand for. `None`: samples stand for something
    /// else, such as cycles.
    pub cpu_ns: Option<u64>,
    /// It is the kernel's account.
    pub is_accounted: bool,
    /// How long its threads could run and had no processor. `None`: nobody looked, or the report is of a part of them.
    pub queued: Option<Queued>,
    /// What of the samples was in the kernel, in percent; where it wasn't sampled, what of the processor time may have been. See
    /// [`user_only`](Self::user_only).
    pub kernel_percent: f64,
    /// The kernel was not sampled.
    pub user_only: bool,
    /// Processors that were there; 0: not known.
    pub cpus: u32,
    /// The recording is of the whole machine.
    pub is_machine: bool,
    /// The part of the processor time that the report is of, 0 to 1: without what was ignored.
    pub reported: f64,
}

impl RunSummary {
    /// Of what `view` keeps, where `time` is where that went.
    pub fn new(view: &View<'_>, time: &KernelTime) -> Self {
        let meta = view.meta();
        let accounted = time.accounted_ns;
        Self {
            elapsed_ns: Some(meta.duration_ns).filter(|&ns| ns > 0),
            cpu_ns: accounted.or(time.is_time.then_some(time.whole.weight)),
            is_accounted: accounted.is_some(),
            queued: meta.queued.clone(),
            kernel_percent: match (meta.user_only, accounted) {
                (false, _) => time.kernel.percent_of(time.whole),
                (true, Some(ns)) => (1.0 - time.whole.weight as f64 / ns.max(1) as f64).max(0.0) * 100.0,
                (true, None) => 100.0,
            },
            user_only: meta.user_only,
            cpus: meta.cpus,
            is_machine: meta.scope == Scope::System,
            reported: 1.0,
        }
    }

    /// Processors in use, on average.
    pub fn cores(&self) -> Option<f64> {
        Some(self.cpu_ns? as f64 / self.elapsed_ns? as f64)
    }

    /// How long threads could run and had no processor, all together, in nanoseconds: at least and at most. Time in which nobody saw
    /// what they did may be such, but for the processor time in it.
    pub fn waited_ns(&self) -> Option<(u64, u64)> {
        let queued = self.queued.as_ref()?;
        let ran_unseen = self.cpu_ns?.saturating_sub(queued.ran_ns);
        let unseen = queued.unseen_ns.saturating_sub(ran_unseen);
        Some((queued.waited_ns, queued.waited_ns.saturating_add(unseen)))
    }

    /// Processors in use or waited for, on average: at least and at most. What was stolen from the machine may have been meant for it.
    pub fn wanted(&self) -> Option<(f64, f64)> {
        let (least, most) = self.waited_ns()?;
        let stolen = self.queued.as_ref().map_or(0, |queued| queued.stolen_ns);
        let (ran, elapsed) = (self.cpu_ns? as f64, self.elapsed_ns? as f64);
        let processors = |waited: u64| (ran + waited as f64) / elapsed;
        Some((processors(least), processors(most.saturating_add(stolen))))
    }

    /// The thread that ran and waited longest.
    pub fn busiest(&self) -> Option<&QueuedThread> {
        self.queued.as_ref()?.busiest.as_ref()
    }

    /// Whether only others can have kept [`busiest`](Self::busiest) from the processor: the target's other threads ran too little.
    pub fn is_held_up_by_others(&self) -> bool {
        let of = |thread: &QueuedThread| self.cpu_ns.unwrap_or(u64::MAX).saturating_sub(thread.ran_ns);
        self.busiest().is_some_and(|thread| of(thread) < thread.waited_ns / 10)
    }

    /// Whether it hardly waits for anything but a processor.
    pub fn is_busy(&self) -> bool {
        // Of several threads it isn't known how far they wanted to run at the same time.
        let alone = self.busiest().map_or(0.0, |thread| {
            thread.ran_ns.saturating_add(thread.waited_ns) as f64 / self.elapsed_ns.unwrap_or(u64::MAX) as f64
        });
        self.used().is_some_and(|used| used.max(alone) >= BUSY_FROM)
    }

    /// Processors in use: of a machine the share of all, of a program as if there were one, as it isn't known whether it could use more.
    fn used(&self) -> Option<f64> {
        let cores = self.cores()?;
        Some(if self.is_machine { cores / f64::from(self.cpus.max(1)) } else { cores })
    }

    /// What it is bound by; `None`: that is not known.
    pub fn class(&self) -> Option<BoundBy> {
        let used = self.used()?;
        if self.is_busy() {
            return Some(match self.kernel_percent {
                // It may be the kernel's, or was sampled too little.
                percent if self.user_only && percent >= KERNEL_BELOW => return None,
                percent if percent >= KERNEL_FROM => BoundBy::Kernel,
                percent if percent < KERNEL_BELOW => BoundBy::Cpu,
                _ => BoundBy::Mixed,
            });
        }
        // Where processors idle, nobody waits for one.
        let wanted = if self.is_machine { Some((used, used)) } else { self.wanted() };
        match wanted? {
            (_, most) if most < WAITS_BELOW => Some(BoundBy::Waiting),
            (least, _) if least >= WAITS_BELOW => Some(BoundBy::Mixed),
            _ => None,
        }
    }

    /// How [`class`](Self::class) judges, in words.
    pub fn rule(&self) -> String {
        let (waits, busy) = match self.is_machine {
            true => ("of the processors in use", ""),
            false => (
                "of a processor in use or wanted, all threads together",
                ", or by one thread in use or wanted",
            ),
        };
        format!(
            "waiting: less than {WAITS_BELOW} {waits}; kernel-bound: at least {BUSY_FROM} in use{busy}, {KERNEL_FROM}% of it or more in \
             the kernel; CPU-bound: likewise, less than {KERNEL_BELOW}% in the kernel; else mixed"
        )
    }

    /// What could be gained at most by not doing what took a share of the processor time.
    pub fn gain(&self, share: Share) -> Gain {
        let left = 1.0 - share.high / 100.0;
        Gain {
            cpu_percent: share.high,
            times: if left > 0.0 { 1.0 / left } else { f64::INFINITY },
            clock_percent: self.elapsed_percent(share.high),
        }
    }

    /// What of the elapsed time goes at most with this much of the processor time, both in percent. `None`: it is not known.
    pub fn elapsed_percent(&self, cpu_percent: f64) -> Option<f64> {
        // With the processor time goes the waiting for it; where that is not known, it may be all of the time.
        let spent = match self.wanted() {
            Some((_, most)) => Some(most),
            None if self.is_machine => self.cores(),
            None => self.cores().map(|cores| cores.max(1.0)),
        };
        spent.map(|spent| (cpu_percent * self.reported * spent).min(100.0))
    }
}

/// What could be gained at most, directly: what else then goes quicker (warmer caches, shorter queues) may come on top.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// Of the processor time that is reported, in percent: the upper end of the share's interval.
    pub cpu_percent: f64,
    /// So many times as fast on the processor, by Amdahl's law: 1 / (1 − share).
    pub times: f64,
    /// Of the time on the clock, in percent, with the waiting for a processor that would go too. `None`: that time is not known.
    pub clock_percent: Option<f64>,
}

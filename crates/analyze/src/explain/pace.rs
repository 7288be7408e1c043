//! Performance summary of a target: elapsed time, CPU time and run-queue wait, and the resource that it is bound by.
//!
//! A target kept off the CPU by other processes uses as little CPU time as one that sleeps: it is classified as waiting only if it is known
//! that it did not want to run. Elsewhere: the reasons of waits, which samples of CPU time do not show.

use plumb_profile::{Queued, QueuedThread, Scope};

use crate::kernel::KernelTime;
use crate::share::Share;
use crate::view::View;

/// CPUs in use or wanted below which a target mostly waits. (VTune calls less than half a CPU idle.)
const WAITS_BELOW: f64 = 0.5;
/// CPUs in use, or in use or wanted by one thread, from which a target hardly waits.
const BUSY_FROM: f64 = 0.9;
/// Share of CPU time in the kernel, in percent, from which it is kernel-bound.
const KERNEL_FROM: f64 = 50.0;
/// Share of CPU time in the kernel, in percent, below which it is bound by user code.
const KERNEL_BELOW: f64 = 30.0;

/// The resource that a target is bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundBy {
    /// Running user code.
    Cpu,
    /// Running kernel code.
    Kernel,
    /// Sleeping, waiting for anything but a CPU.
    Waiting,
    /// More than one of these.
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

/// Elapsed time and CPU time of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Elapsed time in nanoseconds, if known.
    pub elapsed_ns: Option<u64>,
    /// CPU time in nanoseconds, from the kernel's account or from samples. `None`: samples measure another quantity,
    /// such as cycles.
    pub cpu_ns: Option<u64>,
    /// Whether `cpu_ns` is the kernel's account.
    pub is_accounted: bool,
    /// Run-queue wait of its threads. `None`: it was not recorded, or the report covers only some threads.
    pub queued: Option<Queued>,
    /// Share of samples in the kernel, in percent; if the kernel was not sampled, the share of CPU time that may have been there. See
    /// [`user_only`](Self::user_only).
    pub kernel_percent: f64,
    /// Whether the kernel was not sampled.
    pub user_only: bool,
    /// Number of CPUs; 0: not known.
    pub cpus: u32,
    /// Whether the recording is of the whole machine.
    pub is_machine: bool,
    /// Part of the CPU time that the report covers, 0 to 1: without what was ignored.
    pub reported: f64,
}

impl RunSummary {
    /// Summarizes the samples that `view` keeps; `time` is their kernel time.
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

    /// Returns the average number of CPUs in use.
    pub fn cores(&self) -> Option<f64> {
        Some(self.cpu_ns? as f64 / self.elapsed_ns? as f64)
    }

    /// Returns the bounds of the total run-queue wait of all threads, in nanoseconds. Unobserved time counts
    /// towards the upper bound, except for the CPU time in it.
    pub fn waited_ns(&self) -> Option<(u64, u64)> {
        let queued = self.queued.as_ref()?;
        let ran_unseen = self.cpu_ns?.saturating_sub(queued.ran_ns);
        let unseen = queued.unseen_ns.saturating_sub(ran_unseen);
        Some((queued.waited_ns, queued.waited_ns.saturating_add(unseen)))
    }

    /// Returns the bounds of the average number of CPUs in use or waited for. Time stolen from the machine may have been the target's.
    pub fn wanted(&self) -> Option<(f64, f64)> {
        let (least, most) = self.waited_ns()?;
        let stolen = self.queued.as_ref().map_or(0, |queued| queued.stolen_ns);
        let (ran, elapsed) = (self.cpu_ns? as f64, self.elapsed_ns? as f64);
        let processors = |waited: u64| (ran + waited as f64) / elapsed;
        Some((processors(least), processors(most.saturating_add(stolen))))
    }

    /// Returns the thread with the longest CPU time and run-queue wait.
    pub fn busiest(&self) -> Option<&QueuedThread> {
        self.queued.as_ref()?.busiest.as_ref()
    }

    /// Whether only other processes can have kept [`busiest`](Self::busiest) off the CPU: the target's other threads ran too little.
    pub fn is_held_up_by_others(&self) -> bool {
        let of = |thread: &QueuedThread| self.cpu_ns.unwrap_or(u64::MAX).saturating_sub(thread.ran_ns);
        self.busiest().is_some_and(|thread| of(thread) < thread.waited_ns / 10)
    }

    /// Whether the target hardly waits for anything but a CPU.
    pub fn is_busy(&self) -> bool {
        // For several threads it is not known how far they wanted to run at the same time.
        let alone = self.busiest().map_or(0.0, |thread| {
            thread.ran_ns.saturating_add(thread.waited_ns) as f64 / self.elapsed_ns.unwrap_or(u64::MAX) as f64
        });
        self.used().is_some_and(|used| used.max(alone) >= BUSY_FROM)
    }

    /// Returns the CPUs in use: for a machine as a share of all, for a program as if there were one, as it may not be able to use more.
    fn used(&self) -> Option<f64> {
        let cores = self.cores()?;
        Some(if self.is_machine { cores / f64::from(self.cpus.max(1)) } else { cores })
    }

    /// Returns the resource that it is bound by; `None`: not known.
    pub fn class(&self) -> Option<BoundBy> {
        let used = self.used()?;
        if self.is_busy() {
            return Some(match self.kernel_percent {
                // The rest may be kernel time, or too few samples.
                percent if self.user_only && percent >= KERNEL_BELOW => return None,
                percent if percent >= KERNEL_FROM => BoundBy::Kernel,
                percent if percent < KERNEL_BELOW => BoundBy::Cpu,
                _ => BoundBy::Mixed,
            });
        }
        // While CPUs are idle, nothing waits for one.
        let wanted = if self.is_machine { Some((used, used)) } else { self.wanted() };
        match wanted? {
            (_, most) if most < WAITS_BELOW => Some(BoundBy::Waiting),
            (least, _) if least >= WAITS_BELOW => Some(BoundBy::Mixed),
            _ => None,
        }
    }

    /// Returns the rule of [`class`](Self::class) in words.
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

    /// Returns the upper bound of the gain from removing a share of the CPU time.
    pub fn gain(&self, share: Share) -> Gain {
        let left = 1.0 - share.high / 100.0;
        Gain {
            cpu_percent: share.high,
            times: if left > 0.0 { 1.0 / left } else { f64::INFINITY },
            clock_percent: self.elapsed_percent(share.high),
        }
    }

    /// Returns the most elapsed time that disappears with this much CPU time, both in percent. `None`: unknown.
    pub fn elapsed_percent(&self, cpu_percent: f64) -> Option<f64> {
        // The run-queue wait for this CPU time disappears too; where it is unknown, it may be the rest of the time.
        let spent = match self.wanted() {
            Some((_, most)) => Some(most),
            None if self.is_machine => self.cores(),
            None => self.cores().map(|cores| cores.max(1.0)),
        };
        spent.map(|spent| (cpu_percent * self.reported * spent).min(100.0))
    }
}

/// Upper bound of the direct gain. Other code may get faster too (warmer caches, shorter queues), which is not included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// In percent of the reported CPU time: the upper end of the share's interval.
    pub cpu_percent: f64,
    /// Speedup in CPU time, by Amdahl's law: 1 / (1 − share).
    pub times: f64,
    /// In percent of the elapsed time, with the run-queue wait that would go too. `None`: the elapsed time is not known.
    pub clock_percent: Option<f64>,
}

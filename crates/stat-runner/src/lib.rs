//! Runs a command to measure it without sampling: time, memory, and counts of events.
//!
//! The kernel's accounting for the command and the descendants that it waited for is exact. Elsewhere: comparing several runs.

mod document;
mod metrics;
mod run_set;

use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use plumb_capture_api::{KernelCounts, StatCounters};
use plumb_capture_perf::{Counters, Error, EventCount, Whom, count_events_of, trim_memory};
use plumb_process::usage::{CpuTime, Usage, monotonic_ns, nanoseconds};
use plumb_process::{Host, pidfd};
use plumb_target::signals::{self, Signals};
use plumb_target::{
    Cgroup, Child, Descendants, Heeded, Held, Launch, Notice, Prints, SignalPolicy, TargetError,
};

pub use document::StatDocument;
pub use metrics::{METRICS, Metric, metric};
pub use run_set::{RunSet, ThreadGroup};

/// Rate, per second of CPU time, at which the kernel's share is sampled. Not a divisor of the rates at which programs use timers.
const TICKS_HZ: u32 = 2999;
/// Tasks are freed some time after they have ended (an RCU grace period): longest wait for that, and the polling interval.
const FREED: (Duration, Duration) = (Duration::from_millis(200), Duration::from_millis(5));
/// Difference between the scheduler's accounting of threads and their total, in nanoseconds, up to which all threads count as freed.
const ALL_THERE_NS: u64 = 200_000;

/// Measurements of one run of a command.
#[derive(Clone, Debug)]
pub struct RunStats {
    /// Exit status.
    pub status: ExitStatus,
    /// Time from its exec to its end.
    pub wall: Duration,
    /// Resources used by it and the descendants that it waited for.
    pub usage: Usage,
    /// Resident memory before its exec, in bytes, which is the recorder's. The kernel counts it as the command's, so for a smaller command this is
    /// the only known bound.
    pub rss_floor_bytes: u64,
    /// CPU time of all its descendants, if a cgroup accounts for it: more than `usage` if it left some behind or did not wait for them.
    pub all: Option<CpuTime>,
    /// Descendants that outlive it, if a cgroup holds them.
    pub left: Descendants,
    /// Counts of perf events.
    pub counts: Vec<EventCount>,
    /// Counts of the BPF programs, if there are any.
    pub seen: Option<KernelCounts>,
    /// Whether a signal asked the command or the recorder to end; no other run should be started then.
    pub interrupted: bool,
}

/// Runs commands and measures them.
pub struct StatRunner {
    host: Host,
    watcher: Option<Box<dyn StatCounters>>,
    signals: Signals,
    say: fn(&str, Notice),
}

impl StatRunner {
    /// Prepares to run commands. `say` informs the user about a command of this name that did not end on Ctrl-C.
    pub fn new(watcher: Option<Box<dyn StatCounters>>, say: fn(&str, Notice)) -> Result<Self, Error> {
        let signals = Signals::watch().map_err(Error::system("watching for signals"))?;
        // If that fails, opening events says so.
        let _ = plumb_process::usage::raise_file_limit();
        Ok(Self { host: Host::read(), watcher, signals, say })
    }

    /// Runs a command to its end.
    pub fn run(&mut self, launch: &Launch, prints: &Prints) -> Result<RunStats, Error> {
        let failed = |error| TargetError::Command {
            name: launch.program.to_string_lossy().into_owned(),
            error: launch.explain(error),
        };
        trim_memory();
        let command = launch.command(prints).map_err(failed)?;
        let held = Held::fork(command, &launch.name(), self.signals.before()).map_err(failed)?;
        let cgroup = Cgroup::create().ok().filter(|cgroup| cgroup.add(held.pid()).is_ok());
        let own = Whom::Thread(held.pid());
        let cpu = self.host.cpus.first().copied().unwrap_or(0);
        let counted = cgroup.as_ref().filter(|cgroup| count_events_of(cgroup, cpu).is_ok());
        let counted = counted.map(|cgroup| Whom::Cgroup(cgroup.as_fd()));
        let whom = counted.unwrap_or(own);
        let mut counters = Counters::start(whom, &self.host.cpus);
        if let Some(watcher) = &mut self.watcher {
            let process = pidfd(held.pid()).map_err(Error::system("finding the command"))?;
            watcher.take();
            watcher.follow(process.as_fd()).map_err(Error::system("following the command"))?;
            let everyone = if counted.is_some() { whom } else { Whom::Everyone };
            counters
                .tick((everyone, &self.host.cpus), TICKS_HZ, watcher.program())
                .map_err(Error::system("starting the clock"))?;
        }
        let rss_floor_bytes = plumb_process::peak_rss(held.pid()).unwrap_or(0);
        let began = Instant::now();
        let child = held.release().map_err(failed)?;
        let (status, usage, interrupted) = self.wait(child, &launch.name())?;
        let wall = began.elapsed();
        let counts = counters.stop();
        let all = cgroup.as_ref().and_then(Cgroup::cpu_time);
        let left = cgroup.as_ref().map(Cgroup::pids).unwrap_or_default();
        let left = Descendants::new(launch.name(), left);
        let seen = self.watcher.as_mut().map(|watcher| {
            wait_for_freed(&**watcher, usage.cpu);
            watcher.take()
        });
        Ok(RunStats { status, wall, usage, rss_floor_bytes, all, left, counts, seen, interrupted })
    }

    fn wait(&self, child: Child, name: &str) -> Result<(ExitStatus, Usage, bool), Error> {
        let wait = || child.try_wait_usage().map_err(Error::system("waiting for the command"));
        let process = pidfd(child.pid()).ok();
        let mut steering = SignalPolicy::default();
        loop {
            let files: Vec<_> = process.iter().map(AsFd::as_fd).chain([self.signals.as_fd()]).collect();
            // Without a pidfd, SIGCHLD reports the end.
            let patience = steering.patience_ms(1000);
            signals::poll(&files, patience).map_err(Error::system("waiting for the command"))?;
            // Handle signals before checking for the end: a Ctrl-C ends the command, and also applies to further runs.
            let heeded = steering.heed(&self.signals, Some(child));
            if let Some((status, usage)) = wait()? {
                return Ok((status, usage, steering.is_interrupted()));
            }
            if let Some(Heeded::End(_)) = heeded {
                let error = std::io::Error::other("interrupted; it may still run");
                return Err(Error::system("waiting for the command")(error));
            }
            if let Some(notice) = steering.notice(Instant::now()) {
                (self.say)(name, notice);
            }
        }
    }
}

/// Waits until nearly all threads of a command have been freed; for some, no record ever arrives.
fn wait_for_freed(watcher: &dyn StatCounters, used: CpuTime) {
    let until = monotonic_ns() + nanoseconds(FREED.0);
    while watcher.runtime_ns() + ALL_THERE_NS < used.total_ns() && monotonic_ns() < until {
        std::thread::sleep(FREED.1);
    }
}

//! Kernel time: what system calls of every process take, summed up in the kernel all the time, by service.
//!
//! Sums of processes that have ended are taken out of the kernel within two [sweeps](KernelTime::sweep), which come the sooner the more
//! processes begin, and are given to services as soon as the recorder has read how the process ended: what is kept does not grow with time.
//! A process counts for the program that it runs last. Invariant: each call that ended is in one window of one service, was left out
//! by a rule, or is counted as lost.
//!
//! Not here: how calls are counted (`capture-bpf`), whose a process is (`labels`), the wire format.

mod books;
mod services;

use std::ffi::OsStr;
use std::io;
use std::time::{Duration, Instant};

use plumb_capture_bpf::ProcessSums;
use plumb_profile::Profile;
use rustix::process::{Pid, test_kill_process};

use crate::error::AgentError;
use crate::figures::WindowFigures;
use crate::labels::{LastLives, ProcessDirectory, ProcessState};
use crate::options::AgentOptions;
use books::{Books, CallSum, Reading, SweepPace};
use services::ServiceSums;

/// Time between two measurements of what it costs: the first may have been disturbed, and calls are dearer while the kernel keeps its account of
/// programs.
const MEASURE: Duration = Duration::from_secs(30);
/// So long the recorder may take to say whose a process was that has ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sums that there is room for by each process that runs at the start, if they are many: twice as many as most processes have.
const ROOM_EACH: u32 = 64;

/// A process that has ended, and whose service is not known yet.
struct EndedProcess {
    pid: u32,
    calls: Vec<CallSum>,
    since: Instant,
}

/// Sums in the kernel, and what becomes of them.
pub(crate) struct KernelTime {
    sums: ProcessSums,
    books: Books,
    ended: Vec<EndedProcess>,
    /// Processes that nobody has looked at yet.
    met: Vec<u32>,
    services: ServiceSums,
    pace: SweepPace,
    measured: Instant,
    patience: Duration,
    /// As of the last window.
    lost: u64,
    cost_ns: f64,
}

impl KernelTime {
    /// Begins, if that is wanted.
    pub fn begin(options: &AgentOptions) -> Result<Option<Self>, AgentError> {
        if !options.profiles.kernel_time {
            return Ok(None);
        }
        let room = ProcessSums::ROOM.max(ROOM_EACH.saturating_mul(processes()));
        let sums = ProcessSums::load(room).map_err(AgentError::KernelTime)?;
        let overhead = sums.overhead();
        tracing::info!(
            each_call_ns = overhead.own_ns().round(),
            "kernel time is measured: each system call of the machine takes so much longer"
        );
        let (books, ended, met, services) = Default::default();
        let (pace, measured) = (SweepPace::begin(room as usize), Instant::now());
        let (patience, lost, cost_ns) = (PATIENCE, sums.lost(), 0.0);
        Ok(Some(Self { sums, books, ended, met, services, pace, measured, patience, lost, cost_ns }))
    }

    /// Until the next sweep.
    pub fn left(&self) -> Duration {
        self.pace.left()
    }

    /// Makes room in the kernel, if it is time to.
    pub fn sweep(&mut self) {
        if self.left().is_zero() {
            self.read(false);
        }
        if self.measured.elapsed() >= MEASURE {
            self.measured = Instant::now();
            if let Err(error) = self.sums.measure() {
                tracing::warn!(%error, "what system calls take longer was not measured again");
            }
            let overhead = self.sums.overhead();
            tracing::debug!(
                each_call_ns = overhead.own_ns(),
                floor_ns = overhead.floor_ns(),
                "measured again"
            );
        }
    }

    /// Time that system calls of the machine took longer since the last time, in nanoseconds.
    pub fn take_cost_ns(&mut self) -> u64 {
        std::mem::take(&mut self.cost_ns) as u64
    }

    /// Looks at new processes, and gives those that have ended to their services.
    pub fn look(&mut self, profile: &Profile, directory: &mut ProcessDirectory) {
        self.met.drain(..).for_each(|pid| directory.meet(pid));
        if self.ended.is_empty() {
            return;
        }
        let lives = LastLives::of(profile);
        let (services, patience) = (&mut self.services, self.patience);
        self.ended.retain_mut(|one| {
            let is_early = one.since.elapsed() < patience;
            let state = if is_early { ProcessState::Ending } else { ProcessState::Ended };
            let Some(owner) = directory.owner(profile, &lives, one.pid, state) else { return true };
            services.add(owner, std::mem::take(&mut one.calls));
            false
        });
    }

    /// The figures of a window that was taken out.
    pub fn close(&mut self, profile: &Profile, directory: &mut ProcessDirectory) -> WindowFigures {
        // Who ended in this window without being met before is met first: the next profile does not know such processes.
        self.read(false);
        let running = self.read(true);
        let lives = LastLives::of(profile);
        let since = Instant::now();
        for (pid, calls) in running {
            match directory.owner(profile, &lives, pid, ProcessState::Running) {
                Some(owner) => self.services.add(owner, calls),
                // It has ended since.
                None => self.ended.push(EndedProcess { pid, calls, since }),
            }
        }
        self.books.pids().for_each(|pid| directory.keep(pid));
        self.look(profile, directory);
        let floor_ns = self.sums.overhead().floor_ns();
        let lost = self.sums.lost();
        let lost_calls = lost.saturating_sub(std::mem::replace(&mut self.lost, lost));
        if lost_calls > 0 {
            tracing::warn!(
                lost_calls,
                "processes begin faster than their system calls can be summed up: some are in no figure of kernel time"
            );
        }
        WindowFigures { services: self.services.take(floor_ns), lost_calls }
    }

    /// The figures of the last window, with all that is still in doubt.
    pub fn end(mut self, profile: &Profile, directory: &mut ProcessDirectory) -> WindowFigures {
        self.patience = Duration::ZERO;
        self.close(profile, directory)
    }

    /// Reads all sums, takes out those of processes that have ended, and gives back what others called since the last window,
    /// by process, if a window ends.
    fn read(&mut self, ends_window: bool) -> Vec<(u32, Vec<CallSum>)> {
        let mut reading = Reading::begin(self.books.ended(is_there), ends_window);
        let books = &mut self.books;
        let read = self.sums.read(|key, sum| books.note(&mut reading, key, sum));
        let forgotten = read.and_then(|()| self.sums.forget(reading.to_forget()));
        if let Err(error) = &forgotten {
            tracing::warn!(%error, "sums of system calls stay in the kernel until the next look");
        }
        let closed = self.books.close(reading, forgotten.is_ok());
        self.cost_ns += closed.new_calls as f64 * self.sums.overhead().own_ns();
        self.pace.note(closed.kept, closed.new_sums);
        let since = Instant::now();
        let ended = closed.ended.into_iter().map(|(pid, calls)| EndedProcess { pid, calls, since });
        self.ended.extend(ended);
        self.met.extend(closed.met);
        closed.running
    }
}

/// How many processes run.
fn processes() -> u32 {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process = |name: &OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let count = entries.filter(|entry| is_process(&entry.file_name())).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Whether there is a process with this id; one that has ended is there until it was waited for.
fn is_there(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| {
        let result = test_kill_process(pid).map_err(io::Error::from);
        !result.is_err_and(|error| error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()))
    })
}

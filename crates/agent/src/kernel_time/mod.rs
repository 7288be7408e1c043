//! Kernel time: CPU time of every process's system calls, summed up continuously in the kernel and reported by service.
//!
//! Sums of an ended process are removed from the kernel within two [sweeps](KernelTime::sweep), which come sooner the more processes begin. They
//! are assigned to a service as soon as the recorder has read how the process ended, so memory does not grow with time.
//! A process counts for the program that it runs last. Invariant: each completed call is in one window of one service, was excluded
//! by a rule, or is counted as lost.
//!
//! Elsewhere: counting calls (`capture-bpf`), the owner of a process (`labels`), the wire format.

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

/// Interval between two measurements of the tracing overhead. The first may have been disturbed, and calls are dearer while the kernel keeps
/// statistics on BPF run time.
const MEASURE: Duration = Duration::from_secs(30);
/// Longest wait for the recorder to identify the owner of an ended process.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sums reserved for each process running at the start, if that exceeds the default: twice what most processes have.
const ROOM_EACH: u32 = 64;

/// An ended process whose service is not known yet.
struct EndedProcess {
    pid: u32,
    calls: Vec<CallSum>,
    since: Instant,
}

/// The sums in the kernel, and their assignment to services.
pub(crate) struct KernelTime {
    sums: ProcessSums,
    books: Books,
    ended: Vec<EndedProcess>,
    /// Processes that the directory has not seen yet.
    met: Vec<u32>,
    services: ServiceSums,
    pace: SweepPace,
    measured: Instant,
    patience: Duration,
    /// Lost calls at the end of the last window.
    lost: u64,
    cost_ns: f64,
}

impl KernelTime {
    /// Starts counting system calls, if the options request kernel time.
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

    /// Time until the next sweep.
    pub fn left(&self) -> Duration {
        self.pace.left()
    }

    /// Frees room in the kernel's table and measures the overhead again, when each is due.
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

    /// Nanoseconds by which the machine's system calls took longer since the last call.
    pub fn take_cost_ns(&mut self) -> u64 {
        std::mem::take(&mut self.cost_ns) as u64
    }

    /// Registers new processes, and assigns ended ones to their services.
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

    /// Figures of the window that was just taken out.
    pub fn close(&mut self, profile: &Profile, directory: &mut ProcessDirectory) -> WindowFigures {
        // Processes that ended in this window unseen are registered first: the next profile does not contain them.
        self.read(false);
        let running = self.read(true);
        let lives = LastLives::of(profile);
        let since = Instant::now();
        for (pid, calls) in running {
            match directory.owner(profile, &lives, pid, ProcessState::Running) {
                Some(owner) => self.services.add(owner, calls),
                // The process has ended since.
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

    /// Figures of the last window, including ended processes whose owner is still uncertain.
    pub fn end(mut self, profile: &Profile, directory: &mut ProcessDirectory) -> WindowFigures {
        self.patience = Duration::ZERO;
        self.close(profile, directory)
    }

    /// Reads all sums and removes those of ended processes from the kernel. If a window ends, returns the calls of the other processes
    /// since the last window, by process id.
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

/// Number of running processes.
fn processes() -> u32 {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process = |name: &OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let count = entries.filter(|entry| is_process(&entry.file_name())).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Whether a process with this id exists. A zombie does.
fn is_there(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| {
        let result = test_kill_process(pid).map_err(io::Error::from);
        !result.is_err_and(|error| error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()))
    })
}

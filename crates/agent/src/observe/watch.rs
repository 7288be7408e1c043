//! Traces the system calls of a few processes for some seconds, with the BPF programs of `plumb trace`.
//!
//! Invariant: the result has no gaps: if calls come faster than the ring can hold, it ends at the first lost call.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use plumb_capture_bpf::{CallFilter, Calls, LoadError, Switch, Want, null_call_ns};
use plumb_process::pidfd;
use plumb_process::usage::monotonic_ns;
use plumb_syscalls::{Abi, At, CallEnd, SystemCall, Take, What, name, number};

use crate::clock::unix_ns;

/// Ring size in bytes: some thousand calls.
const RING: u32 = 512 << 10;
/// Most calls in a trace.
const ENOUGH: usize = 20_000;
/// Interval between two reads of the ring, and the longer one after a read with few calls.
const STEP: Duration = Duration::from_millis(100);
const LONG_STEP: Duration = Duration::from_millis(500);
/// A read with fewer calls has few; the ring holds many times that.
const FEW: usize = 64;
/// Call numbers that are distinguished.
const NUMBERS: u32 = 511;
/// Bytes of a path that are copied.
const PATH: u16 = 64;
/// Calls that open a file, and the argument that is its path.
const OPENS: [(&str, u8); 2] = [("open", 0), ("openat", 1)];
/// Directories whose file names are kept. They show what a program asks the kernel, and reveal nothing about anybody's files.
const TOLD: [&str; 2] = ["/proc", "/sys"];

/// A traced call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SeenCall {
    pub name: &'static str,
    pub args: [u64; 6],
    /// Return value, if it did not fail.
    pub value: Option<i64>,
    pub begin_ns: u64,
    pub end_ns: u64,
    /// The call began before the trace.
    pub is_late: bool,
    /// Path of the file whose descriptor is the first argument, if that is below `/proc` or `/sys`.
    pub path: Option<String>,
}

/// The calls in a period, by the monotonic clock.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenCalls {
    /// Ordered by end.
    pub calls: Vec<SeenCall>,
    pub begin_ns: u64,
    pub end_ns: u64,
    /// Offset from these times to nanoseconds since 1970.
    pub to_unix_ns: u64,
    /// Nanoseconds by which tracing slowed the machine's system calls.
    pub cost_ns: u64,
}

/// The tracing programs, which are off between traces.
pub(crate) struct CallWatch {
    calls: Calls,
    switch: Switch,
    /// Overhead of tracing for each call on the machine, once it is known.
    each_ns: Option<f64>,
}

impl CallWatch {
    /// Loads the programs, switched off.
    pub fn load() -> Result<Self, LoadError> {
        let filter = CallFilter { min_ns: 0, failed_only: false, counts_met: true, ring_bytes: RING };
        let mut calls = Calls::load(filter)?;
        let switch = calls.switch();
        switch.take_off();
        let opens: HashMap<u32, u8> =
            OPENS.iter().filter_map(|&(name, path)| Some((number(Abi::NATIVE, name)?, path))).collect();
        for number in 0..NUMBERS {
            let take = |&argument: &u8| Take {
                at: At::Argument(argument),
                what: What::String { most: PATH },
                at_end: false,
            };
            let want = Want {
                show: true,
                takes: opens.get(&number).map(take).into_iter().collect(),
                ..Want::default()
            };
            if let Err(error) = calls.want(Abi::NATIVE, number, &want) {
                // The program's own map refuses the entry: nothing that a user could change.
                tracing::debug!(number, %error, "calls of this number are not seen");
            }
        }
        Ok(Self { calls, switch, each_ns: None })
    }

    /// Traces processes for `time`, or until `stop` returns true. Ended processes are skipped.
    pub(super) fn run(
        &mut self,
        pids: &[u32],
        time: Duration,
        stop: impl Fn() -> bool,
    ) -> io::Result<SeenCalls> {
        let mut processes: Vec<(u32, OwnedFd)> =
            pids.iter().filter_map(|&pid| Some((pid, pidfd(pid).ok()?))).collect();
        // Discards the rest of an earlier trace.
        self.calls.take(|_| {});
        processes.retain(|(_, pid)| self.calls.follow(pid.as_fd()).is_ok());
        let mut seen = SeenCalls::default();
        if processes.is_empty() {
            return Ok(seen);
        }
        let met = self.calls.met();
        let result = self.watched(&processes, time, stop, &mut seen);
        self.switch.turn_off()?;
        self.switch.take_off();
        let met = self.calls.met().saturating_sub(met);
        seen.cost_ns = (met as f64 * self.each_ns.unwrap_or_default()) as u64;
        for (_, pid) in &processes {
            // The process may have ended.
            let _ = self.calls.forget(pid.as_fd());
        }
        result.map(|()| seen)
    }

    fn watched(
        &mut self,
        processes: &[(u32, OwnedFd)],
        time: Duration,
        stop: impl Fn() -> bool,
        seen: &mut SeenCalls,
    ) -> io::Result<()> {
        let before = self.calls.counts().dropped;
        let begin = Instant::now();
        seen.begin_ns = monotonic_ns();
        seen.to_unix_ns = unix_ns().saturating_sub(seen.begin_ns);
        self.switch.turn_on()?;
        let bare_ns = self.calls.bare_ns();
        self.each_ns.get_or_insert_with(|| (null_call_ns() - bare_ns).max(0.0));
        let mut files: HashMap<(u32, i64), String> = HashMap::new();
        let mut step = STEP;
        loop {
            std::thread::sleep(step.min(time.saturating_sub(begin.elapsed())));
            let known = seen.calls.len();
            let is_full = self.calls.counts().dropped > before;
            seen.end_ns = monotonic_ns();
            self.calls.take(|call| {
                if processes.iter().any(|(pid, _)| *pid == call.pid) {
                    seen.calls.extend(read(call, &mut files));
                }
            });
            step = if seen.calls.len() - known < FEW { LONG_STEP } else { STEP };
            if is_full {
                seen.end_ns = seen.calls.last().map_or(seen.end_ns, |last| last.end_ns);
            }
            if is_full || begin.elapsed() >= time || seen.calls.len() >= ENOUGH || stop() {
                return Ok(());
            }
        }
    }
}

/// Converts a call, with the path of its descriptor. `files`: files opened since the trace began, by process and descriptor.
fn read(call: &SystemCall<'_>, files: &mut HashMap<(u32, i64), String>) -> Option<SeenCall> {
    let name = name(call.abi, call.number)?;
    let CallEnd::Returned(_) = call.end else { return None };
    let value = call.value();
    let descriptor = (call.pid, i64::try_from(call.args[0]).unwrap_or(-1));
    let path = files.get(&descriptor).cloned();
    if name == "close" {
        files.remove(&descriptor);
    }
    if let (true, Some(opened)) = (OPENS.iter().any(|(open, _)| *open == name), value) {
        let path = call.piece(0).map(|piece| String::from_utf8_lossy(piece.bytes).into_owned());
        let path = path.filter(|path| {
            TOLD.iter().any(|told| {
                path.strip_prefix(told).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        });
        match path {
            Some(path) => _ = files.insert((call.pid, opened), path),
            None => _ = files.remove(&(call.pid, opened)),
        }
    }
    let (args, begin_ns, end_ns, is_late) = (call.args, call.begin_ns, call.end_ns, call.is_late);
    Some(SeenCall { name, args, value, begin_ns, end_ns, is_late, path })
}

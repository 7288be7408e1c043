//! System calls of a few processes, for some seconds, from the programs that `plumb trace` uses.
//!
//! Invariant: what comes back has no gaps: where calls come faster than there is room for, it ends with the first that found none.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use plumb_capture_bpf::{CallFilter, Calls, LoadError, Switch, Want, null_call_ns};
use plumb_process::pidfd;
use plumb_process::usage::monotonic_ns;
use plumb_syscalls::{Abi, At, CallEnd, SystemCall, Take, What, name, number};

use crate::clock::unix_ns;

/// Bytes of the ring: some thousand calls.
const RING: u32 = 512 << 10;
/// Calls that are enough.
const ENOUGH: usize = 20_000;
/// Time between two looks at the ring, and where few calls came before the last.
const STEP: Duration = Duration::from_millis(100);
const LONG_STEP: Duration = Duration::from_millis(500);
/// The ring holds many times as many.
const FEW: usize = 64;
/// Numbers of calls that are told apart.
const NUMBERS: u32 = 511;
/// Bytes of a path.
const PATH: u16 = 64;
/// Calls that open a file: the argument that is its path.
const OPENS: [(&str, u8); 2] = [("open", 0), ("openat", 1)];
/// Only of files below these the names are kept: they say what a program asks the kernel, and nothing of anybody's files.
const TOLD: [&str; 2] = ["/proc", "/sys"];

/// A call that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SeenCall {
    pub name: &'static str,
    pub args: [u64; 6],
    /// What it gave back, if it did not fail.
    pub value: Option<i64>,
    pub begin_ns: u64,
    pub end_ns: u64,
    /// It had begun before anybody looked.
    pub is_late: bool,
    /// The file that its first argument is a descriptor of, if that is below `/proc` or `/sys`.
    pub path: Option<String>,
}

/// What was seen in a stretch of time, by the monotonic clock.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenCalls {
    /// In the order of their ends.
    pub calls: Vec<SeenCall>,
    pub begin_ns: u64,
    pub end_ns: u64,
    /// To be added to times for nanoseconds since 1970.
    pub to_unix_ns: u64,
    /// How much longer system calls of the machine took because of it, in nanoseconds.
    pub cost_ns: u64,
}

/// The programs, which are off until somebody is watched.
pub(crate) struct CallWatch {
    calls: Calls,
    switch: Switch,
    /// What a system call that does nothing takes while nobody watches.
    bare_ns: f64,
    /// How much longer each call of the machine takes while the programs are on, once that is known.
    each_ns: Option<f64>,
}

impl CallWatch {
    /// Loads them.
    pub fn load() -> Result<Self, LoadError> {
        let filter = CallFilter { min_ns: 0, failed_only: false, counts_met: true, ring_bytes: RING };
        let bare_ns = null_call_ns();
        let mut calls = Calls::load(filter)?;
        let switch = calls.switch();
        switch.take_off();
        let opens: HashMap<u32, u8> =
            OPENS.iter().filter_map(|&(name, path)| Some((number(Abi::X86_64, name)?, path))).collect();
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
            if let Err(error) = calls.want(Abi::X86_64, number, &want) {
                // It is a map of its own that refuses: nothing a user could change.
                tracing::debug!(number, %error, "calls of this number are not seen");
            }
        }
        Ok(Self { calls, switch, bare_ns, each_ns: None })
    }

    /// Watches processes for some time, or until `stop`. Those that have ended are left out.
    pub(super) fn run(
        &mut self,
        pids: &[u32],
        time: Duration,
        stop: impl Fn() -> bool,
    ) -> io::Result<SeenCalls> {
        let mut processes: Vec<(u32, OwnedFd)> =
            pids.iter().filter_map(|&pid| Some((pid, pidfd(pid).ok()?))).collect();
        // What an earlier watch left.
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
            // It may have ended.
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
        let bare_ns = self.bare_ns;
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

/// A call with what its descriptor is. `files`: what was opened since the watch began, by process and descriptor.
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

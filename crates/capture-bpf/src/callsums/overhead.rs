//! Cost of tracing calls, measured at the start on a call that does nothing.
//!
//! Separate threads make these calls, and the mark that the first one is in a call is removed. The fastest round is used: the others were
//! disturbed.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use plumb_process::pidfd;
use plumb_syscalls::{Abi, CallOverhead, number};

use super::CallSums;
use super::wire::COUNT_NOW;

/// Calls per round.
const CALLS: u32 = 2000;
/// Number of rounds.
pub(super) const ROUNDS: u32 = 9;

/// Nanoseconds of a system call that does nothing, measured now, which takes some milliseconds.
pub fn null_call_ns() -> f64 {
    (0..ROUNDS).map(|_| round_ns()).fold(f64::INFINITY, f64::min)
}

pub(super) fn round_ns() -> f64 {
    let begin = Instant::now();
    for _ in 0..CALLS {
        std::hint::black_box(std::os::unix::process::parent_id());
    }
    begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

impl CallSums {
    /// Measures the cost of being followed, and resets all counts.
    pub(super) fn measure(&mut self, tax: &mut CallOverhead) -> io::Result<()> {
        let own = pidfd(std::process::id())?;
        self.followed.add_as(own.as_fd(), COUNT_NOW)?;
        self.followed.begin()?;
        let (mut followed, mut measured) = (f64::INFINITY, f64::INFINITY);
        let mut before = self.null_calls();
        for _ in 0..ROUNDS {
            let round = std::thread::Builder::new().spawn(round_ns)?.join();
            followed = followed.min(round.map_err(|_| io::Error::other("a thread that measures ended"))?);
            let (calls, wall_ns) = self.null_calls();
            if calls > before.0 {
                measured = measured.min((wall_ns - before.1) as f64 / (calls - before.0) as f64);
            }
            before = (calls, wall_ns);
        }
        self.followed.reset()?;
        self.followed.forget(own.as_fd())?;
        self.forget_in_call(own.as_fd());
        tax.followed_ns = followed;
        tax.measured_ns = Some(measured).filter(|measured| self.timed && measured.is_finite());
        self.forget_sums()
    }

    /// Number and total time of calls that do nothing, from the sums so far.
    fn null_calls(&self) -> (u64, u64) {
        let getppid = number(Abi::NATIVE, "getppid");
        let own = self.accounts().into_iter().filter(|(by, _)| by.number == getppid);
        let times = own.filter_map(|(_, account)| account.times);
        times.fold((0, 0), |(calls, wall_ns), times| (calls + times.calls, wall_ns + times.wall_ns))
    }
}

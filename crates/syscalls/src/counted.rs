//! Calls that were counted and timed in the kernel, by name, and what counting them cost.
//!
//! Elsewhere: the sums of one name (`account`), counting (capture-bpf).

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::{Abi, Account, named};

/// Calls of one name.
#[derive(Clone, Debug)]
pub struct CountedCall {
    /// Name.
    pub name: Cow<'static, str>,
    /// Counts and times, less the tracing overhead.
    pub account: Account,
}

impl CountedCall {
    /// Total time, or the number of calls if not timed.
    pub fn weight(&self) -> u64 {
        self.account.times.as_ref().map_or(self.account.calls, |times| times.wall_ns)
    }
}

/// Calls of a thread, process or file.
#[derive(Clone, Debug)]
pub struct CallsApart {
    /// Thread or process ID, or a file's inode number.
    pub id: u64,
    /// Name of the thread, process or file.
    pub name: String,
    /// Calls, largest weight first.
    pub calls: Vec<CountedCall>,
}

/// All counts.
#[derive(Clone, Debug)]
pub struct CountedCalls {
    /// Calls, largest weight first.
    pub calls: Vec<CountedCall>,
    /// The counts by thread, process or file, if asked for.
    pub groups: Vec<CallsApart>,
    /// The kernel's own counts.
    pub events: TaskEvents,
    /// Cost of counting.
    pub overhead: CallOverhead,
    /// Whether calls were timed.
    pub is_timed: bool,
}

/// Names calls by number, and subtracts the tracing overhead of each; largest weight first.
pub fn counted_calls(accounts: BTreeMap<Option<u32>, Account>, floor_ns: u64) -> Vec<CountedCall> {
    let call = |(number, account): (Option<u32>, Account)| CountedCall {
        name: number.map_or("others".into(), |number| named(Abi::NATIVE, number)),
        account: Account { times: account.times.map(|times| times.without(floor_ns)), ..account },
    };
    let mut calls: Vec<CountedCall> = accounts.into_iter().map(call).collect();
    calls.sort_by(|one, other| (other.weight(), &one.name).cmp(&(one.weight(), &other.name)));
    calls
}

/// The kernel's own counts for threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskEvents {
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Context switches of threads that had to wait.
    pub voluntary_switches: u64,
    /// Context switches in favour of other threads.
    pub involuntary_switches: u64,
    /// Threads that ended.
    pub ended: u64,
    /// Calls that are in no sum, as there was no space for another one.
    pub lost: u64,
    /// Most ends of calls of any process that no program has seen: those at which the kernel skipped the program, having preempted it.
    pub skipped: u64,
}

/// Nanoseconds of a call that does nothing, including the C library's part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallOverhead {
    /// Before the programs were attached.
    pub bare_ns: f64,
    /// For a thread that is not followed.
    pub attached_ns: f64,
    /// For a followed thread.
    pub followed_ns: f64,
    /// Duration of a call as measured by the programs, from start to end, if times are measured.
    pub measured_ns: Option<f64>,
}

impl CallOverhead {
    /// Overhead of each call of other threads.
    pub fn others_ns(self) -> f64 {
        (self.attached_ns - self.bare_ns).max(0.0)
    }

    /// Overhead of each counted call.
    pub fn own_ns(self) -> f64 {
        (self.followed_ns - self.bare_ns).max(0.0)
    }

    /// The tracing overhead within each call's measured time.
    pub fn floor_ns(self) -> u64 {
        self.measured_ns.map_or(0, |measured| (measured - self.bare_ns).max(0.0) as u64)
    }
}

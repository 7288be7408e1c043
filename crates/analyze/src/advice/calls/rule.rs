//! Definition of rules on individual system calls, of their input events, and of their measurements.
//!
//! The rules themselves are elsewhere.

use super::basis::Basis;
use crate::advice::{Measure, Rule};

/// Maximum number of objects of one kind (files, ranges, threads) that a rule tracks. Later ones are ignored.
pub(super) const MOST: usize = 4096;
/// `EAGAIN` as a result.
pub(super) const EAGAIN: i64 = -11;
/// `ENOENT` as a result.
pub(super) const ENOENT: i64 = -2;

/// A completed system call.
#[derive(Clone, Copy, Debug)]
pub struct CallEvent<'e> {
    /// Name of the call.
    pub name: &'e str,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Arguments.
    pub arguments: [u64; 6],
    /// Result; negative error number on failure.
    pub result: i64,
    /// Start time, in nanoseconds of any clock.
    pub begin_ns: u64,
    /// Duration, in nanoseconds.
    pub wall_ns: u64,
    /// Path argument, or the path of the file whose descriptor is the first argument.
    pub path: Option<&'e str>,
}

/// A page fault in user code or on its behalf.
#[derive(Clone, Copy, Debug)]
pub struct FaultEvent {
    /// Process id.
    pub pid: u32,
    /// Faulting address.
    pub address: u64,
    /// Time, on the same clock as the calls.
    pub time_ns: u64,
}

/// A rule on individual system calls.
pub(in crate::advice) struct CallRule {
    pub rule: Rule,
    /// Calls that the rule concerns.
    pub calls: &'static [&'static str],
    /// Other calls that the rule watches.
    pub also_watched: &'static [&'static str],
    /// Whether the rule also concerns page faults.
    pub faults: bool,
    pub watch: Box<dyn Fn() -> Box<dyn Watch> + Send + Sync>,
}

impl CallRule {
    /// Creates a rule on calls alone.
    pub fn new(
        rule: Rule,
        calls: &'static [&'static str],
        watch: impl Fn() -> Box<dyn Watch> + Send + Sync + 'static,
    ) -> Self {
        Self { rule, calls, also_watched: &[], faults: false, watch: Box::new(watch) }
    }
}

/// State of a rule, for one observation.
///
/// [`call`](Self::call) gets each completed call with one of the rule's names or of `also_watched`, of all threads of the target;
/// [`fault`](Self::fault) gets page faults if the rule asks for them. The calls of a thread come in order. Then
/// [`judge`](Self::judge) is asked, possibly several times, also after nothing was seen.
///
/// - **Bounded**: an observation may have millions of calls. Keep sums, and at most [`MOST`] objects of a kind; ignore further ones.
/// - **Hostile**: arguments and results are any numbers, process and thread ids are reused, a call may lack its predecessor (the observation began
///   later). Use saturating arithmetic.
/// - **`judge` changes nothing** and returns `None` below the rule's threshold. Its gain is an upper bound; what is too small altogether is left out
///   by
///   the caller.
///
/// Example: `getdents_small.rs` is short; `delayed_ack.rs` follows a conversation on a socket.
pub(in crate::advice) trait Watch: Send {
    /// Takes a completed call.
    fn call(&mut self, call: &CallEvent<'_>);
    /// Takes a page fault.
    fn fault(&mut self, _fault: &FaultEvent) {}
    /// Returns the result, if the pattern was found to the extent of the threshold.
    fn judge(&self, basis: &Basis) -> Option<Found>;
}

/// Result of a rule.
#[derive(Default)]
pub(in crate::advice) struct Found {
    /// Subject, such as a file or a command; empty if the result concerns all calls.
    pub(super) about: String,
    /// Subset of the rule's calls; empty: all of them.
    pub(super) calls: &'static [&'static str],
    pub(super) measured: Vec<Measure>,
    /// Upper bound of the gain in CPU time, in nanoseconds.
    pub(super) cpu_ns: f64,
    /// Upper bound of the gain in waiting time of threads, in nanoseconds.
    pub(super) wall_ns: f64,
    /// Whether idle threads wait in the same way, so that the gain may be zero.
    pub(super) may_idle: bool,
}

/// Creates a measurement: a count.
pub(super) fn count(what: &'static str, value: u64) -> Measure {
    average(what, value as f64)
}

/// Creates a measurement: a rate per second.
pub(super) fn rate(what: &'static str, value: f64) -> Measure {
    Measure { what, value, unit: "/s" }
}

/// Creates a measurement: an average.
pub(super) fn average(what: &'static str, value: f64) -> Measure {
    Measure { what, value, unit: "" }
}

/// Creates a measurement: a share in percent.
pub(super) fn percent(what: &'static str, part: f64, whole: f64) -> Measure {
    Measure { what, value: if whole > 0.0 { part / whole * 100.0 } else { 0.0 }, unit: "%" }
}

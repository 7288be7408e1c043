//! What a rule on single calls is, what it is told, and what it measures.
//!
//! Not here: the rules.

use super::basis::Basis;
use crate::advice::{Measure, Rule};

/// How much of one kind a rule remembers: files, ranges, threads. What comes after that is not looked at.
pub(super) const MOST: usize = 4096;
/// `EAGAIN` as a result.
pub(super) const EAGAIN: i64 = -11;
/// `ENOENT` as a result.
pub(super) const ENOENT: i64 = -2;

/// A system call that has returned.
#[derive(Clone, Copy, Debug)]
pub struct CallEvent<'e> {
    /// Its name.
    pub name: &'e str,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// What it returned: an error is its negative number.
    pub result: i64,
    /// When it began, in nanoseconds of any clock.
    pub begin_ns: u64,
    /// How long it took, in nanoseconds.
    pub wall_ns: u64,
    /// The path that it was given, or that of the file which its first argument is the descriptor of.
    pub path: Option<&'e str>,
}

/// A page fault in user code or on its behalf.
#[derive(Clone, Copy, Debug)]
pub struct FaultEvent {
    /// The process.
    pub pid: u32,
    /// The address that was not there.
    pub address: u64,
    /// When, by the clock of calls.
    pub time_ns: u64,
}

/// A rule that goes by single calls.
pub(super) struct CallRule {
    pub(super) rule: Rule,
    /// The calls that it is about.
    pub(super) calls: &'static [&'static str],
    /// Further calls that it looks at, though it is not about them.
    pub(super) also_watched: &'static [&'static str],
    /// Whether it is about page faults too.
    pub(super) faults: bool,
    pub(super) watch: fn() -> Box<dyn Watch>,
}

/// What a rule has seen.
pub(super) trait Watch: Send {
    fn call(&mut self, call: &CallEvent<'_>);
    fn fault(&mut self, _fault: &FaultEvent) {}
    fn judge(&self, basis: &Basis) -> Option<Found>;
}

/// What a rule measured.
#[derive(Default)]
pub(super) struct Found {
    /// What it is of: a file, a command; empty where it is of all.
    pub(super) about: String,
    /// Which of the rule's calls; empty: all.
    pub(super) calls: &'static [&'static str],
    pub(super) measured: Vec<Measure>,
    /// The most that could be gained of processor time, in nanoseconds.
    pub(super) cpu_ns: f64,
    /// The most that could be gained of the time that threads wait, in nanoseconds.
    pub(super) wall_ns: f64,
    /// Whether threads that have nothing to do wait likewise, so that nothing may be gained.
    pub(super) may_idle: bool,
}

/// A number of something.
pub(super) fn count(what: &'static str, value: u64) -> Measure {
    average(what, value as f64)
}

/// A number of something in each second.
pub(super) fn rate(what: &'static str, value: f64) -> Measure {
    Measure { what, value, unit: "/s" }
}

/// An average of something.
pub(super) fn average(what: &'static str, value: f64) -> Measure {
    Measure { what, value, unit: "" }
}

/// A share.
pub(super) fn percent(what: &'static str, part: f64, whole: f64) -> Measure {
    Measure { what, value: if whole > 0.0 { part / whole * 100.0 } else { 0.0 }, unit: "%" }
}

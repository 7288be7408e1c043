//! Advice from single system calls and page faults: each rule watches those that it is about, and judges them at the end.
//!
//! One file holds one rule, as in [`advice`](super): what it looks for, from where on it counts, what to do, and how much could be
//! gained. A rule keeps a bounded amount whatever it sees. Not here: where calls come from, and what processor time they took,
//! which is sampled ([`Basis`]).

mod basis;
mod brk_churn;
mod call_rate;
mod clock_calls;
mod copy_loop;
mod enoent;
mod epoll_one;
mod epoll_spin;
mod fault_rate;
mod fsync;
mod futex_wait;
mod getdents_small;
mod huge_pages;
mod identity;
mod ioctl;
mod mmap_churn;
mod mprotect;
mod not_ready;
mod often;
mod pages;
mod poll_many;
mod proc_scan;
mod purge;
mod reopen;
mod sched_yield;
mod seek_read;
mod short_sleep;
mod sigmask;
mod sizes;
mod small_io;
mod small_messages;

#[cfg(test)]
mod tests;

pub use basis::{Basis, Costs};

use rustc_hash::FxHashMap;

use super::{LEAST_PERCENT, Measure, Rule};

/// Advice that could gain less than this is not given, in nanoseconds.
const LEAST_NS: f64 = 1e7;
/// How much of one kind a rule remembers: files, ranges, threads. What comes after that is not looked at.
const MOST: usize = 4096;
/// `EAGAIN` as a result.
const EAGAIN: i64 = -11;
/// `ENOENT` as a result.
const ENOENT: i64 = -2;

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
struct CallRule {
    rule: Rule,
    /// The calls that it is about.
    calls: &'static [&'static str],
    /// Whether it is about page faults too.
    faults: bool,
    watch: fn() -> Box<dyn Watch>,
}

/// What a rule has seen.
trait Watch: Send {
    fn call(&mut self, call: &CallEvent<'_>);
    fn fault(&mut self, _fault: &FaultEvent) {}
    fn judge(&self, basis: &Basis) -> Option<Found>;
}

/// What a rule measured.
#[derive(Default)]
struct Found {
    /// What it is of: a file, a command; empty where it is of all.
    about: String,
    measured: Vec<Measure>,
    /// The most that could be gained of processor time, in nanoseconds.
    cpu_ns: f64,
    /// The most that could be gained of the time that threads wait, in nanoseconds.
    wall_ns: f64,
}

/// A rule that holds.
#[derive(Clone, Debug)]
pub struct CallAdvice {
    /// The rule.
    pub rule: &'static Rule,
    /// What it is of: a file, a command; empty where it is of all.
    pub about: String,
    /// What was measured.
    pub measured: Vec<Measure>,
    /// The most that could be gained of processor time, in nanoseconds.
    pub cpu_ns: f64,
    /// The same in percent of all of it.
    pub cpu_percent: f64,
    /// The most that could be gained of the time that threads wait, in nanoseconds.
    pub wall_ns: f64,
    /// The same in percent of the time on the clock.
    pub wall_percent: f64,
}

/// All rules.
const CALL_RULES: [&CallRule; 27] = [
    &brk_churn::RULE,
    &mmap_churn::RULE,
    &fault_rate::RULE,
    &huge_pages::RULE,
    &purge::RULE,
    &mprotect::RULE,
    &small_io::RULE,
    &seek_read::RULE,
    &copy_loop::RULE,
    &fsync::RULE,
    &enoent::RULE,
    &reopen::RULE,
    &getdents_small::RULE,
    &proc_scan::RULE,
    &futex_wait::RULE,
    &sched_yield::RULE,
    &short_sleep::RULE,
    &clock_calls::RULE,
    &poll_many::RULE,
    &epoll_spin::RULE,
    &epoll_one::RULE,
    &not_ready::RULE,
    &ioctl::RULE,
    &small_messages::RULE,
    &call_rate::RULE,
    &identity::RULE,
    &sigmask::RULE,
];

/// All rules at work.
pub struct Watched {
    rules: Vec<(&'static CallRule, Box<dyn Watch>)>,
    by_name: FxHashMap<&'static str, Vec<usize>>,
    of_faults: Vec<usize>,
}

impl Default for Watched {
    fn default() -> Self {
        let rules: Vec<_> = CALL_RULES.iter().map(|&rule| (rule, (rule.watch)())).collect();
        let mut by_name: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
        for (index, (rule, _)) in rules.iter().enumerate() {
            rule.calls.iter().for_each(|&name| by_name.entry(name).or_default().push(index));
        }
        let of_faults = (0..rules.len()).filter(|&index| rules[index].0.faults).collect();
        Self { rules, by_name, of_faults }
    }
}

impl Watched {
    /// Takes a call into account. Calls of a thread come in their order.
    pub fn call(&mut self, call: &CallEvent<'_>) {
        let Some(indexes) = self.by_name.get(call.name) else { return };
        indexes.iter().for_each(|&index| self.rules[index].1.call(call));
    }

    /// Takes a page fault into account.
    pub fn fault(&mut self, fault: &FaultEvent) {
        self.of_faults.iter().for_each(|&index| self.rules[index].1.fault(fault));
    }

    /// The calls that any rule is about.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let mut names: Vec<&str> = CALL_RULES.iter().flat_map(|rule| rule.calls).copied().collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter()
    }

    /// The rules that hold, those that could gain more first.
    pub fn advise(&self, basis: &Basis) -> Vec<CallAdvice> {
        let mut found: Vec<CallAdvice> = self
            .rules
            .iter()
            .filter_map(|(rule, watch)| advice(&rule.rule, watch.judge(basis)?, basis))
            .collect();
        let gain = |advice: &CallAdvice| advice.cpu_ns.max(advice.wall_ns);
        found
            .sort_by(|one, other| gain(other).total_cmp(&gain(one)).then(one.rule.name.cmp(other.rule.name)));
        found
    }
}

/// What a rule found, if it is worth saying.
fn advice(rule: &'static Rule, found: Found, basis: &Basis) -> Option<CallAdvice> {
    let Found { about, measured, cpu_ns, wall_ns } = found;
    let percent = |part: f64, of: f64| if of > 0.0 { part / of * 100.0 } else { 0.0 };
    // What all calls together took is a bound as well.
    let cpu_ns = cpu_ns.min(basis.cpu_ns);
    let cpu_percent = percent(cpu_ns, basis.cpu_ns);
    let wall_percent = percent(wall_ns, basis.span_ns);
    let by_cpu = cpu_ns >= LEAST_NS && cpu_percent >= LEAST_PERCENT;
    let by_wall = wall_ns >= LEAST_NS && wall_percent >= LEAST_PERCENT;
    (by_cpu || by_wall).then_some(CallAdvice {
        rule,
        about,
        measured,
        cpu_ns,
        cpu_percent,
        wall_ns,
        wall_percent,
    })
}

/// A number of something.
fn count(what: &'static str, value: u64) -> Measure {
    Measure { what, value: value as f64, unit: "" }
}

/// A number of something in each second.
fn rate(what: &'static str, value: f64) -> Measure {
    Measure { what, value, unit: "/s" }
}

/// A share.
fn percent(what: &'static str, part: f64, whole: f64) -> Measure {
    Measure { what, value: if whole > 0.0 { part / whole * 100.0 } else { 0.0 }, unit: "%" }
}

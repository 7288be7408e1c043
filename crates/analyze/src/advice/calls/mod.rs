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
mod delayed_ack;
mod enoent;
mod epoll_one;
mod epoll_spin;
mod fault_rate;
mod fsync;
mod futex_wait;
mod getdents_small;
mod huge_pages;
mod identity;
mod io_under_lock;
mod ioctl;
mod mmap_churn;
mod mprotect;
mod not_ready;
mod often;
mod one_request;
mod pages;
mod poll_many;
mod proc_scan;
mod purge;
mod reopen;
mod restat;
mod rule;
mod sched_yield;
mod seek_read;
mod short_sleep;
mod short_timeouts;
mod sigmask;
mod sizes;
mod sleep_under_lock;
mod small_io;
mod small_messages;
mod sync_write;

#[cfg(test)]
mod tests;

pub use basis::{Basis, Costs};
pub use rule::{CallEvent, FaultEvent};

use rustc_hash::FxHashMap;

use super::{LEAST_PERCENT, Measure, Rule};
use rule::{CallRule, EAGAIN, ENOENT, Found, MOST, Watch, average, count, percent, rate};

/// Advice that could gain less than this is not given, in nanoseconds.
const LEAST_NS: f64 = 1e7;
/// A rule that holds.
#[derive(Clone, Debug)]
pub struct CallAdvice {
    /// The rule.
    pub rule: &'static Rule,
    /// The calls that it is about.
    pub calls: &'static [&'static str],
    /// Whether it is about page faults too.
    pub faults: bool,
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
    /// Whether threads that have nothing to do wait likewise, so that nothing may be gained.
    pub may_idle: bool,
}

impl CallAdvice {
    /// Whether it is about page faults and says what they come from, not only how many there are.
    pub(crate) fn tells_why_faults(&self) -> bool {
        self.faults && self.rule.name != fault_rate::RULE.rule.name
    }

    /// Whether it takes waiting by futex for waiting for locks.
    pub(crate) fn tells_of_locks(&self) -> bool {
        self.rule.name == futex_wait::RULE.rule.name
    }
}

/// All rules.
const CALL_RULES: [&CallRule; 34] = [
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
    &sync_write::RULE,
    &enoent::RULE,
    &reopen::RULE,
    &restat::RULE,
    &getdents_small::RULE,
    &proc_scan::RULE,
    &futex_wait::RULE,
    &sched_yield::RULE,
    &short_sleep::RULE,
    &sleep_under_lock::RULE,
    &short_timeouts::RULE,
    &io_under_lock::RULE,
    &clock_calls::RULE,
    &poll_many::RULE,
    &epoll_spin::RULE,
    &epoll_one::RULE,
    &not_ready::RULE,
    &ioctl::RULE,
    &small_messages::RULE,
    &one_request::RULE,
    &delayed_ack::RULE,
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
            let names = rule.calls.iter().chain(rule.also_watched);
            names.for_each(|&name| by_name.entry(name).or_default().push(index));
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
        let mut names: Vec<&str> =
            CALL_RULES.iter().flat_map(|rule| rule.calls.iter().chain(rule.also_watched)).copied().collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter()
    }

    /// The rules that hold, those that could gain more first.
    pub fn advise(&self, basis: &Basis) -> Vec<CallAdvice> {
        let mut found: Vec<CallAdvice> =
            self.rules.iter().filter_map(|(rule, watch)| advice(rule, watch.judge(basis)?, basis)).collect();
        let gain = |advice: &CallAdvice| advice.cpu_ns.max(advice.wall_ns);
        found
            .sort_by(|one, other| gain(other).total_cmp(&gain(one)).then(one.rule.name.cmp(other.rule.name)));
        found
    }
}

/// What a rule found, if it is worth saying.
fn advice(rule: &'static CallRule, found: Found, basis: &Basis) -> Option<CallAdvice> {
    let Found { about, calls, measured, cpu_ns, wall_ns, may_idle } = found;
    let percent = |part: f64, of: f64| if of > 0.0 { part / of * 100.0 } else { 0.0 };
    // What all calls together took is a bound as well.
    let cpu_ns = cpu_ns.min(basis.cpu_ns);
    let cpu_percent = percent(cpu_ns, basis.cpu_ns);
    let wall_percent = percent(wall_ns, basis.span_ns);
    let by_cpu = cpu_ns >= LEAST_NS && cpu_percent >= LEAST_PERCENT;
    let by_wall = wall_ns >= LEAST_NS && wall_percent >= LEAST_PERCENT;
    (by_cpu || by_wall).then_some(CallAdvice {
        rule: &rule.rule,
        calls: if calls.is_empty() { rule.calls } else { calls },
        faults: rule.faults,
        about,
        measured,
        cpu_ns,
        cpu_percent,
        wall_ns,
        wall_percent,
        may_idle,
    })
}

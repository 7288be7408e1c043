//! Advice from individual system calls and page faults: each rule watches the events that concern it, and judges them
//! at the end.
//!
//! Each file holds one rule, as in [`advice`](super); rules on the rate of calls alone are data (`rules/calls.toml`). A rule
//! uses bounded memory, whatever it sees. Call sites and CPU time are sampled elsewhere ([`Basis`]).

mod basis;
pub(super) mod brk_churn;
pub(super) mod call_rate;
pub(super) mod clock_calls;
pub(super) mod copy_loop;
pub(super) mod delayed_ack;
pub(super) mod enoent;
pub(super) mod epoll_one;
pub(super) mod epoll_spin;
pub(super) mod fault_rate;
pub(super) mod fsync;
pub(super) mod futex_wait;
pub(super) mod getdents_small;
pub(super) mod huge_pages;
pub(super) mod io_under_lock;
pub(super) mod ioctl;
pub(super) mod mmap_churn;
pub(super) mod mprotect;
pub(super) mod not_ready;
mod often;
pub(super) mod one_request;
mod pages;
pub(super) mod poll_many;
pub(super) mod proc_scan;
pub(super) mod purge;
pub(super) mod reopen;
pub(super) mod restat;
mod rule;
pub(super) mod seek_read;
pub(super) mod short_sleep;
pub(super) mod short_timeouts;
mod sizes;
pub(super) mod sleep_under_lock;
pub(super) mod small_io;
pub(super) mod small_messages;
pub(super) mod sync_write;

#[cfg(test)]
mod tests;

pub use basis::{Basis, Costs};
pub use rule::{CallEvent, FaultEvent};

use rustc_hash::FxHashMap;

use super::registry::call_rules;
use super::sentence::{grouped, part, percent as in_percent, seconds, size, text, word};
use super::{LEAST_PERCENT, Measure, Rule};
pub(super) use often::Often;
pub(super) use rule::CallRule;
use rule::{EAGAIN, ENOENT, Found, MOST, Watch, average, count, percent, rate};

/// Minimum gain of advice, in nanoseconds.
const LEAST_NS: f64 = 1e7;
/// A rule that applies, with its measurements.
#[derive(Clone, Debug)]
pub struct CallAdvice {
    /// The rule.
    pub rule: &'static Rule,
    /// The calls that the advice concerns.
    pub calls: &'static [&'static str],
    /// Whether the advice also concerns page faults.
    pub faults: bool,
    /// Subject, such as a file or a command; empty if the advice concerns all calls.
    pub about: String,
    /// Measured values.
    pub measured: Vec<Measure>,
    /// Upper bound of the gain in CPU time, in nanoseconds.
    pub cpu_ns: f64,
    /// Upper bound of the gain in CPU time, in percent of all CPU time.
    pub cpu_percent: f64,
    /// Upper bound of the gain in waiting time of threads, in nanoseconds.
    pub wall_ns: f64,
    /// Upper bound of the gain in waiting time, in percent of the elapsed time.
    pub wall_percent: f64,
    /// Whether idle threads wait in the same way, so that the gain may be zero.
    pub may_idle: bool,
}

impl CallAdvice {
    /// Returns whether the advice concerns page faults and names their cause, not only their number.
    pub(crate) fn tells_why_faults(&self) -> bool {
        self.faults && self.rule.name != fault_rate::NAME
    }

    /// Returns whether the advice treats futex waits as waits for locks.
    pub(crate) fn tells_of_locks(&self) -> bool {
        self.rule.name == futex_wait::NAME
    }
}

/// All rules with their state during a recording.
pub struct Watched {
    rules: Vec<(&'static CallRule, Box<dyn Watch>)>,
    by_name: FxHashMap<&'static str, Vec<usize>>,
    of_faults: Vec<usize>,
}

impl Default for Watched {
    fn default() -> Self {
        let rules: Vec<_> = call_rules().map(|rule| (rule, (rule.watch)())).collect();
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
    /// Processes a system call. The calls of a thread must come in order.
    pub fn call(&mut self, call: &CallEvent<'_>) {
        let Some(indexes) = self.by_name.get(call.name) else { return };
        indexes.iter().for_each(|&index| self.rules[index].1.call(call));
    }

    /// Processes a page fault.
    pub fn fault(&mut self, fault: &FaultEvent) {
        self.of_faults.iter().for_each(|&index| self.rules[index].1.fault(fault));
    }

    /// Returns the names of the calls that any rule watches.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let mut names: Vec<&str> =
            call_rules().flat_map(|rule| rule.calls.iter().chain(rule.also_watched)).copied().collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter()
    }

    /// Returns the rules that apply, by descending gain.
    pub fn advise(&self, basis: &Basis) -> Vec<CallAdvice> {
        let mut found: Vec<CallAdvice> =
            self.rules.iter().filter_map(|(rule, watch)| advice(rule, watch.judge(basis)?, basis)).collect();
        let gain = |advice: &CallAdvice| advice.cpu_ns.max(advice.wall_ns);
        found
            .sort_by(|one, other| gain(other).total_cmp(&gain(one)).then(one.rule.name.cmp(other.rule.name)));
        found
    }
}

/// Returns the result of a rule as advice, if the gain is large enough.
fn advice(rule: &'static CallRule, found: Found, basis: &Basis) -> Option<CallAdvice> {
    let Found { about, calls, measured, cpu_ns, wall_ns, may_idle } = found;
    let percent = |part: f64, of: f64| if of > 0.0 { part / of * 100.0 } else { 0.0 };
    // The gain cannot exceed the CPU time of all calls together.
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

//! Rule: a loop polls by sleeping for short times.
//!
//! A thread that sleeps for short times may have nothing else to do, such as a ticker or a runtime's monitor. It
//! delays other threads if it gives them work, or takes their results, between two sleeps. Then it wakes a waiting
//! thread each time, and these threads have idle time. The elapsed time could shrink by the part of its sleep that
//! they do not use.
//!
//! Sleeps with a held lock do not count here but in `sleep_under_lock`.

use rustc_hash::FxHashMap;

use super::sleep_under_lock::{ALSO_WATCHED, LockedWaits, SLEEPS, has_woken, is_sleep};
use super::{Basis, CallEvent, CallRule, Found, MOST, Rule, Watch, percent, rate, text};

/// Minimum number of short sleeps per second.
const LEAST_PER_SECOND: f64 = 100.0;
/// Maximum duration of a short sleep, in nanoseconds.
const SHORT_NS: u64 = 5_500_000;
/// Maximum number of sleeps per wakeup of another thread, for a thread that hands over work.
const SLEEPS_PER_WAKE: u64 = 5;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "polling-sleep",
        claim: "sleeps for short times until something has happened",
        pattern: "threads sleep for a moment, look, and sleep again",
        threshold: text(format!(
            "{LEAST_PER_SECOND} sleeps a second of less than {} ms",
            SHORT_NS as f64 / 1e6
        )),
        remedy: "wait for what is looked for: a condition variable, eventfd, inotify, timerfd; PR_SET_TIMERSLACK where short sleeps are needed",
        bound: "nanosleep, and what is done each time; of the elapsed time what a thread that wakes others sleeps while these don't run",
        source: "prctl(2): a sleep takes 50 us longer by default; measured: 71 us for one of 1 ns",
    };
    CallRule { also_watched: ALSO_WATCHED, ..CallRule::new(rule, SLEEPS, || Box::<Sleeps>::default()) }
}

/// Counters of a thread.
#[derive(Default)]
struct Sleeper {
    short: u64,
    slept_ns: u64,
    wakes: u64,
}

#[derive(Default)]
struct Sleeps {
    all: u64,
    threads: FxHashMap<u32, Sleeper>,
    locked: LockedWaits,
}

impl Watch for Sleeps {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.locked.take(call);
        let is_sleep = is_sleep(call);
        self.all += u64::from(is_sleep);
        let is_short = is_sleep && call.result == 0 && call.wall_ns < SHORT_NS;
        let has_woken = call.name == "futex" && has_woken(call);
        let has_room = self.threads.len() < MOST || self.threads.contains_key(&call.tid);
        if !has_room || !(is_short || has_woken) {
            return;
        }
        let thread = self.threads.entry(call.tid).or_default();
        thread.wakes += u64::from(has_woken);
        if is_short {
            thread.short += 1;
            thread.slept_ns = thread.slept_ns.saturating_add(call.wall_ns);
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let is_polling =
            |tid: u32, thread: &Sleeper| self.locked.of_thread(tid).saturating_mul(2) < thread.short;
        let threads = || self.threads.iter().filter(|&(&tid, thread)| is_polling(tid, thread));
        let short: u64 = threads().map(|(_, thread)| thread.short).sum();
        let per_second = basis.rate(short);
        if per_second < LEAST_PER_SECOND {
            return None;
        }
        let cpu_ns = basis.part(SLEEPS, short, self.all);
        let wall_ns = threads().map(|(&tid, thread)| thread.holds_up(tid, basis)).fold(0.0, f64::max);
        let mut measured =
            vec![rate("short sleeps", per_second), percent("these calls", cpu_ns, basis.cpu_ns)];
        // If a thread wakes no other thread, it is unknown which could have run instead.
        if wall_ns > 0.0 {
            measured.push(percent("of the elapsed time others could have run", wall_ns, basis.span_ns));
        }
        Some(Found { measured, cpu_ns, wall_ns, ..Found::default() })
    }
}

impl Sleeper {
    /// Returns for how long the thread slept while the others could have continued but did not run, in nanoseconds.
    fn holds_up(&self, tid: u32, basis: &Basis) -> f64 {
        let is_often = basis.rate(self.short) >= LEAST_PER_SECOND;
        if !is_often || self.wakes.saturating_mul(SLEEPS_PER_WAKE) < self.short {
            return 0.0;
        }
        let others = basis.cpu_of_thread.iter().filter(|&(&other, _)| other != tid);
        let ran: f64 = others.map(|(_, &ns)| ns).sum();
        (self.slept_ns as f64 - ran).max(0.0)
    }
}

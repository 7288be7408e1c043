//! A loop that sleeps and looks.
//!
//! A thread that sleeps for short times may have nothing else to do: a ticker, a runtime's monitor. It holds others up where it gives them
//! work, or takes their results, between two sleeps: then it wakes a thread that waits each time, and these have time left. What they
//! don't use of the time that it sleeps is what the elapsed time would be shorter by.
//!
//! A thread that sleeps with a lock waits for nothing: it is not counted here, but by `sleep_under_lock`.

use rustc_hash::FxHashMap;

use super::sleep_under_lock::{ALSO_WATCHED, LockedWaits, SLEEPS, has_woken, is_sleep};
use super::{Basis, CallEvent, CallRule, Found, MOST, Rule, Watch, percent, rate};

/// From this many a second.
const LEAST_PER_SECOND: f64 = 100.0;
/// Sleeps that end within this, in nanoseconds, were short.
const SHORT_NS: u64 = 5_500_000;
/// A thread hands work on that wakes another at least once in so many sleeps.
const SLEEPS_PER_WAKE: u64 = 5;

pub(super) const RULE: CallRule = CallRule {
    rule: Rule {
        name: "polling-sleep",
        claim: "sleeps for short times until something has happened",
        pattern: "threads sleep for a moment, look, and sleep again",
        threshold: "100 sleeps a second of less than 5 ms",
        remedy: "wait for what is looked for: a condition variable, eventfd, inotify, timerfd; PR_SET_TIMERSLACK where short sleeps are needed",
        bound: "nanosleep, and what is done each time; of the elapsed time what a thread that wakes others sleeps while these don't run",
        source: "prctl(2): a sleep takes 50 us longer by default; measured: 71 us for one of 1 ns",
    },
    calls: SLEEPS,
    also_watched: ALSO_WATCHED,
    faults: false,
    watch: || Box::<Sleeps>::default(),
};

/// What a thread did.
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
        // Of a thread that wakes nobody it is not known who would run instead.
        if wall_ns > 0.0 {
            measured.push(percent("of the elapsed time others could have run", wall_ns, basis.span_ns));
        }
        Some(Found { measured, cpu_ns, wall_ns, ..Found::default() })
    }
}

impl Sleeper {
    /// How long it slept while the others could have gone on but did not run, in nanoseconds.
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

//! Rule: a thread sleeps while it holds a lock.
//!
//! Acquiring an uncontended lock makes no system call, so the evidence comes at the release: only the holder of a
//! lock wakes threads that wait for it. A thread held a lock during a sleep if its next futex calls are not waits and
//! wake a thread that waited for the lock. A thread that hands over work after a sleep looks the same if the lock of
//! the queue is contended; but then others wait for the lock only briefly, and not for the whole sleep.
//!
//! Waits for a lock are recognized by their expected value. It is 2 in the locks of glibc (lowlevellock.h), Rust's
//! std (futex mutex) and Go (`mutex_sleeping`), which all follow "Futexes Are Tricky" (Drepper 2011). Other locks are
//! not covered.

use rustc_hash::FxHashMap;

use super::{
    Basis, CallEvent, CallRule, Found, MOST, Rule, Watch, average, in_percent, part, percent, rate, text,
};

/// Calls that sleep.
pub(super) const SLEEPS: &[&str] = &["nanosleep", "clock_nanosleep"];
/// Calls that wake and wait for others, and calls that sleep if they have no descriptors.
pub(super) const ALSO_WATCHED: &[&str] = &["futex", "poll", "ppoll", "select", "pselect6"];
/// Expected value of a wait for a lock: locked, with waiters.
const CONTENDED: u32 = 2;
/// Mask of the operation of a futex call, without flags; below, `FUTEX_WAIT` and `FUTEX_WAIT_BITSET`.
const OPERATION: u64 = 0x7f;
const WAITS: [u64; 2] = [0, 9];
/// `FUTEX_WAKE`, `FUTEX_WAKE_OP` and `FUTEX_WAKE_BITSET`.
const WAKES: [u64; 3] = [1, 5, 10];
/// Minimum total time that others wait for the lock, as a part of the time slept with it.
pub(super) const LEAST_WAITED: f64 = 0.5;
/// Minimum number of sleeps; below, their minimum share of the elapsed time.
pub(super) const LEAST_SLEEPS: u64 = 10;
pub(super) const LEAST_SHARE: f64 = 0.05;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "sleep-under-lock",
        claim: "sleeps while it holds a lock that others wait for",
        pattern: "a thread sleeps, then wakes those that waited for a lock meanwhile: it held the lock",
        threshold: text(format!(
            "{LEAST_SLEEPS} sleeps, {} of the elapsed time, others wait for {} of that",
            in_percent(LEAST_SHARE),
            part(LEAST_WAITED)
        )),
        remedy: "release the lock before the sleep; to wait for a change under it, use a condition variable, which releases it",
        bound: "of the elapsed time what is slept with the lock",
        source: "futex(7): who waits for a lock is woken by its holder; the numbers are judgement",
    };
    CallRule { also_watched: ALSO_WATCHED, ..CallRule::new(rule, SLEEPS, || Box::<LockedWaits>::default()) }
}

/// Returns whether a call sleeps.
pub(super) fn is_sleep(call: &CallEvent<'_>) -> bool {
    match call.name {
        "poll" | "ppoll" => call.arguments[1] == 0,
        "select" | "pselect6" => call.arguments[0] == 0,
        name => SLEEPS.contains(&name),
    }
}

/// Returns whether a futex call waits.
pub(super) fn is_wait(call: &CallEvent<'_>) -> bool {
    WAITS.contains(&(call.arguments[1] & OPERATION))
}

/// Returns whether a wait is for a lock. The value has 32 bits.
pub(super) fn is_for_lock(call: &CallEvent<'_>) -> bool {
    call.arguments[2] as u32 == CONTENDED
}

/// Returns whether a futex call woke a thread.
pub(super) fn has_woken(call: &CallEvent<'_>) -> bool {
    WAKES.contains(&(call.arguments[1] & OPERATION)) && call.result > 0
}

/// Sleeps of a thread since its last wakeup of others or its last wait.
#[derive(Default)]
struct Slept {
    sleeps: u64,
    ns: u64,
    /// Whether a wakeup has followed them, so that the next sleep starts a new sequence.
    has_woken: bool,
}

/// Futex address at which threads wait.
#[derive(Default)]
struct Place {
    /// Time that threads waited there as for a lock, in nanoseconds.
    waited_ns: u64,
    /// Sleeps after which a thread woke another here, by thread: number and time in nanoseconds.
    sleepers: FxHashMap<u32, (u64, u64)>,
}

impl Place {
    fn slept_ns(&self) -> u64 {
        self.sleepers.values().fold(0, |sum, &(_, ns)| sum.saturating_add(ns))
    }

    /// Returns whether this is a lock that is held during the sleeps.
    fn is_held(&self) -> bool {
        let slept = self.slept_ns() as f64;
        slept > 0.0 && self.waited_ns as f64 >= LEAST_WAITED * slept
    }
}

/// Sleeps or other waiting calls, and the locks held during them.
pub(super) struct LockedWaits {
    /// Selects the waiting calls.
    is_one: fn(&CallEvent<'_>) -> bool,
    /// Names of their rate and of their share of the elapsed time.
    words: [&'static str; 2],
    threads: FxHashMap<u32, Slept>,
    /// Places by process and address.
    places: FxHashMap<(u32, u64), Place>,
    /// Number of sleepers in all places.
    sleepers: usize,
}

impl Default for LockedWaits {
    fn default() -> Self {
        let is_one = |call: &CallEvent<'_>| is_sleep(call) && call.result == 0;
        Self::of(is_one, ["sleeps with the lock", "of the elapsed time asleep with it"])
    }
}

impl LockedWaits {
    /// Creates a watch for calls for which `is_one` holds.
    pub fn of(is_one: fn(&CallEvent<'_>) -> bool, words: [&'static str; 2]) -> Self {
        let (threads, places, sleepers) = Default::default();
        Self { is_one, words, threads, places, sleepers }
    }

    /// Processes such a call, or a futex call.
    pub fn take(&mut self, call: &CallEvent<'_>) {
        let is_futex = call.name == "futex";
        if (self.is_one)(call) {
            self.sleep(call);
        } else if is_futex && is_wait(call) {
            self.threads.remove(&call.tid);
            if is_for_lock(call)
                && let Some(place) = self.place(call)
            {
                place.waited_ns = place.waited_ns.saturating_add(call.wall_ns);
            }
        } else if is_futex && has_woken(call) {
            self.wake(call);
        }
    }

    fn sleep(&mut self, call: &CallEvent<'_>) {
        if self.threads.len() >= MOST && !self.threads.contains_key(&call.tid) {
            return;
        }
        let slept = self.threads.entry(call.tid).or_default();
        if std::mem::take(&mut slept.has_woken) {
            *slept = Slept::default();
        }
        slept.sleeps += 1;
        slept.ns = slept.ns.saturating_add(call.wall_ns);
    }

    fn wake(&mut self, call: &CallEvent<'_>) {
        let Some(slept) = self.threads.get_mut(&call.tid) else { return };
        slept.has_woken = true;
        let (sleeps, ns) = (slept.sleeps, slept.ns);
        let has_room = self.sleepers < MOST;
        let Some(place) = self.place(call) else { return };
        let is_new = !place.sleepers.contains_key(&call.tid);
        if is_new && !has_room {
            return;
        }
        let sum = place.sleepers.entry(call.tid).or_default();
        *sum = (sum.0 + sleeps, sum.1.saturating_add(ns));
        self.sleepers += usize::from(is_new);
    }

    fn place(&mut self, call: &CallEvent<'_>) -> Option<&mut Place> {
        let key = (call.pid, call.arguments[0]);
        let has_room = self.places.len() < MOST || self.places.contains_key(&key);
        has_room.then(|| self.places.entry(key).or_default())
    }

    /// Returns the number of a thread's sleeps under a lock.
    pub fn of_thread(&self, tid: u32) -> u64 {
        let held = self.places.values().filter(|place| place.is_held());
        held.filter_map(|place| place.sleepers.get(&tid)).map(|&(sleeps, _)| sleeps).sum()
    }
}

impl Watch for LockedWaits {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.take(call);
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        // A lock has one holder at a time, but several locks may be held at the same time.
        let held = self.places.values().filter(|place| place.is_held());
        let place = held.max_by_key(|place| place.slept_ns())?;
        let calls = place.sleepers.values().map(|&(calls, _)| calls).sum();
        let wall_ns = (place.slept_ns() as f64).min(basis.span_ns);
        let [often, share] = self.words;
        (calls >= LEAST_SLEEPS && wall_ns >= LEAST_SHARE * basis.span_ns).then(|| Found {
            measured: vec![
                rate(often, basis.rate(calls)),
                percent(share, wall_ns, basis.span_ns),
                average("threads that wait for it, on average", place.waited_ns as f64 / basis.span_ns),
            ],
            wall_ns,
            ..Found::default()
        })
    }
}

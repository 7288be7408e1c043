//! How long the target's threads wait for a processor: asked of the kernel thread by thread, from time to time and at the end.
//!
//! As root it is also heard of each thread as it ends. Elsewhere what a thread did between the last look at it and its end stays unknown;
//! how long that was doesn't, as records tell when threads begin and end. Not here: reading /proc and netlink.

use plumb_process::procfs::{self, RunTimes};
use plumb_process::taskstats::Ends;
use plumb_process::usage::monotonic_ns;
use plumb_profile::{Queued, QueuedThread};
use rustc_hash::FxHashMap;

use super::tasks::{Tasks, Thread};

/// Time between two looks. One thread's takes some 5 µs.
const PAUSE_NS: u64 = 50_000_000;
/// The pause is at least so many times as long as the look before it took.
const PAUSE_TIMES: u64 = 1000;
/// What was heard of the end of a thread waits so long for the record of it, or a little longer.
const KEPT_NS: u64 = 2_000_000_000;

/// The threads that are looked at, and the sums of those that have ended.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    threads: FxHashMap<u32, Watched>,
    ended: Queued,
    heard: Heard,
    /// When it is to be looked again.
    next_ns: u64,
    /// The kernel has told of some thread.
    is_told: bool,
}

/// What the kernel has told of threads that ended, whoever's: the records of their ends follow.
#[derive(Debug, Default)]
struct Heard {
    /// `None`: it doesn't tell.
    ends: Option<Ends>,
    new: FxHashMap<u32, RunTimes>,
    old: FxHashMap<u32, RunTimes>,
    since_ns: u64,
}

impl Heard {
    fn listen(&mut self) {
        let Some(ends) = &self.ends else { return };
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(self.since_ns) > KEPT_NS {
            self.old = std::mem::take(&mut self.new);
            self.since_ns = now_ns;
        }
        ends.take(|tid, times| _ = self.new.insert(tid, times));
    }

    /// Of a thread whose end has a record: what was told of it was told before.
    fn of(&mut self, tid: u32) -> Option<RunTimes> {
        if !self.new.contains_key(&tid) {
            self.listen();
        }
        self.new.remove(&tid).or_else(|| self.old.remove(&tid))
    }
}

/// A thread that is looked at.
#[derive(Clone, Copy, Debug)]
struct Watched {
    pid: u32,
    /// When it began, or the recording did.
    since_ns: u64,
    /// When it was looked at last.
    seen_ns: u64,
    /// When it was seen last that it had run, or waited.
    moved_ns: u64,
    /// What it had at `since_ns`.
    before: RunTimes,
    /// What it had at `seen_ns`.
    last: RunTimes,
}

impl Watched {
    fn new(pid: u32, since_ns: u64, before: RunTimes) -> Self {
        Watched { pid, since_ns, seen_ns: since_ns, moved_ns: since_ns, before, last: before }
    }

    /// What it came to by `end_ns`.
    fn so_far(&self, tid: u32, end_ns: u64) -> QueuedThread {
        let ran_ns = self.last.ran_ns.saturating_sub(self.before.ran_ns);
        let waited_ns = self.last.waited_ns.saturating_sub(self.before.waited_ns);
        QueuedThread {
            pid: self.pid,
            tid,
            comm: String::new(),
            // Since Linux 6.16 the record of its end comes before its memory goes, for which it runs a little longer.
            lived_ns: end_ns.saturating_sub(self.since_ns).max(ran_ns.saturating_add(waited_ns)),
            ran_ns,
            waited_ns,
            unseen_ns: end_ns.saturating_sub(self.seen_ns),
        }
    }
}

/// Adds a thread's times.
fn add(sums: &mut Queued, thread: QueuedThread, name: impl FnOnce() -> String) {
    sums.ran_ns += thread.ran_ns;
    sums.waited_ns += thread.waited_ns;
    sums.unseen_ns += thread.unseen_ns;
    let wanted = |thread: &QueuedThread| thread.ran_ns + thread.waited_ns;
    if sums.busiest.as_ref().is_none_or(|busiest| wanted(busiest) < wanted(&thread)) {
        sums.busiest = Some(QueuedThread { comm: name(), ..thread });
    }
}

/// A thread's name; empty if it is not known.
fn name(threads: &FxHashMap<u32, Thread>, tid: u32) -> String {
    threads.get(&tid).map_or(String::new(), |thread| thread.name.text().into_owned())
}

impl Queues {
    /// Hears of threads that end from now on, where the kernel tells.
    pub(crate) fn listen() -> Self {
        let heard = Heard { ends: Ends::listen().ok(), ..Heard::default() };
        Queues { heard, ..Queues::default() }
    }

    /// Looks at a thread that runs already.
    pub(crate) fn watch(&mut self, pid: u32, tid: u32) {
        if let Some(before) = procfs::run_times(pid, tid) {
            self.is_told = true;
            self.threads.insert(tid, Watched::new(pid, monotonic_ns(), before));
        }
    }

    /// A thread has begun.
    pub(crate) fn begin(&mut self, pid: u32, tid: u32, time_ns: u64) {
        match self.threads.get(&tid) {
            // The record is of before the first look, which has met the thread.
            Some(known) if known.since_ns >= time_ns => {}
            // A number is used again, and the record of its end was lost.
            known => {
                let old = known.map(|known| known.so_far(tid, time_ns));
                self.threads.insert(tid, Watched::new(pid, time_ns, RunTimes::default()));
                old.into_iter().for_each(|old| add(&mut self.ended, old, String::new));
            }
        }
    }

    /// A thread has another number from now on.
    pub(crate) fn renumber(&mut self, tid: u32, number: u32) {
        if let Some(watched) = self.threads.remove(&tid) {
            self.threads.insert(number, watched);
        }
    }

    /// A thread has ended.
    pub(crate) fn end(&mut self, tasks: &Tasks, tid: u32, time_ns: Option<u64>) {
        let Some(mut watched) = self.threads.remove(&tid) else { return };
        let end_ns = time_ns.unwrap_or(watched.seen_ns);
        if let Some(times) = self.heard.of(tid).filter(|times| times.ran_ns >= watched.last.ran_ns) {
            self.is_told = true;
            (watched.last, watched.seen_ns) = (times, end_ns);
        }
        add(&mut self.ended, watched.so_far(tid, end_ns), || name(&tasks.threads, tid));
    }

    /// Looks at all threads again, if that is due or `now`.
    pub(crate) fn look(&mut self, now: bool) {
        self.heard.listen();
        let begin_ns = monotonic_ns();
        if !now && begin_ns < self.next_ns {
            return;
        }
        for (&tid, watched) in &mut self.threads {
            // One that has gone, or belongs to another process by now, stays as it was seen last.
            if let Some(times) = procfs::run_times(watched.pid, tid)
                && times.ran_ns >= watched.last.ran_ns
            {
                self.is_told = true;
                watched.seen_ns = monotonic_ns();
                if times != watched.last {
                    (watched.last, watched.moved_ns) = (times, watched.seen_ns);
                } else if now && procfs::is_runnable(watched.pid, tid) {
                    // A wait is accounted as it ends: this one may be as long as nothing was.
                    watched.seen_ns = watched.moved_ns;
                }
            }
        }
        let end_ns = monotonic_ns();
        let took_ns = end_ns.saturating_sub(begin_ns);
        self.next_ns = end_ns + PAUSE_NS.max(took_ns.saturating_mul(PAUSE_TIMES));
    }

    /// All that was seen, up to a time. `None`: the kernel doesn't tell.
    pub(crate) fn sums(&self, tasks: &Tasks, end_ns: u64) -> Option<Queued> {
        if !self.is_told {
            return None;
        }
        let mut sums = self.ended.clone();
        for (&tid, watched) in &self.threads {
            add(&mut sums, watched.so_far(tid, end_ns), || name(&tasks.threads, tid));
        }
        Some(sums)
    }
}

//! Run-queue waits of the target's threads: read from the kernel thread by thread, periodically and at the end.
//!
//! As root, the end of each thread is reported too. Otherwise a thread's times between the last read and its end stay unknown;
//! only the duration is known, from records of its start and end. Elsewhere: reading /proc and netlink.

use plumb_process::procfs::{self, RunTimes};
use plumb_process::taskstats::Ends;
use plumb_process::usage::monotonic_ns;
use plumb_profile::{Queued, QueuedThread};
use rustc_hash::FxHashMap;

use super::tasks::{Tasks, Thread};

/// Time between two reads of all threads. Each thread takes some 5 µs.
const PAUSE_NS: u64 = 50_000_000;
/// The pause is at least this multiple of the duration of the last read.
const PAUSE_TIMES: u64 = 1000;
/// Time for which a reported end of a thread waits for the matching record, or slightly longer.
const KEPT_NS: u64 = 2_000_000_000;

/// The threads that are read, and the sums of those that have ended.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    threads: FxHashMap<u32, Watched>,
    ended: Queued,
    heard: Heard,
    /// Time of the next read.
    next_ns: u64,
    /// Whether the kernel has reported times of any thread.
    is_told: bool,
}

/// Reported ends of threads of any process; the records of their ends follow.
#[derive(Debug, Default)]
struct Heard {
    /// `None`: the kernel doesn't report ends.
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

    /// The reported times of a thread whose end has a record: the report comes before the record.
    fn of(&mut self, tid: u32) -> Option<RunTimes> {
        if !self.new.contains_key(&tid) {
            self.listen();
        }
        self.new.remove(&tid).or_else(|| self.old.remove(&tid))
    }
}

/// A thread whose times are read.
#[derive(Clone, Copy, Debug)]
struct Watched {
    pid: u32,
    /// Start of the thread, or of the recording.
    since_ns: u64,
    /// Time of the last read.
    seen_ns: u64,
    /// Time of the last read that showed a change.
    moved_ns: u64,
    /// Times at `since_ns`.
    before: RunTimes,
    /// Times at `seen_ns`.
    last: RunTimes,
}

impl Watched {
    fn new(pid: u32, since_ns: u64, before: RunTimes) -> Self {
        Watched { pid, since_ns, seen_ns: since_ns, moved_ns: since_ns, before, last: before }
    }

    /// The thread's times up to `end_ns`.
    fn so_far(&self, tid: u32, end_ns: u64) -> QueuedThread {
        let ran_ns = self.last.ran_ns.saturating_sub(self.before.ran_ns);
        let waited_ns = self.last.waited_ns.saturating_sub(self.before.waited_ns);
        QueuedThread {
            pid: self.pid,
            tid,
            comm: String::new(),
            // Since Linux 6.16, the record of its end comes before its memory is freed, for which it runs a little longer.
            lived_ns: end_ns.saturating_sub(self.since_ns).max(ran_ns.saturating_add(waited_ns)),
            ran_ns,
            waited_ns,
            unseen_ns: end_ns.saturating_sub(self.seen_ns),
        }
    }
}

/// Adds a thread's times to the sums.
fn add(sums: &mut Queued, thread: QueuedThread, name: impl FnOnce() -> String) {
    sums.ran_ns += thread.ran_ns;
    sums.waited_ns += thread.waited_ns;
    sums.unseen_ns += thread.unseen_ns;
    let wanted = |thread: &QueuedThread| thread.ran_ns + thread.waited_ns;
    if sums.busiest.as_ref().is_none_or(|busiest| wanted(busiest) < wanted(&thread)) {
        sums.busiest = Some(QueuedThread { comm: name(), ..thread });
    }
}

/// A thread's name; empty if unknown.
fn name(threads: &FxHashMap<u32, Thread>, tid: u32) -> String {
    threads.get(&tid).map_or(String::new(), |thread| thread.name.text().into_owned())
}

impl Queues {
    /// Listens for ends of threads from now on, if the kernel reports them.
    pub(crate) fn listen() -> Self {
        let heard = Heard { ends: Ends::listen().ok(), ..Heard::default() };
        Queues { heard, ..Queues::default() }
    }

    /// Starts to read a running thread.
    pub(crate) fn watch(&mut self, pid: u32, tid: u32) {
        if let Some(before) = procfs::run_times(pid, tid) {
            self.is_told = true;
            self.threads.insert(tid, Watched::new(pid, monotonic_ns(), before));
        }
    }

    /// Handles the start of a thread.
    pub(crate) fn begin(&mut self, pid: u32, tid: u32, time_ns: u64) {
        match self.threads.get(&tid) {
            // The record is from before the first read, which has found the thread.
            Some(known) if known.since_ns >= time_ns => {}
            // A thread ID is reused, and the record of its end was lost.
            known => {
                let old = known.map(|known| known.so_far(tid, time_ns));
                self.threads.insert(tid, Watched::new(pid, time_ns, RunTimes::default()));
                old.into_iter().for_each(|old| add(&mut self.ended, old, String::new));
            }
        }
    }

    /// Changes a thread's ID.
    pub(crate) fn renumber(&mut self, tid: u32, number: u32) {
        if let Some(watched) = self.threads.remove(&tid) {
            self.threads.insert(number, watched);
        }
    }

    /// Handles the end of a thread.
    pub(crate) fn end(&mut self, tasks: &Tasks, tid: u32, time_ns: Option<u64>) {
        let Some(mut watched) = self.threads.remove(&tid) else { return };
        let end_ns = time_ns.unwrap_or(watched.seen_ns);
        if let Some(times) = self.heard.of(tid).filter(|times| times.ran_ns >= watched.last.ran_ns) {
            self.is_told = true;
            (watched.last, watched.seen_ns) = (times, end_ns);
        }
        add(&mut self.ended, watched.so_far(tid, end_ns), || name(&tasks.threads, tid));
    }

    /// Reads the times of all threads again, if due or `now`.
    pub(crate) fn look(&mut self, now: bool) {
        self.heard.listen();
        let begin_ns = monotonic_ns();
        if !now && begin_ns < self.next_ns {
            return;
        }
        for (&tid, watched) in &mut self.threads {
            // A thread that has ended, or whose ID belongs to another process by now, keeps its last times.
            if let Some(times) = procfs::run_times(watched.pid, tid)
                && times.ran_ns >= watched.last.ran_ns
            {
                self.is_told = true;
                watched.seen_ns = monotonic_ns();
                if times != watched.last {
                    (watched.last, watched.moved_ns) = (times, watched.seen_ns);
                } else if now && procfs::is_runnable(watched.pid, tid) {
                    // A wait is accounted when it ends: the current one may have started at the last change.
                    watched.seen_ns = watched.moved_ns;
                }
            }
        }
        let end_ns = monotonic_ns();
        let took_ns = end_ns.saturating_sub(begin_ns);
        self.next_ns = end_ns + PAUSE_NS.max(took_ns.saturating_mul(PAUSE_TIMES));
    }

    /// All times, up to `end_ns`. `None`: the kernel doesn't report them.
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

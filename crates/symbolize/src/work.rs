//! The worker threads, and the distribution of jobs.
//!
//! A file with requests while the profile is still being recorded belongs to one thread, which keeps it open until its last
//! frames are known, as long as there is [`Room`]. A file first requested at the end is taken by any free thread, the
//! largest first, and closed at once.
//!
//! Invariant: whatever one file makes its parser do, the other files' answers arrive; a parser that panics
//! loses that file only, which is reported.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plumb_process::usage::thread_cpu_ns;
use plumb_profile::DsoKind;

use crate::file::{Images, OpenFile};
use crate::job::{Answer, FileIdentity, Job};
use crate::options::{Options, Progress};
use crate::room::{Room, Share, has_left};
use crate::sources::Sources;
use crate::summary::Missing;

/// Stack size of a worker: larger than usual, because demanglers are recursive.
pub(crate) const STACK: usize = 8 << 20;
/// Memory budget for open files without a configured limit, in bytes.
const ROOM: u64 = 1 << 30;
/// Least pause before a file without room is reopened while its names are awaited, as a multiple of the time that opening took.
const PAUSE: u32 = 50;
/// Absolute lower bound of that pause.
const PAUSE_LEAST: Duration = Duration::from_millis(100);

/// A message from a worker.
pub(crate) enum Message {
    /// Progress for the user.
    Progress(Progress),
    /// Results about some frames of a file, while the profile is still being recorded.
    Noted(Box<Answer>),
    /// Final results about a file.
    Answer(Box<Answer>),
}

/// The jobs to do.
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    room: Room,
    /// Whether results are needed at once, so that no job may wait for the end.
    is_live: bool,
}

struct State {
    sources: Arc<Sources>,
    /// Jobs of each worker.
    own: Vec<Vec<Job>>,
    /// Jobs for any worker; taken from the end.
    common: Vec<Job>,
    /// Whether no more jobs come.
    is_closed: bool,
    /// Number of workers with a job.
    busy: usize,
    /// CPU time spent so far, in seconds.
    seconds: f64,
}

impl Queue {
    /// Creates an empty queue.
    pub fn new(sources: Sources, is_live: bool) -> Self {
        let room = Room::new(sources.options.max_memory.unwrap_or(ROOM));
        let sources = Arc::new(sources);
        let state =
            State { sources, own: Vec::new(), common: Vec::new(), is_closed: false, busy: 0, seconds: 0.0 };
        Self { state: Mutex::new(state), changed: Condvar::new(), room, is_live }
    }

    /// Starts one more worker; returns false if no thread can be created.
    pub fn hire(self: &Arc<Self>, sender: &Sender<Message>) -> bool {
        let number = self.number();
        let (queue, sender) = (Arc::clone(self), sender.clone());
        let builder = thread::Builder::new().name("symbolize".into()).stack_size(STACK);
        builder.spawn(move || queue.work(number, &sender)).is_ok()
    }

    /// Works in this thread until no jobs are left, on a closed queue.
    pub fn work_here(&self, sender: &Sender<Message>) {
        self.work(self.number(), sender);
    }

    fn number(&self) -> usize {
        let mut state = self.lock();
        state.own.push(Vec::new());
        state.own.len() - 1
    }

    /// Gives a worker a job that may be finished as late as the end.
    pub fn give(&self, worker: usize, job: Job) {
        self.lock().own[worker].push(job);
        self.changed.notify_all();
    }

    /// Closes the queue after the jobs `own` for their workers and `common`, the largest last, for any worker.
    pub fn close(&self, sources: Sources, own: Vec<(usize, Job)>, common: Vec<Job>) {
        let mut state = self.lock();
        own.into_iter().for_each(|(worker, job)| state.own[worker].push(job));
        state.common.extend(common);
        state.sources = Arc::new(sources);
        state.is_closed = true;
        self.changed.notify_all();
    }

    /// Closes the queue and drops all jobs.
    pub fn abandon(&self) {
        let mut state = self.lock();
        state.own.iter_mut().for_each(Vec::clear);
        state.common.clear();
        state.is_closed = true;
        self.changed.notify_all();
    }

    /// Whether a worker has, or is about to get, a job. Jobs that wait for their file to be reopened do not count.
    pub fn is_busy(&self) -> bool {
        let state = self.lock();
        state.busy > 0 || state.own.iter().any(|jobs| !jobs.is_empty())
    }

    /// Drops jobs that were not started yet.
    pub fn forget_waiting(&self) {
        self.lock().own.iter_mut().for_each(Vec::clear);
    }

    /// Returns the CPU time of finished jobs, in seconds.
    pub fn seconds(&self) -> f64 {
        self.lock().seconds
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned lock only means that another worker panicked; the queue itself is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next job of a worker: its own first. Waits until `until` at most.
    fn next(&self, worker: usize, until: Option<Instant>) -> Next {
        let mut state = self.lock();
        loop {
            let sources = Arc::clone(&state.sources);
            if let Some(job) = state.own[worker].pop() {
                state.busy += 1;
                return Next::Own(job, sources, state.is_closed);
            }
            if let Some(job) = state.common.pop() {
                return Next::Common(job, sources);
            }
            if state.is_closed {
                return Next::Nothing(sources);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            state = match left {
                Some(left) if left.is_zero() => return Next::Waited(sources),
                Some(left) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn work(&self, number: usize, sender: &Sender<Message>) {
        let mut held: HashMap<FileIdentity, Held<'_>> = HashMap::new();
        let mut generation = 0;
        loop {
            let until = held.values().filter_map(Held::due).min();
            match self.next(number, until) {
                Next::Own(job, sources, is_last) => {
                    if job.generation != generation {
                        // These files had no requests during the whole previous profile.
                        held.retain(|_, held| held.answer.generation == generation);
                        generation = job.generation;
                    }
                    let held = held.entry(job.identity()).or_insert_with(|| Held::new(&job, self.is_live));
                    let seconds = held.take(job, (&sources, sender), &self.room, is_last);
                    self.tell(held, sender);
                    let mut state = self.lock();
                    state.seconds += seconds;
                    state.busy = state.busy.saturating_sub(1);
                }
                Next::Waited(sources) => {
                    let now = Instant::now();
                    for held in held.values_mut().filter(|held| held.due().is_some_and(|due| due <= now)) {
                        if let Some(job) = held.waiting.take() {
                            self.lock().seconds += held.take(job, (&sources, sender), &self.room, false);
                            self.tell(held, sender);
                        }
                    }
                }
                Next::Common(job, sources) => {
                    let mut held = Held::new(&job, false);
                    held.take(job, (&sources, sender), &self.room, true);
                    // The receiver may be gone.
                    let _ = sender.send(Message::Answer(Box::new(held.answer)));
                }
                Next::Nothing(sources) => {
                    // No more frames come, so open files are closed to make room.
                    held.values_mut().for_each(|held| held.open = None);
                    for (_, mut held) in held {
                        if let Some(job) = held.waiting.take() {
                            held.take(job, (&sources, sender), &self.room, true);
                        }
                        let _ = sender.send(Message::Answer(Box::new(held.answer)));
                    }
                    return;
                }
            }
        }
    }

    /// Sends the results so far.
    fn tell(&self, held: &mut Held<'_>, sender: &Sender<Message>) {
        if !held.answer.is_empty() {
            let _ = sender.send(Message::Noted(Box::new(held.answer.take_noted())));
        }
        // An open file still uses the numbers.
        if held.open.is_none() {
            held.answer.forget_numbers();
        }
    }
}

enum Next {
    /// A job of the worker's own, and whether it is the last for its file.
    Own(Job, Arc<Sources>, bool),
    Common(Job, Arc<Sources>),
    /// A deferred job is due.
    Waited(Arc<Sources>),
    Nothing(Arc<Sources>),
}

/// A file that a worker holds.
struct Held<'r> {
    answer: Answer,
    open: Option<(OpenFile, Share<'r>)>,
    /// Deferred frames: until the end, or until the file may be reopened.
    waiting: Option<Job>,
    /// Earliest time at which a file without room may be reopened.
    again: Option<Instant>,
    /// Whether its parser panicked.
    is_lost: bool,
    /// Whether results are needed at once, so that nothing may wait for the end.
    is_live: bool,
}

impl<'r> Held<'r> {
    fn new(job: &Job, is_live: bool) -> Self {
        Self { answer: Answer::new(job), open: None, waiting: None, again: None, is_lost: false, is_live }
    }

    /// Returns when the deferred job is due, if before the end.
    fn due(&self) -> Option<Instant> {
        self.again.filter(|_| self.waiting.is_some())
    }

    /// Does a job, or defers it while the profile is being recorded if its file cannot be found or held open. Returns
    /// the CPU time used, in seconds.
    fn take(
        &mut self,
        mut job: Job,
        (sources, sender): (&Sources, &Sender<Message>),
        room: &'r Room,
        is_last: bool,
    ) -> f64 {
        self.answer.follow(&job);
        if let Some(waiting) = self.waiting.take().filter(|old| old.generation == job.generation) {
            job.frames.extend(waiting.frames);
        }
        if !is_last && self.again.is_some_and(|again| again > Instant::now()) {
            self.waiting = Some(job);
            return 0.0;
        }
        let start = thread_cpu_ns();
        let frames = job.frames.len();
        let solved = catch_unwind(AssertUnwindSafe(|| {
            if !self.is_lost {
                self.solve(job, (sources, sender), room, is_last);
            }
        }));
        if solved.is_err() {
            self.is_lost = true;
            self.open = None;
            let what = format!("{}: its parser failed", self.answer.summary.path);
            self.answer.miss(Missing::Skipped { what });
        }
        if is_last {
            self.open = None;
        }
        if self.waiting.is_none() {
            self.answer.summary.frames += frames;
        }
        let seconds = thread_cpu_ns().saturating_sub(start) as f64 * 1e-9;
        self.answer.summary.seconds += seconds;
        seconds
    }

    fn solve(
        &mut self,
        job: Job,
        (sources, sender): (&Sources, &Sender<Message>),
        room: &'r Room,
        is_last: bool,
    ) {
        if !matches!(job.kind, DsoKind::File | DsoKind::Vdso) {
            sources.name(&job, &mut self.answer);
            return;
        }
        if let Some((open, _)) = &mut self.open {
            open.resolve(&job, &mut self.answer);
            return;
        }
        // Only the last attempt's missing information is reported.
        let mut answer = Answer::new(&job);
        let found = sources.images(&job, &mut answer, sender);
        let bytes = found.as_ref().map_or(0, |images: &Images| images.bytes(&sources.options));
        let share = if is_last { None } else { room.keep(bytes) };
        if !self.is_live && !is_last && (share.is_none() || found.is_none()) {
            self.waiting = Some(job);
            return;
        }
        self.answer.begin_again(answer);
        let Some(images) = found else { return };
        match share {
            Some(share) => {
                let mut open = OpenFile::of(images, &sources.options, &mut self.answer);
                open.resolve(&job, &mut self.answer);
                self.open = Some((open, share));
            }
            None => {
                let _share = room.pass(bytes);
                let start = Instant::now();
                let fits =
                    !sources.options.lines || has_left(bytes, sources.options.max_resident, self.is_live);
                let without = (!fits).then(|| {
                    self.answer.miss(Missing::NoRoom { bytes });
                    Options { lines: false, ..sources.options.clone() }
                });
                let options = without.as_ref().unwrap_or(&sources.options);
                OpenFile::of(images, options, &mut self.answer).resolve(&job, &mut self.answer);
                self.again = (!is_last).then(|| Instant::now() + (start.elapsed() * PAUSE).max(PAUSE_LEAST));
            }
        }
    }
}

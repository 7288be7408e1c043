//! The threads that do the work, and which of them does what.
//!
//! A file that is asked about while the profile is still being made belongs to one thread, which has it open until the
//! end. What is asked for at the end for the first time is taken by whoever is free, the biggest first, and forgotten
//! at once.
//!
//! Invariant: whatever one file makes its parser do, the others' answers arrive; a parser that fails by panicking
//! loses that file only, which is counted.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use plumb_profile::{DsoId, DsoKind};
use typed_arena::Arena;

use crate::dwarf::store::Store;
use crate::file::{Images, Open};
use crate::job::{Answer, Job};
use crate::options::Progress;
use crate::sources::Sources;
use crate::summary::Missing;

/// A worker's stack: deeper than usual, because demanglers are recursive.
pub(crate) const STACK: usize = 8 << 20;
/// Bytes of files that a worker holds while the profile is being made. What is more waits for the end.
const HELD: u64 = 256 << 20;

/// What a worker says.
pub(crate) enum Message {
    /// For the user.
    Progress(Progress),
    /// What was found out about some frames of a file, while the profile is still being made.
    Noted(Box<Answer>),
    /// What was found out about a file, all in all.
    Answer(Box<Answer>),
}

/// What is to be done.
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// Names are wanted as soon as they are found.
    is_live: bool,
}

struct State {
    sources: Arc<Sources>,
    /// Per worker its own.
    own: Vec<Vec<Job>>,
    /// Anybody's; taken from the end.
    common: Vec<Job>,
    /// Whether nothing comes any more.
    is_closed: bool,
    /// Seconds of processor time spent so far.
    seconds: f64,
}

impl Queue {
    /// Nothing to do yet.
    pub fn new(sources: Sources, is_live: bool) -> Self {
        let sources = Arc::new(sources);
        let state = State { sources, own: Vec::new(), common: Vec::new(), is_closed: false, seconds: 0.0 };
        Self { state: Mutex::new(state), changed: Condvar::new(), is_live }
    }

    /// Starts one more worker; false if there is no thread to be had.
    pub fn hire(self: &Arc<Self>, sender: &Sender<Message>) -> bool {
        let number = self.number();
        let (queue, sender) = (Arc::clone(self), sender.clone());
        let builder = thread::Builder::new().name("symbolize".into()).stack_size(STACK);
        builder.spawn(move || queue.work(number, &sender)).is_ok()
    }

    /// Works until nothing is left, on a queue that is closed.
    pub fn work_here(&self, sender: &Sender<Message>) {
        self.work(self.number(), sender);
    }

    fn number(&self) -> usize {
        let mut state = self.lock();
        state.own.push(Vec::new());
        state.own.len() - 1
    }

    /// Gives a worker a job that needs not be done before the end.
    pub fn give(&self, worker: usize, job: Job) {
        self.lock().own[worker].push(job);
        self.changed.notify_all();
    }

    /// Tells that nothing more comes but `own` for its workers and `common`, the biggest last, for anybody.
    pub fn close(&self, sources: Sources, own: Vec<(usize, Job)>, common: Vec<Job>) {
        let mut state = self.lock();
        own.into_iter().for_each(|(worker, job)| state.own[worker].push(job));
        state.common.extend(common);
        state.sources = Arc::new(sources);
        state.is_closed = true;
        self.changed.notify_all();
    }

    /// Tells that nothing is wanted any more.
    pub fn abandon(&self) {
        let mut state = self.lock();
        state.own.iter_mut().for_each(Vec::clear);
        state.common.clear();
        state.is_closed = true;
        self.changed.notify_all();
    }

    /// Seconds of processor time that were spent on finished jobs.
    pub fn seconds(&self) -> f64 {
        self.lock().seconds
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned lock only says that another worker died; the queue itself is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job of a worker: its own first.
    fn next(&self, worker: usize) -> Next {
        let mut state = self.lock();
        loop {
            let sources = Arc::clone(&state.sources);
            if let Some(job) = state.own[worker].pop() {
                return Next::Own(job, sources, state.is_closed);
            }
            if let Some(job) = state.common.pop() {
                return Next::Common(job, sources);
            }
            if state.is_closed {
                return Next::Nothing(sources);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn work(&self, number: usize, sender: &Sender<Message>) {
        let stores = Arena::new();
        let mut held: HashMap<DsoId, Held<'_>> = HashMap::new();
        let mut bytes = 0;
        loop {
            match self.next(number) {
                Next::Own(job, sources, is_last) => {
                    let held = held.entry(job.dso).or_insert_with(|| Held::new(&job, self.is_live));
                    self.lock().seconds += held.take(job, (&sources, sender), is_last, &stores, &mut bytes);
                    if self.is_live && !held.answer.is_empty() {
                        let _ = sender.send(Message::Noted(Box::new(held.answer.take_noted())));
                    }
                }
                Next::Common(job, sources) => {
                    let stores = Arena::new();
                    let mut held = Held::new(&job, false);
                    held.take(job, (&sources, sender), true, &stores, &mut bytes);
                    // Who asked may have gone away.
                    let _ = sender.send(Message::Answer(Box::new(held.answer)));
                }
                Next::Nothing(sources) => {
                    for (_, mut held) in held {
                        if let Some(job) = held.waiting.take() {
                            held.take(job, (&sources, sender), true, &stores, &mut bytes);
                        }
                        let _ = sender.send(Message::Answer(Box::new(held.answer)));
                    }
                    return;
                }
            }
        }
    }
}

enum Next {
    /// A job of the worker's own, and whether it is the last for its file.
    Own(Job, Arc<Sources>, bool),
    Common(Job, Arc<Sources>),
    Nothing(Arc<Sources>),
}

/// A file of a worker's.
struct Held<'s> {
    answer: Answer,
    open: Option<Open<'s>>,
    /// What has to wait for the end.
    waiting: Option<Job>,
    /// Its parser failed.
    is_lost: bool,
    /// Nothing may wait for the end.
    is_live: bool,
}

impl<'s> Held<'s> {
    fn new(job: &Job, is_live: bool) -> Self {
        Self { answer: Answer::new(job), open: None, waiting: None, is_lost: false, is_live }
    }

    /// Does a job, unless it has to wait: while the profile is being made, for what can't be had or held now. Returns
    /// the seconds of processor time that it took.
    fn take(
        &mut self,
        mut job: Job,
        (sources, sender): (&Sources, &Sender<Message>),
        is_last: bool,
        stores: &'s Arena<Store>,
        held: &mut u64,
    ) -> f64 {
        if let Some(waiting) = self.waiting.take() {
            job.frames.extend(waiting.frames);
        }
        let start = cpu_seconds();
        let frames = job.frames.len();
        let solved = catch_unwind(AssertUnwindSafe(|| {
            if !self.is_lost {
                self.solve(job, sources, sender, is_last, stores, held);
            }
        }));
        if solved.is_err() {
            self.is_lost = true;
            self.open = None;
            let what = format!("{}: its parser failed", self.answer.summary.path);
            self.answer.miss(Missing::Skipped { what });
        }
        if self.waiting.is_none() {
            self.answer.summary.frames += frames;
        }
        let seconds = cpu_seconds() - start;
        self.answer.summary.seconds += seconds;
        seconds
    }

    fn solve(
        &mut self,
        job: Job,
        sources: &Sources,
        sender: &Sender<Message>,
        is_last: bool,
        stores: &'s Arena<Store>,
        held: &mut u64,
    ) {
        if !matches!(job.kind, DsoKind::File | DsoKind::Vdso) {
            sources.name(&job, &mut self.answer);
            return;
        }
        if self.open.is_none() {
            // What is missing is said only of what holds in the end.
            let mut answer = Answer::new(&job);
            let found = sources.images(&job, &mut answer, sender);
            let bytes = found.as_ref().map_or(u64::MAX, |images: &Images| images.bytes(&sources.options));
            let held_then = held.saturating_add(bytes);
            let is_too_much = !is_last && held_then > HELD;
            if is_too_much && !self.is_live {
                self.waiting = Some(job);
                return;
            }
            answer.summary.frames = self.answer.summary.frames;
            answer.summary.seconds = self.answer.summary.seconds;
            self.answer = answer;
            let Some(images) = found else { return };
            if is_too_much {
                let stores = Arena::new();
                Open::new(images, &sources.options, &stores, &mut self.answer)
                    .resolve(&job, &mut self.answer);
                return;
            }
            *held = held_then;
            self.open = Some(Open::new(images, &sources.options, stores, &mut self.answer));
        }
        if let Some(open) = &mut self.open {
            open.resolve(&job, &mut self.answer);
        }
    }
}

/// Processor time of this thread, 0 if the kernel doesn't count it.
fn cpu_seconds() -> f64 {
    // "time on cpu, time waiting, time slices", in nanoseconds (kernel: Documentation/scheduler/sched-stats.rst).
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) * 1e-9
}

//! The threads that do the work, and which of them does what.
//!
//! A file that is asked about while the profile is still being made belongs to one thread, which has it open until its last
//! frames are known, as long as there is [`Room`]. What is asked for at the end for the first time is taken by whoever is free, the
//! biggest first, and forgotten at once.
//!
//! Invariant: whatever one file makes its parser do, the others' answers arrive; a parser that fails by panicking
//! loses that file only, which is counted.

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

/// A worker's stack: deeper than usual, because demanglers are recursive.
pub(crate) const STACK: usize = 8 << 20;
/// Bytes of files that are open, where no bound is given.
const ROOM: u64 = 1 << 30;
/// A file for which there is no room is opened again no sooner than so many times what that took, where somebody waits for its names.
const PAUSE: u32 = 50;
/// ... and than this.
const PAUSE_LEAST: Duration = Duration::from_millis(100);

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
    room: Room,
    /// Nothing may wait for the end.
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
    /// Workers that have a job.
    busy: usize,
    /// Seconds of processor time spent so far.
    seconds: f64,
}

impl Queue {
    /// Nothing to do yet.
    pub fn new(sources: Sources, is_live: bool) -> Self {
        let room = Room::new(sources.options.max_memory.unwrap_or(ROOM));
        let sources = Arc::new(sources);
        let state =
            State { sources, own: Vec::new(), common: Vec::new(), is_closed: false, busy: 0, seconds: 0.0 };
        Self { state: Mutex::new(state), changed: Condvar::new(), room, is_live }
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

    /// Whether a worker has, or is going to have, a job. What waits for its file to be opened again is no such job.
    pub fn is_busy(&self) -> bool {
        let state = self.lock();
        state.busy > 0 || state.own.iter().any(|jobs| !jobs.is_empty())
    }

    /// Forgets what nobody has begun yet.
    pub fn forget_waiting(&self) {
        self.lock().own.iter_mut().for_each(Vec::clear);
    }

    /// Seconds of processor time that were spent on finished jobs.
    pub fn seconds(&self) -> f64 {
        self.lock().seconds
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned lock only says that another worker died; the queue itself is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job of a worker: its own first. With `until` it is waited for no longer.
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
                        // Nobody asked about these for as long as the last profile was made.
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
                    // Who asked may have gone away.
                    let _ = sender.send(Message::Answer(Box::new(held.answer)));
                }
                Next::Nothing(sources) => {
                    // No more frames come: what is still open makes room.
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

    /// Hands over what was found so far.
    fn tell(&self, held: &mut Held<'_>, sender: &Sender<Message>) {
        if !held.answer.is_empty() {
            let _ = sender.send(Message::Noted(Box::new(held.answer.take_noted())));
        }
        // A file that is open goes by their numbers.
        if held.open.is_none() {
            held.answer.forget_numbers();
        }
    }
}

enum Next {
    /// A job of the worker's own, and whether it is the last for its file.
    Own(Job, Arc<Sources>, bool),
    Common(Job, Arc<Sources>),
    /// What waits is due.
    Waited(Arc<Sources>),
    Nothing(Arc<Sources>),
}

/// A file of a worker's.
struct Held<'r> {
    answer: Answer,
    open: Option<(OpenFile, Share<'r>)>,
    /// What has to wait: for the end, or until it is time to open the file again.
    waiting: Option<Job>,
    /// When a file for which there is no room may be opened again.
    again: Option<Instant>,
    /// Its parser failed.
    is_lost: bool,
    /// Nothing may wait for the end.
    is_live: bool,
}

impl<'r> Held<'r> {
    fn new(job: &Job, is_live: bool) -> Self {
        Self { answer: Answer::new(job), open: None, waiting: None, again: None, is_lost: false, is_live }
    }

    /// When what waits is due, if that is before the end.
    fn due(&self) -> Option<Instant> {
        self.again.filter(|_| self.waiting.is_some())
    }

    /// Does a job, unless it has to wait: while the profile is being made, for what can't be had or held now. Returns
    /// the seconds of processor time that it took.
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
        // What is missing is said only of what holds in the end.
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

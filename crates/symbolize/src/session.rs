//! Finding names while a profile is still being made: [`Session`].
//!
//! Invariant: what is found is what would be found at the end alone. What may still change (a just-in-time compiler's
//! map, a file that can't be told from another) waits for the end, unless somebody looks on ([`Session::begin_live`]).

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plumb_profile::{AddressSpace, BuildId, DsoId, DsoKind, Id, Meta, Profile};

use crate::debuginfod::Debuginfod;
use crate::job::{self, Answer, FileIdentity, Job};
use crate::kernel::Kernel;
use crate::options::{Options, Progress};
use crate::perf_map;
use crate::roots::ProcessRoots;
use crate::sources::Sources;
use crate::summary::{DsoSummary, Missing, Summary};
use crate::work::{Message, Queue};

/// Most workers while the profile is being made: the recorded program needs the CPUs.
const EARLY_WORKERS: usize = 2;

/// Longest interval between checks whether the workers have finished.
const LOOK: Duration = Duration::from_millis(5);

/// Most frames whose names wait for those of earlier files, so that names are in the order of files. This bounds memory.
const WAITING: usize = 1 << 15;

/// Finds names for a profile: in rounds while the profile is being made, and the rest at its end.
///
/// Mangled names are left to [`make_readable`](crate::make_readable).
///
/// Between calls, frames may only be added to the profile, unless [`Session::renew`] reports other changes.
pub struct Session {
    options: Options,
    kernel: Arc<Kernel>,
    queue: Arc<Queue>,
    sender: Option<Sender<Message>>,
    receiver: Receiver<Message>,
    workers: usize,
    /// To whom a file belongs, and in which generation it was asked about last.
    owners: HashMap<FileIdentity, (usize, u32)>,
    /// Bytes of the files of each worker.
    loads: Vec<u64>,
    /// Frames that were looked at.
    seen: usize,
    roots: ProcessRoots,
    /// Counts profiles: see [`Session::renew`].
    generation: u32,
    is_live: bool,
    /// The only files with a build id whose frames are named; `None`: all.
    own_files: Option<HashSet<BuildId>>,
    /// Names that were found before the end and are not in the profile yet.
    noted: Vec<Answer>,
    closed: Option<Closed>,
}

/// State of the last part of the work.
struct Closed {
    since: Instant,
    /// Names that are not in the profile yet, and the number of their frames.
    answers: Vec<Answer>,
    frames: usize,
    /// Number of files done, and of all files.
    done: usize,
    total: usize,
    is_done: bool,
}

impl Session {
    /// Nothing is done yet.
    pub fn begin(options: Options) -> Self {
        Self::new(options, false)
    }

    /// Nothing is done yet. All names are wanted while the profile is being made ([`Session::take`]): what may still change is looked
    /// up too, as it is then.
    pub fn begin_live(options: Options) -> Self {
        Self::new(options, true)
    }

    fn new(options: Options, is_live: bool) -> Self {
        let kernel = Arc::new(Kernel::default());
        // The profile's own facts are there at its end. Until then it is one of this machine that is being made now.
        let (meta, debuginfod) = (Meta::default(), None);
        let sources = Sources { options: options.clone(), meta, kernel: Arc::clone(&kernel), debuginfod };
        let (sender, receiver) = mpsc::channel();
        Self {
            options,
            kernel,
            queue: Arc::new(Queue::new(sources, is_live)),
            sender: Some(sender),
            receiver,
            workers: 0,
            owners: HashMap::new(),
            loads: Vec::new(),
            seen: 0,
            roots: ProcessRoots::default(),
            generation: 0,
            is_live,
            own_files: None,
            noted: Vec::new(),
            closed: None,
        }
    }

    /// Starts to find names for the frames that `profile` has gained since the last call, in separate threads; returns at once. Only for a profile of
    /// this machine that is being made.
    pub fn round(&mut self, profile: &Profile) {
        self.note_processes(profile);
        if self.closed.is_some() || profile.frames.len() == self.seen {
            return;
        }
        let mut jobs = job::jobs(profile, self.seen);
        if self.options.debuginfod {
            // Servers are asked only once, at the end, with enough time for all files and progress shown to the user.
            jobs.retain(|job| !is_identified(job));
        }
        if self.is_live {
            // By now, a JIT compiler may have provided names for older frames.
            let is_compiled = |job: &Job| matches!(job.kind, DsoKind::Anonymous { .. });
            jobs.retain(|job| !is_compiled(job));
            jobs.extend(job::jobs(profile, 0).into_iter().filter(is_compiled));
        }
        if let Some(own) = &self.own_files {
            let is_own = |job: &Job| job.build_id.as_ref().is_some_and(|build_id| own.contains(build_id));
            jobs.retain(|job| !is_identified(job) || is_own(job));
        }
        self.seen = profile.frames.len();
        let is_live = self.is_live;
        self.give(jobs.into_iter().filter(|job| is_live || !must_wait(job)));
    }

    /// Starts to find names for all unnamed frames of these files, even where other files are named elsewhere: no path leads to these files, so they
    /// are read through open descriptors.
    pub fn round_held(&mut self, profile: &Profile, files: Vec<(DsoId, File)>) {
        let mut files: HashMap<DsoId, File> = files.into_iter().collect();
        if files.is_empty() || self.closed.is_some() {
            return;
        }
        let jobs = job::jobs(profile, 0).into_iter();
        self.give(jobs.filter_map(|job| Some(Job { held: Some(files.remove(&job.dso)?), ..job })));
    }

    /// Notes what names need of the processes that `profile` has gained since the last call, while they run: takes microseconds for each.
    /// A process that ends before the next [`round`](Self::round) has names even so.
    pub fn note_processes(&mut self, profile: &Profile) {
        self.note_users(profile);
        self.roots.note(profile, &self.options);
    }

    fn give(&mut self, jobs: impl Iterator<Item = Job>) {
        for mut job in jobs {
            (job.generation, job.roots) = (self.generation, self.roots.of(&job.pids));
            let Some(worker) = self.owner(&job) else { continue };
            self.queue.give(worker, job);
        }
    }

    /// Notes the users of processes with code compiled at run time while the processes run: the maps of such code are theirs, see [`Options::users`].
    fn note_users(&mut self, profile: &Profile) {
        for (_, dso) in profile.dsos.iter().skip(self.roots.seen_files) {
            if let DsoKind::Anonymous { pid } = dso.kind
                && let Some(user) = perf_map::user(&self.options.process(pid))
            {
                self.options.users.insert(pid, user);
            }
        }
        self.roots.seen_files = profile.dsos.len();
    }

    /// From now on rounds leave frames of files with a build id to somebody else who has the files, but for these files.
    pub fn leave_identified(&mut self, but: HashSet<BuildId>) {
        self.own_files = Some(but);
    }

    /// Waits until what was asked for in the rounds so far is found, but not longer than `limit`. [`Session::take`] has the names.
    pub fn settle(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while self.closed.is_none() && self.queue.is_busy() {
            let left = deadline.saturating_duration_since(Instant::now()).min(LOOK);
            if left.is_zero() {
                return;
            }
            if let Ok(Message::Noted(answer)) = self.receiver.recv_timeout(left) {
                self.note(answer);
            }
        }
    }

    /// Keeps an answer, unless it is for a profile that no longer exists.
    fn note(&mut self, answer: Box<Answer>) {
        if answer.generation == self.generation {
            self.noted.push(*answer);
        }
    }

    /// Writes the names into the profile that were found since the last call; whether there were any. Returns at once.
    pub fn take(&mut self, profile: &mut Profile) -> bool {
        while self.closed.is_none()
            && let Ok(message) = self.receiver.try_recv()
        {
            if let Message::Noted(answer) = message {
                self.note(answer);
            }
        }
        let any = !self.noted.is_empty();
        for answer in self.noted.drain(..) {
            answer.store(profile);
        }
        any
    }

    /// From now on names are wanted for another profile: all ids are new, and what was found for frames of the one before is forgotten
    /// unless it was [taken](Session::take). Files stay open that were asked about lately.
    pub fn renew(&mut self) {
        let last = self.generation;
        self.generation += 1;
        self.seen = 0;
        self.noted.clear();
        self.queue.forget_waiting();
        self.owners.retain(|_, (_, generation)| *generation == last);
        self.roots.forget();
        // Code compiled at run time is looked up by process ID, and IDs are reused.
        self.options.users.clear();
    }

    /// CPU time of the rounds so far.
    pub fn cpu_time(&self) -> Duration {
        Duration::try_from_secs_f64(self.queue.seconds()).unwrap_or_default()
    }

    /// Starts to find names for all frames that have none yet. `images` has the locations of files that can't be reached by their paths
    /// ([`Options::images`]).
    pub fn close(&mut self, profile: &Profile, images: HashMap<DsoId, Vec<std::path::PathBuf>>) {
        self.options.images.extend(images);
        self.options.recorded_until = self.options.recorded_until.or(end_of(&profile.meta));
        let mut own = Vec::new();
        let mut common = Vec::new();
        for mut job in job::jobs(profile, 0) {
            (job.generation, job.roots) = (self.generation, self.roots.of(&job.pids));
            match self.owners.get(&job.identity()) {
                Some(&(worker, _)) => {
                    job.frames.retain(|one| one.frame.index() >= self.seen);
                    own.push((worker, job));
                }
                None => common.push(job),
            }
        }
        let total = own.len() + common.len();
        common.sort_by_cached_key(size);
        let wanted = self.threads().min(common.len().max(self.workers));
        let sources = Sources {
            debuginfod: Debuginfod::new(&self.options),
            options: self.options.clone(),
            meta: profile.meta.clone(),
            kernel: Arc::clone(&self.kernel),
        };
        self.queue.close(sources, own, common);
        while self.workers < wanted && self.hire().is_some() {}
        if let Some(sender) = self.sender.take().filter(|_| self.workers == 0) {
            // No thread to be had: this one does it.
            self.queue.work_here(&sender);
        }
        self.closed = Some(Closed {
            since: Instant::now(),
            answers: Vec::new(),
            frames: 0,
            done: 0,
            total,
            is_done: false,
        });
    }

    /// Waits until all names are found, but not longer than `limit` if there is one; whether they are. `progress` is
    /// called on this thread, from time to time. Only after [`Session::close`].
    pub fn wait(&mut self, limit: Option<Duration>, progress: &mut dyn FnMut(Progress)) -> bool {
        self.wait_for(limit, usize::MAX, progress)
    }

    /// As [`wait`](Self::wait), but returns early once the names of this many frames wait.
    fn wait_for(
        &mut self,
        limit: Option<Duration>,
        frames: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> bool {
        let Some(closed) = &mut self.closed else { return false };
        let deadline = limit.map(|limit| Instant::now() + limit);
        while !closed.is_done && closed.frames < frames {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let message = match left {
                Some(left) => self.receiver.recv_timeout(left),
                None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(Message::Progress(what)) => progress(what),
                Ok(Message::Noted(answer)) => self.noted.push(*answer),
                Ok(Message::Answer(answer)) => {
                    let path = answer.summary.path.clone();
                    closed.frames += answer.summary.frames;
                    closed.done += 1;
                    closed.answers.push(*answer);
                    progress(Progress::File { path, done: closed.done, total: closed.total });
                }
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => closed.is_done = true,
            }
        }
        closed.is_done
    }

    /// Writes the names into the profile once they are found. Only after [`Session::close`].
    pub fn finish(mut self, profile: &mut Profile, progress: &mut dyn FnMut(Progress)) -> Summary {
        let mut dsos = Vec::new();
        loop {
            let is_done = self.wait_for(None, WAITING, progress);
            self.take(profile);
            let Some(closed) = &mut self.closed else { return Summary::default() };
            closed.frames = 0;
            closed.answers.sort_by_key(|answer| answer.summary.dso);
            dsos.extend(closed.answers.drain(..).map(|answer| answer.store(profile)));
            if is_done {
                dsos.sort_by_key(|dso: &DsoSummary| dso.dso);
                profile.meta.symbolized = true;
                profile.meta.warnings.extend(dsos.iter().filter_map(without_lines));
                return Summary { dsos, seconds: closed.since.elapsed().as_secs_f64() };
            }
        }
    }

    /// The worker that a file belongs to from now on.
    fn owner(&mut self, job: &Job) -> Option<usize> {
        if let Some((worker, generation)) = self.owners.get_mut(&job.identity()) {
            *generation = self.generation;
            return Some(*worker);
        }
        if self.workers < self.threads().min(EARLY_WORKERS) {
            self.hire();
        }
        let (worker, load) = self
            .loads
            .iter_mut()
            .enumerate()
            .filter(|(_, load)| **load < u64::MAX)
            .min_by_key(|(_, load)| **load)?;
        *load = load.saturating_add(size(job));
        self.owners.insert(job.identity(), (worker, self.generation));
        Some(worker)
    }

    fn hire(&mut self) -> Option<()> {
        let is_hired = self.queue.hire(self.sender.as_ref()?);
        self.workers += usize::from(is_hired);
        // A number that nobody has gets no work.
        self.loads.push(if is_hired { 0 } else { u64::MAX });
        is_hired.then_some(())
    }

    fn threads(&self) -> usize {
        match self.options.threads {
            0 => thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.queue.abandon();
    }
}

/// Returns whether the file is identified uniquely, and its addresses are those of its headers.
fn is_identified(job: &Job) -> bool {
    job.kind == DsoKind::File && job.build_id.is_some() && job.addresses == AddressSpace::Svma
}

/// Whether a job can't be done before the end: the map of code that is compiled as it runs may change, and a file
/// without build id may be another one by now.
fn must_wait(job: &Job) -> bool {
    match job.kind {
        DsoKind::Anonymous { .. } => true,
        DsoKind::File => job.build_id.is_none(),
        DsoKind::Script | DsoKind::Vdso | DsoKind::Kernel | DsoKind::KernelModule => false,
    }
}

/// A sentence on a file whose debug information there was no memory for.
fn without_lines(dso: &DsoSummary) -> Option<String> {
    let missing = dso.missing.iter().find(|missing| matches!(missing, Missing::NoRoom { .. }))?;
    Some(format!("{}: {missing}; {}", dso.path, missing.remedy()))
}

/// Estimates the cost of a job.
fn size(job: &Job) -> u64 {
    match job.kind {
        // The kernel's symbol table never is a file in this form.
        DsoKind::Kernel | DsoKind::KernelModule => 16 << 20,
        _ => std::fs::metadata(&job.path).map_or(0, |meta| meta.len()),
    }
}

/// Returns the end of the recording, if the profile has it.
fn end_of(meta: &Meta) -> Option<SystemTime> {
    let end = meta.start_unix_ns.checked_add(meta.duration_ns)?;
    (meta.start_unix_ns > 0 && meta.duration_ns > 0).then(|| UNIX_EPOCH + Duration::from_nanos(end))
}

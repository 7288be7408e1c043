//! Short looks at the system calls of services that stand out by their kernel time: at which interval they wake, which calls they make then, and with
//! which buffers.
//!
//! A thread of its own watches one service at a time, for [`WATCH`] at most, and each service ever more rarely (`turns`). Between two watches no
//! program is attached, so that system calls cost what they always do; what they cost meanwhile is the agent's ([`Observer::take_cost_ns`]). It takes system calls, and not switches of threads or counts of /proc, as they
//! say both when a process wakes and what for, and cost nothing where nobody is watched.
//!
//! Not here: which services there are (`labels`), the wire format.

mod candidates;
mod habits;
mod turns;
mod watch;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plumb_profile::Profile;

use crate::error::AgentError;
use crate::labels::{Attributes, Resources};
use candidates::{Candidate, Candidates};
pub(crate) use habits::{Habit, Wake};
use turns::Turns;
use watch::CallWatch;

/// Longest time that calls are watched at once: of a process that wakes each second it holds three intervals at least.
const WATCH: Duration = Duration::from_secs(5);

/// What was observed of a service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    /// Attributes of its resource.
    pub attributes: Attributes,
    /// Intervals between its wake-ups, if they are regular.
    pub wakes: Vec<Wake>,
    /// What it does.
    pub habits: Vec<Habit>,
}

/// The programs that watch, where the kernel takes them. To be loaded while there is little else in memory: that takes some 20 MB for a moment.
pub(crate) fn load() -> Option<CallWatch> {
    CallWatch::load().inspect_err(|error| tracing::warn!("system calls are not observed: {error}")).ok()
}

/// What the two threads share.
#[derive(Default)]
struct Shared {
    observed: Mutex<Vec<Observed>>,
    is_over: AtomicBool,
    cost_ns: AtomicU64,
    stop: AtomicBool,
}

/// The thread that watches, and whom it is to watch.
pub(crate) struct Observer {
    candidates: Candidates,
    shared: Arc<Shared>,
    sender: Option<Sender<Vec<Candidate>>>,
    thread: Option<JoinHandle<()>>,
}

impl Observer {
    /// Begins; nobody is watched without programs.
    pub fn begin(watch: Option<CallWatch>) -> Result<Self, AgentError> {
        let shared = Arc::new(Shared::default());
        let (sender, receiver) = channel();
        let spawn = |watch| {
            let worker = Worker { shared: shared.clone(), turns: Turns::default(), watch };
            let failed = |error| AgentError::System("cannot start the thread that observes", error);
            let thread = std::thread::Builder::new().name("observe".to_owned());
            thread.spawn(move || worker.work(&receiver)).map_err(failed)
        };
        let thread = watch.map(spawn).transpose()?;
        let sender = thread.is_some().then_some(sender);
        Ok(Self { candidates: Candidates::default(), shared, sender, thread })
    }

    /// Notes who stands out in a window of samples so many times a second.
    pub fn note(&mut self, profile: &Profile, resources: &Resources, frequency_hz: u32) {
        let Some(sender) = &self.sender else { return };
        // It may have given up: then nobody listens.
        let _ = sender.send(self.candidates.of_window(profile, resources, frequency_hz));
    }

    /// Watches rarely while the agent is over its budget.
    pub fn spare(&self, is_over: bool) {
        self.shared.is_over.store(is_over, Ordering::Relaxed);
    }

    /// Time that system calls of the machine took longer since the last time because somebody was watched, in nanoseconds.
    pub fn take_cost_ns(&self) -> u64 {
        self.shared.cost_ns.swap(0, Ordering::Relaxed)
    }

    /// What was observed since the last time.
    pub fn take(&self) -> Vec<Observed> {
        std::mem::take(&mut *self.shared.observed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        drop(self.sender.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that observes failed");
        }
    }
}

/// What the thread has.
struct Worker {
    shared: Arc<Shared>,
    turns: Turns,
    watch: CallWatch,
}

impl Worker {
    fn work(mut self, receiver: &Receiver<Vec<Candidate>>) {
        let mut candidates = Vec::new();
        loop {
            match receiver.recv_timeout(self.turns.pause(&candidates, Instant::now())) {
                Ok(new) => candidates = new,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            self.turns.meet(&candidates, now);
            let is_over = self.shared.is_over.load(Ordering::Relaxed);
            let Some(due) = self.turns.next(&candidates, is_over, now) else { continue };
            if let Err(error) = self.observe(due, is_over) {
                tracing::warn!("system calls are not observed from now on: {error}");
                return;
            }
        }
    }

    fn observe(&mut self, candidate: &Candidate, is_over: bool) -> Result<(), String> {
        let stop = || self.shared.stop.load(Ordering::Relaxed);
        let seen = self.watch.run(&candidate.pids, WATCH, stop).map_err(|error| error.to_string())?;
        let is_found = seen.end_ns > 0;
        self.turns.watched(&candidate.attributes, is_found, Instant::now());
        self.shared.cost_ns.fetch_add(seen.cost_ns, Ordering::Relaxed);
        let (wakes, habits) = habits::of(&seen);
        let service = candidate.attributes.get("service.name").map_or("", String::as_str);
        let cost_ms = seen.cost_ns as f64 / 1e6;
        tracing::debug!(
            service,
            calls = seen.calls.len(),
            intervals = wakes.len(),
            is_over,
            cost_ms,
            "observed"
        );
        if !wakes.is_empty() || !habits.is_empty() {
            let observed = Observed { attributes: candidate.attributes.clone(), wakes, habits };
            self.shared.observed.lock().unwrap_or_else(PoisonError::into_inner).push(observed);
        }
        Ok(())
    }
}

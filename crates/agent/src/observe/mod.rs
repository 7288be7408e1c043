//! Short traces of the system calls of services with much kernel time: the interval at which they wake up, the calls they make then, and the
//! buffers they use.
//!
//! A dedicated thread traces one service at a time, for [`WATCH`] at most, and each service more and more rarely (`turns`). Between two traces no
//! program is attached, so system calls have their usual cost; the cost during a trace is charged to the agent ([`Observer::take_cost_ns`]). The
//! observer uses system calls rather than context switches or counters in /proc, because they show both when a process wakes and why, and cost
//! nothing while nothing is traced.
//!
//! Elsewhere: the services (`labels`), the wire format.

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

/// Longest trace. It covers at least three intervals of a process that wakes each second.
const WATCH: Duration = Duration::from_secs(5);

/// Observations of a service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    /// Attributes of its resource.
    pub attributes: Attributes,
    /// Intervals between its wake-ups, if they are regular.
    pub wakes: Vec<Wake>,
    /// The service's activities.
    pub habits: Vec<Habit>,
}

/// Loads the tracing programs, if the kernel accepts them. Call it while little else is in memory: loading briefly takes some 20 MB.
pub(crate) fn load() -> Option<CallWatch> {
    CallWatch::load().inspect_err(|error| tracing::warn!("system calls are not observed: {error}")).ok()
}

/// State shared by the two threads.
#[derive(Default)]
struct Shared {
    observed: Mutex<Vec<Observed>>,
    is_over: AtomicBool,
    cost_ns: AtomicU64,
    stop: AtomicBool,
}

/// Handle of the tracing thread, and the candidates for it.
pub(crate) struct Observer {
    candidates: Candidates,
    shared: Arc<Shared>,
    sender: Option<Sender<Vec<Candidate>>>,
    thread: Option<JoinHandle<()>>,
}

impl Observer {
    /// Starts the thread. Without programs nothing is traced.
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

    /// Updates the candidates from a window sampled at `frequency_hz`.
    pub fn note(&mut self, profile: &Profile, resources: &Resources, frequency_hz: u32) {
        let Some(sender) = &self.sender else { return };
        // The thread may have given up; then nobody receives.
        let _ = sender.send(self.candidates.of_window(profile, resources, frequency_hz));
    }

    /// Sets whether the agent is over budget, in which case it traces rarely.
    pub fn spare(&self, is_over: bool) {
        self.shared.is_over.store(is_over, Ordering::Relaxed);
    }

    /// Nanoseconds by which tracing slowed the machine's system calls since the last call.
    pub fn take_cost_ns(&self) -> u64 {
        self.shared.cost_ns.swap(0, Ordering::Relaxed)
    }

    /// Observations since the last call.
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

/// State of the thread.
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

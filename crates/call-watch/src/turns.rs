//! Traces in turns: tracing is off most of the time, so that the target runs undisturbed.
//!
//! If there are few system calls, calls that begin in a turn are traced to their end, however long they take. If there are many, tracing
//! their ends would disturb the target as much as their beginnings, and calls that outlast their turn are lost.
//!
//! A separate thread switches the BPF programs on and off, since the reader of the rings may be late by seconds.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use plumb_capture_bpf::Switch;
use plumb_process::usage::monotonic_ns;

/// Length of a turn with tracing on, and of the pause after it.
const ON: Duration = Duration::from_millis(30);
const OFF: Duration = Duration::from_millis(170);
/// Calls per turn that count as many: tracing the ends of 10,000 calls a second takes a tenth of a percent of a CPU.
const MANY: u64 = 10_000 * ON.as_millis() as u64 / 1000;

/// The turns, and the thread that switches them.
pub(crate) struct Turns {
    shared: Arc<(Mutex<State>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    has_started: bool,
    is_over: bool,
    /// Intervals in which tracing was on, in sample time.
    turns: Vec<Range<u64>>,
}

impl Turns {
    /// Tracing stays on until [`start`](Self::start); for good if no thread can be created.
    pub fn new(calls: Switch, faults: Switch) -> Self {
        let shared = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let own = shared.clone();
        let thread =
            std::thread::Builder::new().name("turns".into()).spawn(move || take_turns(&own, &calls, &faults));
        Self { shared, thread: thread.ok() }
    }

    /// Starts the turns, at the first traced call.
    pub fn start(&self) {
        self.change(|state| state.has_started = true);
    }

    /// Number of turns that have ended.
    pub fn count(&self) -> usize {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).turns.len()
    }

    /// Stops the turns. Returns the intervals in which tracing was on, in order.
    pub fn end(&self) -> Vec<Range<u64>> {
        self.change(|state| state.is_over = true);
        std::mem::take(&mut self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).turns)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.0.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.1.notify_all();
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.change(|state| state.is_over = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn take_turns((state, changed): &(Mutex<State>, Condvar), calls: &Switch, faults: &Switch) {
    let wait = |state, limit| changed.wait_timeout_while(state, limit, |state: &mut State| !state.is_over);
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    while !state.has_started && !state.is_over {
        state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    while !state.is_over {
        let (begin, seen) = (monotonic_ns(), calls.seen());
        state = wait(state, ON).unwrap_or_else(PoisonError::into_inner).0;
        let is_many = calls.seen().saturating_sub(seen) >= MANY;
        // If switching off fails, tracing stays on.
        if calls.turn_off().and_then(|()| faults.turn_off()).is_err() {
            return;
        }
        state.turns.push(begin..monotonic_ns());
        faults.take_off();
        if is_many {
            calls.take_off();
        }
        state = wait(state, OFF).unwrap_or_else(PoisonError::into_inner).0;
        if state.is_over || calls.turn_on().and_then(|()| faults.turn_on()).is_err() {
            return;
        }
    }
}

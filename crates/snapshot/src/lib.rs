//! The current stacks of running processes: every thread is stopped briefly, its registers and stack
//! are copied, and it continues while the copy is unwound.
//!
//! Invariant: every process is left as it was, running or stopped by a signal. As with any debugger, a few waiting system
//! calls return `EINTR` (signal(7), "Interruption of system calls and library functions by stop
//! signals": `epoll_wait`, `semop`, reading from inotify, and others).
//!
//! Elsewhere: names of functions, output.

mod copy;
mod goroutines;
mod refusal;
mod script;
mod trace;

pub use goroutines::{GoroutineGroup, Goroutines};
pub use refusal::{NoStack, Refusal};

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use plumb_interpreters::{
    FrameSource, Interpreter, NoGoroutines, RuntimeProcess, RuntimeState, ScriptFrame, Unreadable,
    eval_frames, frames_on_stack,
};
use plumb_profile::{DsoId, EventId, Profile};
use plumb_unwind::End;

use copy::{CopiedProcess, CopiedThread, StackCopy, Wanted};
use goroutines::CopiedGoroutines;
use plumb_ingest::{Filter, Ingest, Source, StoppedStack};

/// Most places, besides the stack pointer's, that parts of a stack may be in.
const MAX_PLACES: usize = 4;

/// Reads the stack addresses of a stopped thread whose return addresses return probes (uretprobes) of other tools have replaced, each
/// with the original return address.
pub type ReplacedReturns = Arc<dyn Fn(u32) -> Vec<(u64, u64)> + Send + Sync>;

/// Options of a snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub struct SnapshotOptions {
    /// Scan stacks that end for lack of unwind information ([`plumb_ingest::MappedCode::scan_stacks`]).
    pub scan: bool,
    /// Read frames of interpreted programs as well.
    pub script: bool,
    /// Returns a reader of replaced return addresses, or `None` where the kernel does not give them. Called for the first stack with one.
    pub returns: Option<fn() -> Option<ReplacedReturns>>,
}

/// Stacks of processes.
#[derive(Debug)]
pub struct Snapshot {
    /// One sample for each thread with a known stack; addresses only.
    pub profile: Profile,
    /// The requested processes, in order.
    pub processes: Vec<(u32, Result<StoppedProcess, Refusal>)>,
    /// Frames' files that were deleted since they were mapped, held open.
    pub vanished: Vec<(DsoId, File)>,
}

/// A process and the time for which it was stopped.
#[derive(Debug)]
pub struct StoppedProcess {
    /// Path of the executable; empty for a kernel thread.
    pub executable: String,
    /// Threads of the process, by ID.
    pub threads: Vec<StoppedThread>,
    /// The known interpreter that runs in it, if any and requested.
    pub interpreter: Option<Box<dyn Interpreter>>,
    /// Goroutines that no thread runs; `None` if the program is not one of Go.
    pub goroutines: Option<Result<Goroutines, NoGoroutines>>,
    /// Time that threads were stopped, from the first to the last.
    pub held: Duration,
}

/// A thread and its state.
#[derive(Debug)]
pub struct StoppedThread {
    /// Thread id.
    pub tid: u32,
    /// Name (`comm`).
    pub name: String,
    /// State before it was stopped, see [`plumb_process::state`].
    pub state: Option<char>,
    /// Kernel functions that it waits in, innermost first. Empty if it runs, or if this user may not know.
    pub kernel: Vec<String>,
    /// Index of its sample in the profile, or the reason why it has none.
    pub sample: Result<usize, NoStack>,
    /// Frames of the interpreted program, innermost first; empty if it runs none.
    pub script: Result<Vec<ScriptFrame>, Unreadable>,
    /// Indices of the sample's native frames, innermost first, that are eval frames, where the stack shows it; inlined calls
    /// are not counted.
    pub loops: Vec<usize>,
}

impl Snapshot {
    /// Inspects these processes, one after the other.
    pub fn take(pids: &[u32], options: SnapshotOptions) -> Snapshot {
        let mut ingest = Ingest::new(Source::Live, Filter::All);
        ingest.code().scan_stacks(options.scan);
        let event = ingest.add_event("snapshot", "threads");
        let mut taker = Taker { ingest, event, options, returns: None, taken: 0 };
        let processes = pids.iter().map(|&pid| (pid, taker.process(pid))).collect();
        let vanished = taker.ingest.vanished();
        let (profile, _) = taker.ingest.finish();
        Snapshot { profile, processes, vanished }
    }
}

/// Indices of the native frames that run script frames: by the stack addresses that these name, else as many as there are rounds.
fn loops_of(
    script: &[ScriptFrame],
    walked: &StoppedStack,
    interpreter: Option<&(Box<dyn Interpreter>, u64)>,
) -> Vec<usize> {
    let places = script.iter().filter_map(|frame| frame.at);
    let mut loops: Vec<usize> = places.filter_map(|at| walked.frame_at(at)).collect();
    loops.dedup();
    let lists = interpreter.and_then(|(interpreter, bias)| Some((interpreter.lists()?, bias)));
    match lists.filter(|(lists, _)| loops.is_empty() && lists.rounds_are_counted()) {
        None => loops,
        Some((lists, bias)) => {
            let parts = walked.calls().map(|at| lists.loop_part(at.wrapping_sub(*bias)));
            let marks = eval_frames(parts, script.split_inclusive(|frame| frame.is_entry).count());
            marks.iter().enumerate().filter(|(_, is_loop)| **is_loop).map(|(index, _)| index).collect()
        }
    }
}

/// A snapshot being taken.
struct Taker {
    ingest: Ingest,
    event: EventId,
    options: SnapshotOptions,
    /// The reader of replaced return addresses, once one was needed. The inner `None`: the kernel does not give them.
    returns: Option<Option<ReplacedReturns>>,
    /// Number of stacks so far.
    taken: usize,
}

impl Taker {
    fn process(&mut self, pid: u32) -> Result<StoppedProcess, Refusal> {
        let wanted = Wanted { script: self.options.script, ..Wanted::default() };
        let CopiedProcess { threads, maps, interpreter, goroutines, mut held } = copy::copy(pid, wanted)?;
        self.ingest.meet_stopped(pid, &maps);
        let mut runtime = RuntimeState::default();
        let mut stopped = Vec::with_capacity(threads.len());
        for CopiedThread { tid, name, state, kernel, stack, mut script } in threads {
            let mut loops = Vec::new();
            let sample = stack.map(|stack| {
                let (walked, stack) = self.walk(pid, tid, stack, &mut held);
                if let Some((interpreter, bias)) = &interpreter
                    && let FrameSource::NativeStack(frames) = interpreter.source()
                {
                    let memory = stack.memory(pid);
                    let mut process = RuntimeProcess { memory: &memory, bias: *bias, state: &mut runtime };
                    script = frames_on_stack(frames, &mut process, walked.frames());
                }
                loops = loops_of(script.as_deref().unwrap_or_default(), &walked, interpreter.as_ref());
                self.ingest.keep_stopped(self.event, pid, tid, &walked);
                self.taken += 1;
                self.taken - 1
            });
            stopped.push(StoppedThread { tid, name, state, kernel, sample, script, loops });
        }
        let goroutines = goroutines.map(|copied| copied.map(|copied| self.goroutines(pid, copied)));
        let executable = plumb_process::executable(pid).unwrap_or_default();
        let executable = String::from_utf8_lossy(&executable).into_owned();
        let interpreter = interpreter.map(|(interpreter, _)| interpreter);
        Ok(StoppedProcess { executable, threads: stopped, interpreter, goroutines, held })
    }

    fn goroutines(&mut self, pid: u32, copied: CopiedGoroutines) -> Goroutines {
        let Self { ingest, event, taken, .. } = self;
        copied.grouped(ingest, pid, |ingest, walked| {
            ingest.keep_stopped(*event, pid, pid, walked);
            *taken += 1;
            *taken - 1
        })
    }

    /// Unwinds a copied stack. If it leads to memory that was not copied (a signal handler's own stack, a coroutine's, a very
    /// deep one), or to a return address that a probe has replaced, the thread is copied once more with what is missing.
    fn walk(
        &mut self,
        pid: u32,
        tid: u32,
        mut stack: StackCopy,
        held: &mut Duration,
    ) -> (StoppedStack, StackCopy) {
        let mut places = Vec::new();
        let mut returns = None;
        loop {
            let (registers, in_system_call) = (stack.registers, stack.in_system_call);
            let walked = self.ingest.walk_stopped(pid, &registers, in_system_call, &mut stack);
            match (walked.end(), stack.missed()) {
                (End::StackUnreadable, Some(missed)) if places.len() < MAX_PLACES => places.push(missed),
                (End::ProbedReturn, _) if returns.is_none() => match self.returns() {
                    None => return (walked, stack),
                    reader => returns = reader,
                },
                _ => return (walked, stack),
            }
            let (places, returns) = (places.clone(), returns.clone());
            let again = copy::copy(pid, Wanted { thread: Some(tid), places, script: false, returns });
            let Ok(CopiedProcess { mut threads, held: took, .. }) = again else { return (walked, stack) };
            let Some(Ok(again)) = threads.pop().map(|thread| thread.stack) else { return (walked, stack) };
            *held += took;
            stack = again;
        }
    }

    /// The reader of replaced return addresses.
    fn returns(&mut self) -> Option<ReplacedReturns> {
        let options = &self.options;
        self.returns.get_or_insert_with(|| options.returns.and_then(|reader| reader())).clone()
    }
}

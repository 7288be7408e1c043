//! The current stacks of running processes: every thread is stopped briefly, its registers and stack
//! are copied, and it continues while the copy is unwound.
//!
//! Invariant: every process is left as it was, running or stopped by a signal. As with any debugger, a few waiting system
//! calls return `EINTR` (signal(7), "Interruption of system calls and library functions by stop
//! signals": `epoll_wait`, `semop`, reading from inotify, and others).
//!
//! Elsewhere: names of functions, output.

mod copy;
mod refusal;
mod script;
mod trace;

pub use refusal::{NoStack, Refusal};

use std::fs::File;
use std::time::Duration;

use plumb_interpreters::{Interpreter, ScriptFrame, Unreadable};
use plumb_profile::{DsoId, EventId, Profile};
use plumb_unwind::End;

use copy::{CopiedProcess, CopiedThread, StackCopy, Wanted};
use plumb_ingest::{Filter, Ingest, Source, StoppedStack};

/// Most places, besides the stack pointer's, that parts of a stack may be in.
const MAX_PLACES: usize = 4;

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
    /// Inspects these processes, one after the other. `scan`: stacks that end for lack of unwind information are
    /// scanned ([`Ingest::scan_stacks`]). `script`: frames of interpreted programs are read as well.
    pub fn take(pids: &[u32], scan: bool, script: bool) -> Snapshot {
        let mut ingest = Ingest::new(Source::Live, Filter::All);
        ingest.scan_stacks(scan);
        let event = ingest.add_event("snapshot", "threads");
        let mut taken = 0;
        let processes = pids
            .iter()
            .map(|&pid| (pid, take_process(&mut ingest, event, pid, script, &mut taken)))
            .collect();
        let vanished = ingest.vanished();
        let (profile, _) = ingest.finish();
        Snapshot { profile, processes, vanished }
    }
}

fn take_process(
    ingest: &mut Ingest,
    event: EventId,
    pid: u32,
    script: bool,
    taken: &mut usize,
) -> Result<StoppedProcess, Refusal> {
    let wanted = Wanted { script, ..Wanted::default() };
    let CopiedProcess { threads, maps, interpreter, mut held } = copy::copy(pid, wanted)?;
    ingest.meet_stopped(pid, &maps);
    let mut stopped = Vec::with_capacity(threads.len());
    for CopiedThread { tid, name, state, kernel, stack, script } in threads {
        let mut loops = Vec::new();
        let sample = stack.map(|stack| {
            let walked = walk(ingest, pid, tid, stack, &mut held);
            let places = script.iter().flatten().filter_map(|frame| frame.at);
            loops.extend(places.filter_map(|at| walked.frame_at(at)));
            loops.dedup();
            ingest.keep_stopped(event, pid, tid, &walked);
            *taken += 1;
            *taken - 1
        });
        stopped.push(StoppedThread { tid, name, state, kernel, sample, script, loops });
    }
    let executable = plumb_process::executable(pid).unwrap_or_default();
    let executable = String::from_utf8_lossy(&executable).into_owned();
    Ok(StoppedProcess { executable, threads: stopped, interpreter, held })
}

/// Unwinds a copied stack. If it leads to memory that was not copied (a signal handler's own stack, a coroutine's, a very
/// deep one), the thread is copied once more with that memory.
fn walk(ingest: &mut Ingest, pid: u32, tid: u32, mut stack: StackCopy, held: &mut Duration) -> StoppedStack {
    let mut places = Vec::new();
    loop {
        let (registers, in_system_call) = (stack.registers, stack.in_system_call);
        let walked = ingest.walk_stopped(pid, &registers, in_system_call, &mut stack);
        let end = walked.end();
        let Some(missed) =
            stack.missed().filter(|_| end == End::StackUnreadable && places.len() < MAX_PLACES)
        else {
            return walked;
        };
        places.push(missed);
        let again = copy::copy(pid, Wanted { thread: Some(tid), places: places.clone(), script: false });
        let Ok(CopiedProcess { mut threads, held: took, .. }) = again else { return walked };
        let Some(Ok(again)) = threads.pop().map(|thread| thread.stack) else { return walked };
        *held += took;
        stack = again;
    }
}

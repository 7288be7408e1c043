//! Code of interpreted programs in one address space.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use plumb_interpreters::{CodeId, Function, Threads, Unreadable};
use plumb_profile::FrameId;
use rustc_hash::FxHashMap;

/// Code of one address space and of those forked from it.
pub(crate) type SharedScripts = Rc<RefCell<Scripts>>;

/// Functions and frames of code.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    /// `None`: the code was gone before it could be read.
    functions: FxHashMap<CodeId, Option<Function>>,
    /// Frames by code, instruction and whether it is a generator; `None`: the function had not begun, and is in no traceback.
    pub(crate) frames: FxHashMap<(CodeId, u32, bool), Option<FrameId>>,
    /// Copied memory of code without a frame so far.
    memory: FxHashMap<CodeId, Vec<(u64, Vec<u8>)>>,
    /// Addresses of the thread states of one process.
    threads: Option<KnownThreads>,
}

/// An interpreter's list of threads.
#[derive(Debug)]
struct KnownThreads {
    pid: u32,
    read: Instant,
    states: Result<Threads, Unreadable>,
}

/// Many threads are inspected at a time. A list older than this is read again.
const FRESH: Duration = Duration::from_millis(100);

impl Scripts {
    /// Keeps memory from which the name of code can be read, until there is a frame of it.
    pub(crate) fn learn(&mut self, code: CodeId, memory: Vec<(u64, Vec<u8>)>) {
        if !matches!(self.functions.get(&code), Some(Some(_))) {
            self.functions.remove(&code);
            self.memory.insert(code, memory);
        }
    }

    /// The function of some code; at the first call, `read` makes it from the copied memory.
    pub(crate) fn function(
        &mut self,
        code: CodeId,
        read: impl FnOnce(&[(u64, Vec<u8>)]) -> Option<Function>,
    ) -> Option<&Function> {
        let known = self.functions.entry(code).or_insert_with(|| {
            let copied = self.memory.remove(&code).unwrap_or_default();
            read(&copied)
        });
        known.as_ref()
    }

    /// Address of a thread's state; `None`: the interpreter doesn't know the thread. `read` reads the list of all threads.
    pub(crate) fn thread_state(
        &mut self,
        (pid, tid, thread_pointer): (u32, u32, u64),
        read: impl FnOnce() -> Result<Threads, Unreadable>,
    ) -> Result<Option<u64>, Unreadable> {
        let known = self.threads.take().filter(|known| known.pid == pid && known.read.elapsed() < FRESH);
        let known = known.unwrap_or_else(|| KnownThreads { pid, read: Instant::now(), states: read() });
        let states = &self.threads.insert(known).states;
        states.as_ref().map(|states| states.state(thread_pointer, pid == tid)).map_err(|error| *error)
    }
}

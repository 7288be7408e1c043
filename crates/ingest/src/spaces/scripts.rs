//! Code of interpreted programs in one address space.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use plumb_interpreters::{CodeId, CompiledCode, Function, Threads, Unreadable};
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
    /// Frames of native frames that run the program's functions, by function, position and address. `None`: the function is the interpreter's own.
    natives: FxHashMap<NativePlace, Option<Box<[FrameId]>>>,
    /// Code that was compiled at run time, by its first address.
    compiled: BTreeMap<u64, Rc<CompiledCode>>,
    /// Copied memory of code without a frame so far.
    memory: FxHashMap<CodeId, Vec<(u64, Vec<u8>)>>,
    /// Addresses of the thread states of one process.
    threads: Option<KnownThreads>,
}

/// Place of a native frame: the function, the position in it, and the address of the instruction.
type NativePlace = (CodeId, u32, u64);

/// An interpreter's list of threads.
#[derive(Debug)]
struct KnownThreads {
    pid: u32,
    read: Instant,
    states: Result<Threads, Unreadable>,
}

/// Most native frames that are kept.
const MAX_NATIVES: usize = 1 << 18;
/// Most pieces of compiled code that are kept.
const MAX_COMPILED: usize = 1 << 14;

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

    /// Forgets the rows of frames.
    pub(crate) fn forget_rows(&mut self) {
        self.frames.clear();
        self.natives.clear();
    }

    /// Frames of a native frame that runs the program's functions; the inner `None`: the function is the interpreter's own.
    pub(crate) fn native(&self, place: &NativePlace) -> Option<Option<&[FrameId]>> {
        self.natives.get(place).map(Option::as_deref)
    }

    /// Keeps the frames of a native frame.
    pub(crate) fn learn_native(&mut self, place: NativePlace, frames: Option<Box<[FrameId]>>) {
        if self.natives.len() >= MAX_NATIVES {
            self.natives.clear();
        }
        self.natives.insert(place, frames);
    }

    /// Whether a function that was read is written in the language. One of the interpreter's own has no file.
    pub(crate) fn is_in_language(&self, code: CodeId) -> bool {
        let function = self.functions.get(&code).and_then(Option::as_ref);
        function.is_none_or(|function| !function.file.is_empty())
    }

    /// The compiled code at an address, if it is of this function. `read` reads what is there now.
    pub(crate) fn compiled(
        &mut self,
        at: u64,
        function: CodeId,
        read: impl FnOnce() -> Option<CompiledCode>,
    ) -> Option<Rc<CompiledCode>> {
        let runs = |code: &CompiledCode| {
            code.places(at).and_then(<[_]>::last).is_some_and(|last| last.code == function)
        };
        self.code(at, runs, read)
    }

    /// The compiled code at an address: the known one, if it is the right one, or what `read` reads.
    pub(crate) fn code(
        &mut self,
        at: u64,
        is_right: impl FnOnce(&CompiledCode) -> bool,
        read: impl FnOnce() -> Option<CompiledCode>,
    ) -> Option<Rc<CompiledCode>> {
        let known = self.compiled.range(..=at).next_back().map(|(_, code)| code);
        let known = known.filter(|code| code.range().contains(&at));
        if let Some(known) = known.filter(|code| is_right(code)) {
            return Some(Rc::clone(known));
        }
        if self.compiled.len() >= MAX_COMPILED {
            self.compiled.clear();
        }
        let code = Rc::new(read()?);
        self.compiled.insert(code.range().start, Rc::clone(&code));
        Some(code)
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

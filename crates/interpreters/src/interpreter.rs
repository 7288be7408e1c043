//! The interface that all interpreters implement.
//!
//! Elsewhere: the list of languages (`registry.rs`), and how each stores its frames.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use crate::function::{CodeId, Function};
use crate::language::Language;
use crate::memory::{Memory, Unreadable};
use crate::root::Root;
use crate::round::EvalLoopFrame;
use crate::threads::Threads;

/// A frame of an interpreted program (a script frame).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFrame {
    /// Function, qualified with the enclosing classes and functions.
    pub function: String,
    /// File as the interpreter names it.
    pub file: String,
    /// The running line, or the line of the call that has not returned; 0 if unknown.
    pub line: u32,
    /// Native code entered the evaluation loop with this frame. Frames further in, up to the next entry frame, run in
    /// the same eval frame.
    pub is_entry: bool,
    /// An address within the eval frame that runs it, if that is known.
    pub at: Option<u64>,
}

/// An interpreter in a file, wherever that is mapped. `bias` is added (wrapping) to addresses that the file states.
pub trait Interpreter: fmt::Debug + Send {
    /// Name with version.
    fn name(&self) -> String;

    /// Language of its programs.
    fn language(&self) -> &'static Language;

    /// The part of the evaluation loop that contains a stated address, if the file tells.
    fn loop_part(&self, stated: u64) -> Option<LoopPart>;

    /// Whether script frames do not record the stack address of their eval frame, so that only the number of eval frames is known.
    fn rounds_are_counted(&self) -> bool;

    /// Whether a call is listed shortly before its eval frame starts, and after it has ended.
    fn calls_outlast_rounds(&self) -> bool {
        false
    }

    /// Addresses of the states of the process's threads.
    fn threads(&self, memory: &dyn Memory, bias: u64) -> Result<Threads, Unreadable>;

    /// Script frames of the thread with its state at this address, innermost first.
    fn frames(&self, memory: &dyn Memory, state: u64) -> Result<Vec<ScriptFrame>, Unreadable> {
        named(&self.rounds(memory, state)?, |code| self.function(memory, code))
    }

    /// Unnamed script frames of a thread, grouped by eval frame, innermost first.
    fn rounds(&self, memory: &dyn Memory, state: u64) -> Result<Vec<EvalLoopFrame>, Unreadable>;

    /// The root from which BPF programs find the frames of running threads, without stopping them.
    fn root(&self) -> Root;

    /// Reads the function with this code. Fails if a different code object is now at its address.
    fn function(&self, memory: &dyn Memory, code: CodeId) -> Result<Function, Unreadable>;
}

/// Native functions that make up an eval frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopPart {
    /// The evaluation loop itself.
    Loop,
    /// The caller of the loop. Without the loop it is an eval frame that has not started, or is leaving its script frame.
    Caller,
}

/// Resolves the script frames of a thread to functions, innermost first. Reads each function once.
fn named(
    rounds: &[EvalLoopFrame],
    read: impl Fn(CodeId) -> Result<Function, Unreadable>,
) -> Result<Vec<ScriptFrame>, Unreadable> {
    let mut known: HashMap<CodeId, Function> = HashMap::new();
    let mut frames = Vec::new();
    for place in rounds.iter().flat_map(|round| &round.frames) {
        let function = match known.entry(place.code) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(read(place.code)?),
        };
        let Function { name, file, .. } = function.clone();
        let line = function.line(place.offset);
        frames.push(ScriptFrame { function: name, file, line, is_entry: place.is_entry, at: None });
    }
    Ok(frames)
}

/// The interpreter in a file.
#[derive(Debug)]
pub enum Detected {
    /// An interpreter whose frames can be read.
    Known(Box<dyn Interpreter>),
    /// An interpreter of an unsupported version: its name.
    Unknown(String),
}

//! What all interpreters are asked for, whichever it is.
//!
//! Not here: which there are (`lib.rs`), and how each keeps its frames.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use crate::function::{CodeId, Function};
use crate::memory::{Memory, Unreadable};
use crate::root::Root;
use crate::round::EvalLoopFrame;
use crate::threads::Threads;

/// A frame of an interpreted program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFrame {
    /// The function, with the classes and functions that it is in.
    pub function: String,
    /// The file as the interpreter names it.
    pub file: String,
    /// The line that runs, or whose call has not returned; 0 if it has none.
    pub line: u32,
    /// Native code entered the interpreter's loop with this frame; those further in, up to the next such frame, run in
    /// the same round of the loop.
    pub is_entry: bool,
    /// An address on the stack in the native frame that runs its round; `None`: it is not known.
    pub at: Option<u64>,
}

/// An interpreter in a file, wherever that is mapped: `bias` is what to add (wrapping) to addresses that the file states.
pub trait Interpreter: fmt::Debug + Send {
    /// What it is, with its version.
    fn name(&self) -> String;

    /// The language of its programs, in small letters.
    fn language(&self) -> &'static str;

    /// The native function that is the interpreter's loop.
    fn native_loop(&self) -> &'static str;

    /// Which part of the interpreter's loop a stated address is in, where the file says which are.
    fn loop_part(&self, stated: u64) -> Option<LoopPart>;

    /// Whether frames don't say where on the stack the rounds of the loop are in which they run: only how many there are.
    fn rounds_are_counted(&self) -> bool;

    /// Whether a call is among the frames shortly before its round of the loop begins, and after that has ended.
    fn calls_outlast_rounds(&self) -> bool {
        false
    }

    /// Where the states of the process' threads are.
    fn threads(&self, memory: &dyn Memory, bias: u64) -> Result<Threads, Unreadable>;

    /// The frames of the thread that has its state there, innermost first.
    fn frames(&self, memory: &dyn Memory, state: u64) -> Result<Vec<ScriptFrame>, Unreadable> {
        named(&self.rounds(memory, state)?, |code| self.function(memory, code))
    }

    /// Where these frames are, in rounds of the interpreter's loop, innermost first.
    fn rounds(&self, memory: &dyn Memory, state: u64) -> Result<Vec<EvalLoopFrame>, Unreadable>;

    /// Where the frames of running threads are to be looked for, without stopping them.
    fn root(&self) -> Root;

    /// The function that has this code, unless there is other code now where that was.
    fn function(&self, memory: &dyn Memory, code: CodeId) -> Result<Function, Unreadable>;
}

/// Functions that run a round of an interpreter's loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopPart {
    /// The loop itself.
    Loop,
    /// What calls it: alone it is a round that has not begun, or is leaving its frame.
    Caller,
}

/// Names the frames of a thread, innermost first. Each function is read once.
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

/// What a file holds.
#[derive(Debug)]
pub enum Detected {
    /// An interpreter whose frames can be read.
    Known(Box<dyn Interpreter>),
    /// One of a version that is not known: its name.
    Unknown(String),
}

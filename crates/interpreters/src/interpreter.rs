//! The interface that all interpreters implement.
//!
//! A new language is a folder with a [`Language`], an [`Interpreter`] and its numbers for the kernel, a line in `registry.rs`, and a reader in the
//! kernel (`crates/capture-bpf/bpf/interpreters/NAME.h`). Nothing else names it.
//!
//! **Two kinds.** CPython, PHP, Ruby, Perl and Lua keep frames in lists *beside* the native stack ([`FrameLists`]): the native frames show only how
//! often the evaluation loop was entered, and [`crate::merge()`] or the recorder puts the listed frames in their place. V8, HotSpot and .NET have their
//! frames *on* the native stack ([`StackFrames`]): each call is a native frame, often of code without a file, and only its name is missing. It is found
//! from words near the frame pointer. Such a frame stays where it is and is shown under its name.
//!
//! **Order of calls.** Once per file: [`Language`]'s `find`, which may read the file as it likes, but is asked about every file that is likely to be an
//! interpreter. Then [`Interpreter::root`], whose numbers go to the kernel as they are.
//! - In a recording with stacks from the kernel, the reader there is asked at each sample of a thread whose stack leads through the file. It has the
//!   native frames and their stack pointers before it (`draft->frames`, `draft->places`), appends positions, and marks the native frames that ran them.
//!   Later, in the order in which code was first seen, [`Interpreter::function`] gets memory that the reader has copied, then that of the process.
//! - For an off-CPU thread: [`FrameLists::threads`] once, [`FrameLists::rounds`] for each thread, then [`Interpreter::function`] for each code.
//! - In a snapshot likewise; or [`StackFrames::place`] for each native frame, innermost first, with the stack as it was and other memory as it is now,
//!   then [`Interpreter::function`] ([`frames_on_stack`]).
//! - For a native frame of code without a file, [`StackFrames::compiled`] once for each piece of code: it adds the calls that were inlined.
//!
//! **Hostile, and bounds.** The file, all memory, and `state` and `frame` are what somebody else's process holds, perhaps halfway through a change, perhaps
//! forged. A position is never trusted to be code: [`CodeId::identity`] is a hash of what doesn't change while the code lives, and `function` compares it
//! before and after reading, so that a function is missing rather than wrong. Nothing is followed without an end: at most 65,536 frames and threads, 64
//! positions in a native frame, 4,096 characters in a name, and no list may be followed longer than its limit. Reading is arithmetic that wraps, and
//! [`Unreadable`] for what makes no sense. The kernel's reader has less: `MAX_SCRIPT_STEPS` steps, each with a fixed number of reads.
//!
//! Elsewhere: the list of languages (`registry.rs`), and how each stores its frames.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use plumb_unwind::{RuntimeFrame, RuntimeRule};

use crate::compiled::CompiledCode;
use crate::function::{CodeId, Function};
use crate::language::Language;
use crate::memory::{Memory, Unreadable};
use crate::root::Root;
use crate::round::{EvalLoopFrame, ScriptPlace};
use crate::runtime::RuntimeProcess;
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

    /// The place where it keeps its frames.
    fn source(&self) -> FrameSource<'_>;

    /// The lists of frames, if it has them.
    fn lists(&self) -> Option<&dyn FrameLists> {
        match self.source() {
            FrameSource::Lists(lists) => Some(lists),
            FrameSource::NativeStack(_) => None,
        }
    }

    /// The root from which BPF programs find the frames of running threads, without stopping them.
    fn root(&self) -> Root;

    /// Reads the function with this code. Fails if a different code object is now at its address.
    fn function(&self, memory: &dyn Memory, code: CodeId) -> Result<Function, Unreadable>;
}

/// The place where an interpreter keeps its frames.
#[derive(Clone, Copy, Debug)]
pub enum FrameSource<'i> {
    /// Lists of its own, beside the native stack.
    Lists(&'i dyn FrameLists),
    /// The native stack: some native frames, such as those of compiled code, are frames of the program.
    NativeStack(&'i dyn StackFrames),
}

/// An interpreter with lists of frames, grouped by eval frame.
pub trait FrameLists: Interpreter {
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
}

/// An interpreter, or a compiler at run time, whose frames are native frames.
pub trait StackFrames: Interpreter {
    /// The function that a native frame runs, and the position in it if the frame tells. `None` for a frame that is not the program's. The kernel's
    /// reader finds the same.
    fn place(
        &self,
        process: &mut RuntimeProcess<'_>,
        frame: NativeFrame,
    ) -> Result<Option<ScriptPlace>, Unreadable>;

    /// The code at an address that was compiled at run time. Fails if there is none.
    fn compiled(&self, process: &mut RuntimeProcess<'_>, at: u64) -> Result<CompiledCode, Unreadable>;

    /// Whether compiled code is still there.
    fn has(&self, process: &mut RuntimeProcess<'_>, code: &CompiledCode) -> bool;

    /// The rule for the caller of a frame of code without a file. `stack` reads a word of the stack.
    fn rule(
        &self,
        process: &mut RuntimeProcess<'_>,
        frame: RuntimeFrame,
        stack: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> RuntimeRule {
        let _ = (process, frame, stack);
        RuntimeRule::None
    }

    /// Whether it has such rules: then its code keeps to no convention.
    fn has_rules(&self) -> bool {
        false
    }
}

/// A native frame, as an unwinder has found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeFrame {
    /// The running instruction, or an address within the call that has not returned.
    pub pc: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The stack pointer before the call of its function (CFA). Code that keeps a frame pointer saves the caller's 16 bytes below.
    pub cfa: u64,
    /// Whether rules led to its caller. Code that was compiled at run time has none.
    pub has_rules: bool,
}

/// The frames of the program on a native stack. Both are innermost first. A native frame that can't be read is left out.
pub fn frames_on_stack(
    stack: &dyn StackFrames,
    process: &mut RuntimeProcess<'_>,
    native: impl IntoIterator<Item = NativeFrame>,
) -> Result<Vec<ScriptFrame>, Unreadable> {
    let mut all = Vec::new();
    for frame in native {
        let Ok(Some(place)) = stack.place(process, frame) else { continue };
        let code = stack.compiled(process, frame.pc).ok();
        let mut frames = places_of(place, code.as_ref(), frame.pc);
        let last = frames.len().saturating_sub(1);
        frames.iter_mut().enumerate().for_each(|(index, place)| place.is_entry = index == last);
        all.push(EvalLoopFrame { at: Some(frame.sp), frames });
    }
    named(&all, |code| stack.function(process.memory, code))
}

/// The positions in a native frame at `pc`, innermost first: several where calls were inlined. `place`: the function that it runs; `code`: the compiled
/// code there, if any. Code of another function is left out: it has replaced what ran.
pub fn places_of(place: ScriptPlace, code: Option<&CompiledCode>, pc: u64) -> Vec<ScriptPlace> {
    match code.and_then(|code| code.places(pc)) {
        Some(places) if places.last().is_some_and(|last| last.code == place.code) => places.to_vec(),
        _ => vec![place],
    }
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
    for (place, at) in rounds.iter().flat_map(|round| round.frames.iter().map(|place| (place, round.at))) {
        let function = match known.entry(place.code) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(read(place.code)?),
        };
        let Function { name, file, .. } = function.clone();
        let line = function.line(place.offset);
        frames.push(ScriptFrame { function: name, file, line, is_entry: place.is_entry, at });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::LANGUAGES;
    use crate::runtime::RuntimeState;

    /// Compiles at run time: the word 16 bytes below the CFA is the address of a function, or 0. Every function has an inlined caller.
    #[derive(Debug)]
    struct Compiler;

    impl Interpreter for Compiler {
        fn name(&self) -> String {
            "compiler".into()
        }

        fn language(&self) -> &'static Language {
            LANGUAGES[0]
        }

        fn source(&self) -> FrameSource<'_> {
            FrameSource::NativeStack(self)
        }

        fn root(&self) -> Root {
            unreachable!("nobody records it")
        }

        fn function(&self, memory: &dyn Memory, code: CodeId) -> Result<Function, Unreadable> {
            let name = format!("f{}", memory.word(code.at)?);
            Ok(Function::without_lines(name, "a.js".into(), 1))
        }
    }

    fn at(address: u64, offset: u32) -> ScriptPlace {
        let code = CodeId { at: address, identity: 0 };
        ScriptPlace { code, offset, is_entry: false, is_generator: false }
    }

    impl StackFrames for Compiler {
        fn place(
            &self,
            process: &mut RuntimeProcess<'_>,
            frame: NativeFrame,
        ) -> Result<Option<ScriptPlace>, Unreadable> {
            let word = process.memory.word(frame.cfa.wrapping_sub(16))?;
            Ok((word != 0).then(|| at(word.wrapping_add(process.bias), 7)))
        }

        fn has(&self, _: &mut RuntimeProcess<'_>, _: &CompiledCode) -> bool {
            true
        }

        fn compiled(&self, _: &mut RuntimeProcess<'_>, pc: u64) -> Result<CompiledCode, Unreadable> {
            let chain = [at(2000, 5), at(1060, 9)];
            if pc == 7 {
                Ok(CompiledCode::new(0..16, CodeId { at: 0, identity: 0 }, [(4, chain.to_vec())]))
            } else {
                Err(Unreadable(pc))
            }
        }
    }

    /// Each word is a tenth of its address; above 10,000 nothing can be read.
    struct Tenths;

    impl Memory for Tenths {
        fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
            bytes.copy_from_slice(&(at / 10).to_le_bytes()[..bytes.len()]);
            at < 10_000
        }
    }

    fn process(bias: u64, state: &mut RuntimeState) -> RuntimeProcess<'_> {
        RuntimeProcess { memory: &Tenths, bias, state }
    }

    #[test]
    fn native_frames_of_the_program_get_its_names() {
        let frame = |pc: u64, cfa: u64| NativeFrame { pc, sp: cfa.saturating_sub(32), cfa, has_rules: false };
        let native = [frame(7, 616), frame(7, 16), frame(7, 1216), frame(8, 616)];
        let found = frames_on_stack(&Compiler, &mut process(1000, &mut RuntimeState::default()), native)
            .expect("all can be read");
        let all: Vec<_> =
            found.iter().map(|frame| (&*frame.function, frame.line, frame.at, frame.is_entry)).collect();
        assert_eq!(
            all,
            [
                ("f200", 5, Some(584), false),
                ("f106", 9, Some(584), true),
                ("f112", 7, Some(1184), true),
                ("f106", 7, Some(584), true)
            ],
            "inlined; code of another function; no code"
        );
        let unreadable = [frame(7, 1 << 20)];
        let found = frames_on_stack(&Compiler, &mut process(0, &mut RuntimeState::default()), unreadable);
        assert_eq!(found, Ok(Vec::new()), "it stays a native frame");
    }
}

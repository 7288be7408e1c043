//! Stacks of interpreted programs, read from the interpreter's own structures in the memory of its process.
//!
//! The native stack of an interpreted program says what the interpreter does, not what the program does: each call of
//! the program is one more round of the same loop, or none at all. Interpreters keep the program's frames in lists of
//! their own. An [`Interpreter`] reads these lists, and [`merge()`] puts what it finds in the place of the frames of the
//! loop.
//!
//! Invariant: memory of a process is hostile. Whatever it holds, work and what is kept are bounded, and what can't be
//! read is an error. The process should not run meanwhile; if it does, frames may be missing or wrong.
//!
//! A recorder can't stop a process at each sample. It has the kernel read which code a thread runs, by what
//! [`Interpreter::root`] says, and reads later what that code is called ([`Interpreter::function`]): a [`CodeId`] tells
//! whether it is still the same.
//!
//! Not here: how memory is read, stopping the process, native stacks.

mod function;
mod image;
mod memory;
mod merge;
pub mod perl;
pub mod php;
pub mod python;
mod round;
pub mod ruby;
mod threads;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::fs::File;

pub use function::{CodeId, Function};
pub use memory::{Mapped, Memory, Unreadable};
pub use merge::{Merged, merge};
use perl::PerlLayout;
use php::PhpLayout;
use python::PythonLayout;
pub use round::{EvalLoopFrame, ScriptPlace};
use ruby::RubyLayout;
pub use threads::Threads;

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

    /// Where the states of the process' threads are.
    fn threads(&self, memory: &dyn Memory, bias: u64) -> Result<Threads, Unreadable>;

    /// The frames of the thread that has its state there, innermost first.
    fn frames(&self, memory: &dyn Memory, state: u64) -> Result<Vec<ScriptFrame>, Unreadable>;

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

/// Where an interpreter keeps what leads to its frames, and how they are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each interpreter's file, and it is copied once"
)]
pub enum Root {
    /// As CPython does.
    Python {
        /// Stated address of `_PyRuntime`.
        runtime: u64,
        /// Its structures.
        layout: PythonLayout,
    },
    /// As PHP does.
    Php {
        /// Stated address of `executor_globals`.
        globals: u64,
        /// Its structures.
        layout: PhpLayout,
    },
    /// As Perl does.
    Perl {
        /// Stated address of `PL_curinterp`.
        interpreter: u64,
        /// Its structures.
        layout: PerlLayout,
    },
    /// As Ruby does.
    Ruby {
        /// Stated address of `ruby_single_main_ractor`.
        ractor: u64,
        /// Its structures.
        layout: RubyLayout,
    },
}

/// Whether a file of this name may hold an interpreter, so that it pays to look. A program's own file should be looked
/// at in any case: it may have one linked in.
pub fn is_likely(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let name = name.strip_prefix(b"lib").unwrap_or(name);
    [&b"python"[..], b"php", b"ruby", b"perl"].iter().any(|interpreter| name.starts_with(interpreter))
}

/// An interpreter of which some versions are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The language.
    pub language: &'static str,
    /// The versions.
    pub versions: &'static str,
    native_loop: &'static str,
}

impl Known {
    /// CPython.
    pub const PYTHON: Known =
        Known { language: "Python", versions: "CPython 3.9 to 3.15", native_loop: python::LOOP };
    /// PHP, built for one thread alone.
    pub const PHP: Known = Known { language: "PHP", versions: "PHP 7.4 to 8.5", native_loop: php::LOOP };
    /// CRuby.
    pub const RUBY: Known = Known { language: "Ruby", versions: "Ruby 3.0 to 4.0", native_loop: ruby::LOOP };

    /// Perl, built with threads.
    pub const PERL: Known =
        Known { language: "Perl", versions: "Perl 5.30 to 5.42", native_loop: perl::LOOP };

    /// The one whose loop has the name of this native function.
    pub fn with_loop(name: &str) -> Option<Known> {
        [Self::PYTHON, Self::PHP, Self::RUBY, Self::PERL].into_iter().find(|known| known.native_loop == name)
    }
}

/// What a file holds.
#[derive(Debug)]
pub enum Detected {
    /// An interpreter whose frames can be read.
    Known(Box<dyn Interpreter>),
    /// One of a version that is not known: its name.
    Unknown(String),
}

/// The interpreter in a file, if there is one. Where one is found is said by symbols that libraries may use;
/// `all_symbols`: also by others, of which there may be many.
pub fn find(file: &File, all_symbols: bool) -> Option<Detected> {
    let image = image::Image::read(
        file,
        &[python::SYMBOLS, php::SYMBOLS, ruby::SYMBOLS, perl::SYMBOLS],
        all_symbols,
    )?;
    python::find(&image)
        .or_else(|| php::find(&image, file))
        .or_else(|| ruby::find(&image, file))
        .or_else(|| perl::find(&image))
}

/// What to add (wrapping) to addresses that a file states to get those in a process that has this part of it mapped.
pub fn bias(file: &File, mapped: Mapped) -> Option<u64> {
    image::bias(file, mapped)
}

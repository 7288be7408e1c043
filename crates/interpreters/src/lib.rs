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
mod interpreter;
mod memory;
mod merge;
pub mod perl;
pub mod php;
pub mod python;
mod root;
mod round;
pub mod ruby;
mod threads;

use std::fs::File;

pub use function::{CodeId, Function};
pub use interpreter::{Detected, Interpreter, LoopPart, ScriptFrame};
pub use memory::{Mapped, Memory, Unreadable};
pub use merge::{Merged, merge};
pub use root::Root;
pub use round::{EvalLoopFrame, ScriptPlace};
pub use threads::Threads;

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

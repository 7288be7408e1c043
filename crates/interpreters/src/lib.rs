//! Stacks of interpreted programs, read from the interpreter's own data structures in the memory of its process.
//!
//! The native stack of an interpreted program shows what the interpreter does, not what the program does: each call in
//! the program is one more native call of the evaluation loop (an *eval frame*), or none at all. Interpreters keep the program's
//! frames in lists of their own. An [`Interpreter`] reads these lists, and [`merge()`] substitutes the script frames that it finds for
//! the eval frames.
//!
//! Invariant: the memory of a process is untrusted. Whatever it contains, the work and the results are bounded, and unreadable
//! memory is an error. The process should be stopped while it is read; otherwise frames may be missing or wrong.
//!
//! A recorder cannot stop a process at each sample. It lets BPF programs read the code that a thread runs, starting from
//! [`Interpreter::root`], and reads the names of that code later ([`Interpreter::function`]): a [`CodeId`] tells
//! whether the code object is still the same.
//!
//! Elsewhere: reading memory, stopping the process, native stacks.

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

/// Whether a file of this name may contain an interpreter and is worth searching. A program's own executable should always be
/// searched: an interpreter may be linked into it.
pub fn is_likely(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let name = name.strip_prefix(b"lib").unwrap_or(name);
    [&b"python"[..], b"php", b"ruby", b"perl"].iter().any(|interpreter| name.starts_with(interpreter))
}

/// An interpreter of which some versions are supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Language.
    pub language: &'static str,
    /// Supported versions.
    pub versions: &'static str,
    native_loop: &'static str,
}

impl Known {
    /// CPython.
    pub const PYTHON: Known =
        Known { language: "Python", versions: "CPython 3.9 to 3.15", native_loop: python::LOOP };
    /// PHP, built without thread safety (non-ZTS).
    pub const PHP: Known = Known { language: "PHP", versions: "PHP 7.4 to 8.5", native_loop: php::LOOP };
    /// CRuby.
    pub const RUBY: Known = Known { language: "Ruby", versions: "Ruby 3.0 to 4.0", native_loop: ruby::LOOP };

    /// Perl, built with threads.
    pub const PERL: Known =
        Known { language: "Perl", versions: "Perl 5.30 to 5.42", native_loop: perl::LOOP };

    /// The interpreter whose evaluation loop is the native function `name`.
    pub fn with_loop(name: &str) -> Option<Known> {
        [Self::PYTHON, Self::PHP, Self::RUBY, Self::PERL].into_iter().find(|known| known.native_loop == name)
    }
}

/// Finds the interpreter in a file, if there is one, by its dynamic symbols.
/// `all_symbols`: also by the full symbol table, which may be large.
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

/// The difference (wrapping) between addresses in a process that maps this part of the file and addresses that the file states.
pub fn bias(file: &File, mapped: Mapped) -> Option<u64> {
    image::bias(file, mapped)
}

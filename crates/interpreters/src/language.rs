//! A supported language: the data by which the rest of plumb recognizes its interpreter and speaks of it.
//!
//! Elsewhere: reading frames (`interpreter.rs`), the list of languages (`registry.rs`).

use std::fmt;
use std::fs::File;

use crate::image::{Image, Wanted};
use crate::interpreter::Detected;

/// A language of whose interpreter some versions are supported.
pub struct Language {
    /// Name, as it is written.
    pub name: &'static str,
    /// Name in recordings, in lower case.
    pub tag: &'static str,
    /// Supported versions.
    pub versions: &'static str,
    /// Beginnings of the names of files with its interpreter.
    pub files: &'static [&'static str],
    /// Command line of the interpreter.
    pub command: CommandLine,
    /// Extensions of its programs' files.
    pub extensions: &'static [&'static str],
    /// Environment variables that the interpreter takes options from.
    pub variables: &'static [&'static str],
    /// Advice on its JIT compiler, if it has one.
    pub jit: Option<JitAdvice>,
    /// Returns another way to see its functions, if the names of a recording's files show that it is available.
    pub other_way: fn(&[&str]) -> Option<String>,
    /// Name of the native function that is its evaluation loop, if it has one.
    pub native_loop: Option<&'static str>,
    /// Whether its functions are native frames, which every way of capturing stacks shows.
    pub on_native_stack: bool,
    /// Symbols to search for in a file.
    pub(crate) symbols: &'static [Wanted],
    /// Detects the interpreter in a file by the symbols that were found.
    pub(crate) find: fn(&Image, &File) -> Option<Detected>,
}

impl fmt::Debug for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Language {
    /// Whether a file of this name, without its folder, belongs to the interpreter.
    pub fn has_file(&self, name: &str) -> bool {
        self.files.iter().any(|file| name.starts_with(file))
    }
}

/// Grammar of an interpreter's command line.
#[derive(Clone, Copy, Debug)]
pub struct CommandLine {
    /// Beginnings of the program's file name, before a version.
    pub programs: &'static [&'static str],
    /// Options that take the next argument.
    pub with_value: &'static [&'static str],
    /// Options whose value is a module to run.
    pub module: &'static [&'static str],
    /// Options whose value is the text of the program.
    pub text: &'static [&'static str],
}

/// Advice on code that a JIT compiler made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitAdvice {
    /// Advice that lets stacks continue through the code.
    pub frames: &'static str,
    /// Advice that gives the code names; it is not given if the text before it is among the options.
    pub names: (&'static str, &'static str),
}

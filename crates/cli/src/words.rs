//! The arguments of a subcommand from words, where no command line is: a command that runs another one, and tests.

use std::ffi::OsString;

use clap::{Args, Command, Error};

/// The arguments that `plumb NAME WORDS` has.
///
/// # Errors
/// `plumb NAME` does not take these words; `--help` is no argument either.
pub fn parsed<A: Args>(name: &'static str, words: &[impl Clone + Into<OsString>]) -> Result<A, Error> {
    let line = [name.into()].into_iter().chain(words.iter().cloned().map(Into::into));
    let line: Vec<OsString> = line.collect();
    A::from_arg_matches(&A::augment_args(Command::new(name)).try_get_matches_from(line)?)
}

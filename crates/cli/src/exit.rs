//! Exit statuses: all that plumb uses, with their meaning.
//!
//! Invariant: commands return an [`Exit`] or an error, and only `main` turns it into a number. Elsewhere: the text of errors, except
//! the lines that suggest a command.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::process::{ExitCode, ExitStatus};

use plumb_target::{End, exit_code};

/// Text of `plumb --help`.
pub const HELP: &str = "\
Exit status:
  0        success
  1        error: a message says what failed
  2        wrong command line
  4        compare, diff: a limit (--fail-on) is exceeded, and the difference is significant
  126      the command cannot be executed
  127      the command is not found
  128+N    the command was ended by signal N
A command that is observed gives its own status to record, top, trace, stat, kernel, procs and explain.";

/// The exit status of plumb. Status 2, a wrong command line, is set by clap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0.
    Success,
    /// 1: something failed, and a message says what.
    Failure,
    /// 4: a limit is exceeded, and significantly so.
    LimitExceeded,
    /// 126: the command exists but can't be executed.
    NotExecutable,
    /// 127: the command does not exist.
    NotFound,
    /// The status of the observed command, as a shell reports it: its own, or 128 plus the number of the signal that ended it.
    OfCommand(u8),
}

impl Exit {
    /// The status of a finished command.
    pub fn of_status(status: ExitStatus) -> Self {
        Self::of_code(exit_code(status))
    }

    fn of_code(code: u8) -> Self {
        if code == 0 { Exit::Success } else { Exit::OfCommand(code) }
    }

    /// The status at the end of an observation: that of the command, if one was started. A signal that ends another observation
    /// counts as success.
    pub fn of_end(end: End, is_command: bool) -> Self {
        match end {
            End::Exited(status) => Self::of_status(status),
            End::Signal(number) if is_command => Self::of_code(128 + number as u8),
            End::Signal(_) | End::Gone => Exit::Success,
        }
    }

    /// The status for an error, as a shell reports it: a command that can't be started has its own.
    pub fn of_error(error: &anyhow::Error) -> Self {
        let target =
            error.chain().find_map(|cause| match cause.downcast_ref::<plumb_capture_perf::Error>() {
                Some(plumb_capture_perf::Error::Target(target)) => Some(target),
                _ => cause.downcast_ref::<plumb_target::TargetError>(),
            });
        match target {
            Some(plumb_target::TargetError::Command { error, .. }) if error.kind() == ErrorKind::NotFound => {
                Exit::NotFound
            }
            Some(plumb_target::TargetError::Command { .. }) => Exit::NotExecutable,
            _ => Exit::Failure,
        }
    }

    /// Returns `self`, or `other` if `self` is success.
    pub fn or(self, other: Self) -> Self {
        if self == Exit::Success { other } else { self }
    }

    /// The number passed to the system.
    pub fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::LimitExceeded => 4,
            Exit::NotExecutable => 126,
            Exit::NotFound => 127,
            Exit::OfCommand(code) => code,
        }
    }
}

/// A command-line error that clap does not detect, such as options that exclude each other for one kind of answer.
#[cfg(feature = "server")]
pub fn wrong_usage(message: impl std::fmt::Display) -> anyhow::Error {
    let text = format!("{message}\n\nFor more information, try '--help'.\n");
    clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, text).into()
}

/// The message of an error with its causes.
pub fn message(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        // Some errors include their cause in their own message.
        if !parts.last().is_some_and(|before| before.ends_with(&text)) {
            parts.push(text);
        }
        if cause.is::<plumb_capture_perf::Error>() || cause.is::<plumb_target::TargetError>() {
            break;
        }
    }
    with_command(&without_numbers(&parts.join(": ")), typed().as_deref())
}

/// A line of error messages from libraries, which don't know the command line.
const AS_ROOT: &str = "  do:       run as root";
/// Longest command that is repeated in a message, in characters.
const MAX_COMMAND: usize = 200;

/// Replaces the line that asks for root by the command to type.
fn with_command(text: &str, typed: Option<&str>) -> String {
    let line = |line| match typed {
        Some(typed) if line == AS_ROOT => Cow::from(format!("  do:       sudo {typed}")),
        _ => Cow::from(line),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The command line, quoted for a shell. `None`: it is not suitable for copying.
fn typed() -> Option<String> {
    let words: Option<Vec<String>> = std::env::args_os().map(|word| word.into_string().ok()).collect();
    let line = shell_words::join(words?);
    (line.chars().count() <= MAX_COMMAND && !line.contains(char::is_control)).then_some(line)
}

/// Removes the error number that Rust's library appends to the system's text: `(os error 13)`.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_once(')') {
        Some((number, rest)) if number.bytes().all(|digit| digit.is_ascii_digit()) => text + rest,
        _ => text + " (os error " + part,
    })
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn errors_of_the_system_have_words_and_no_numbers() {
        let denied = anyhow::Error::new(std::io::Error::from_raw_os_error(13)).context("cannot write x");
        assert_eq!(message(&denied), "cannot write x: Permission denied");
        assert_eq!(without_numbers("a (os error 2): b (os error x) c"), "a: b (os error x) c");
    }

    #[test]
    fn exit_statuses_are_those_of_a_shell() {
        assert_eq!(Exit::of_status(ExitStatus::from_raw(3 << 8)).code(), 3);
        assert_eq!(Exit::of_status(ExitStatus::from_raw(15)).code(), 143);
        assert_eq!(Exit::of_status(ExitStatus::from_raw(0)), Exit::Success);
        assert_eq!(Exit::of_end(End::Signal(2), true).code(), 130);
        assert_eq!(Exit::of_end(End::Signal(2), false), Exit::Success);
    }

    #[test]
    fn the_command_that_was_typed_is_what_root_may_do() {
        let text = "not allowed: x.\n  do:       run as root\n  or:       run as root, too";
        let named = "not allowed: x.\n  do:       sudo plumb top -p 7\n  or:       run as root, too";
        assert_eq!(with_command(text, Some("plumb top -p 7")), named);
        assert_eq!(with_command(text, None), text);
        let refused = plumb_capture_perf::Error::NotPermitted {
            what: plumb_capture_perf::Asked::Process(7),
            paranoid: Some(2),
        };
        let line = typed().map_or(AS_ROOT.to_owned(), |typed| format!("  do:       sudo {typed}"));
        assert!(message(&refused.into()).contains(&format!("\n{line}\n  or: ")));
    }

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::anyhow!("denied").context("cannot open x: denied").context("starting");
        assert_eq!(message(&error), "starting: cannot open x: denied");
    }

    #[test]
    fn a_command_that_cannot_be_started_has_a_status_of_its_own() {
        let of = |kind: ErrorKind| {
            let error = plumb_target::TargetError::Command { name: "x".into(), error: kind.into() };
            Exit::of_error(&anyhow::Error::from(plumb_capture_perf::Error::Target(error)).context("starting"))
        };
        assert_eq!(
            (of(ErrorKind::NotFound), of(ErrorKind::PermissionDenied)),
            (Exit::NotFound, Exit::NotExecutable)
        );
        assert_eq!(Exit::of_error(&anyhow::anyhow!("else")), Exit::Failure);
    }
}

//! Reasons why programs could not be loaded: a missing requirement, or the kernel's rejection with the verifier's log.

use std::error::Error;
use std::fmt;

use aya::programs::ProgramError;
use plumb_process::setcap_bpf;

use crate::support::Unsupported;

/// Prefixes of the verifier's last lines, whatever its result.
const STATISTICS: [&str; 4] = ["processed ", "verification time ", "stack depth ", "max_states"];

/// The reason why the programs could not be loaded.
#[derive(Debug)]
pub enum LoadError {
    /// This machine or user does not support them.
    Unsupported(Unsupported),
    /// The kernel rejected one.
    Refused(Refusal),
}

/// The rejected object, and the reason.
#[derive(Clone, Debug)]
pub struct Refusal {
    what: String,
    reason: String,
    verifier_log: String,
}

impl LoadError {
    /// Lines of advice for messages; empty if more privileges would not help.
    pub fn remedy(&self) -> String {
        match self {
            LoadError::Unsupported(Unsupported::Capabilities(_)) => {
                format!("\n  do:       run as root\n  or:       {}", setcap_bpf())
            }
            _ => String::new(),
        }
    }

    /// A copy of the error, for another feature that it affects.
    pub(crate) fn again(&self) -> Self {
        match self {
            LoadError::Unsupported(why) => LoadError::Unsupported(why.clone()),
            LoadError::Refused(refusal) => LoadError::Refused(refusal.clone()),
        }
    }
}

impl Refusal {
    /// The last lines of the kernel's verifier log, at most `most`: the rejected instructions, the reason, and
    /// statistics. Empty if the verifier was not the one that rejected.
    pub fn verifier_lines(&self, most: usize) -> Vec<&str> {
        let lines = self.verifier_log.lines().map(str::trim_end).filter(|line| !line.is_empty());
        let mut lines: Vec<&str> = lines.rev().take(most).collect();
        lines.reverse();
        lines
    }

    /// The verifier's reason.
    pub fn verifier_reason(&self) -> Option<&str> {
        let lines = self.verifier_log.lines().map(str::trim);
        lines.rev().find(|line| !line.is_empty() && !STATISTICS.iter().any(|begin| line.starts_with(begin)))
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unsupported(why) => why.fmt(f),
            LoadError::Refused(refusal) => {
                write!(f, "the kernel refuses {}: {}", refusal.what, refusal.reason)?;
                // The verifier's log is pages of instructions.
                match refusal.verifier_reason() {
                    Some(reason) => write!(f, ": {reason}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Error for LoadError {}

/// Makes an error for a rejected object.
pub(crate) fn refused<E: Error + 'static>(what: impl Into<String>) -> impl FnOnce(E) -> LoadError {
    move |error| {
        let mut verifier_log = String::new();
        let mut texts = Vec::new();
        let mut next: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(error) = next {
            next = error.source();
            if let Some(ProgramError::LoadError { verifier_log: log, io_error }) = error.downcast_ref() {
                verifier_log = log.to_string();
                texts.push(io_error.to_string());
                break;
            }
            texts.push(error.to_string());
        }
        LoadError::Refused(Refusal { what: what.into(), reason: texts.join(": "), verifier_log })
    }
}

/// The error for a name that is not in an object.
pub(crate) fn missing(name: &str) -> LoadError {
    let reason = "it is not in the object".to_owned();
    LoadError::Refused(Refusal { what: name.to_owned(), reason, verifier_log: String::new() })
}

#[cfg(test)]
mod tests {
    use std::io;

    use aya_obj::VerifierLog;

    use super::*;

    fn verified(log: &str) -> LoadError {
        let io_error = io::Error::from_raw_os_error(libc::EACCES);
        let verifier_log = VerifierLog::new(log.to_owned());
        refused("the program sample")(ProgramError::LoadError { io_error, verifier_log })
    }

    #[test]
    fn a_refusal_ends_with_what_the_verifier_objects_to() {
        let error =
            verified("0: (b7) r0 = 0\n1: (85) call x#1\nR1 type=scalar expected=fp\nprocessed 2 insns\n\n");
        let text = error.to_string();
        assert!(text.starts_with("the kernel refuses the program sample: "), "{text}");
        assert!(text.ends_with(": R1 type=scalar expected=fp"), "{text}");
        let LoadError::Refused(refusal) = error else { panic!("it is a refusal") };
        assert_eq!(refusal.verifier_lines(2), ["R1 type=scalar expected=fp", "processed 2 insns"]);
        assert_eq!(refusal.verifier_lines(9).len(), 4);
    }

    #[test]
    fn without_the_verifier_the_error_is_told_with_its_causes() {
        let error = refused("a map")(io::Error::other("no room"));
        assert_eq!(error.to_string(), "the kernel refuses a map: no room");
        let error = verified("");
        let LoadError::Refused(refusal) = &error else { panic!("it is a refusal") };
        assert_eq!((refusal.verifier_lines(5).len(), refusal.verifier_reason()), (0, None));
    }
}

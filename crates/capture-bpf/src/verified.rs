//! Loads programs although the verifier is interrupted.
//!
//! The verifier gives up with EAGAIN where a signal is pending for the thread (`do_check` in kernel/bpf/verifier.c), also one that the kernel uses for
//! work of its own and never delivers. The library asks a second time after any error, for the verifier's log. Like libbpf, this tries more often.

use std::io;

use aya::programs::ProgramError;

/// Most attempts, as libbpf makes (`PROG_LOAD_ATTEMPTS` in tools/lib/bpf/bpf.c).
const MOST: u32 = 5;

/// Loads a program, again while the verifier was interrupted.
pub(crate) fn verified(mut load: impl FnMut() -> Result<(), ProgramError>) -> Result<(), ProgramError> {
    for _ in 1..MOST {
        match load() {
            Err(ProgramError::LoadError { io_error, .. }) if is_interrupted(&io_error) => {}
            done => return done,
        }
    }
    load()
}

fn is_interrupted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_errors_are_not_tried_again() {
        let mut attempts = 0;
        let result = verified(|| {
            attempts += 1;
            Err(ProgramError::NotLoaded)
        });
        assert!(matches!(result, Err(ProgramError::NotLoaded)));
        assert_eq!(attempts, 1);
        assert!(is_interrupted(&io::Error::from_raw_os_error(11)), "EAGAIN");
        assert!(!is_interrupted(&io::Error::from_raw_os_error(1)), "EPERM");
    }
}

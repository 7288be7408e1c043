//! Failure of the recorded command: it may not have done the work that was to be measured.

use plumb_profile::Meta;

/// Signals that end a program because of its own fault or on request, named as by `kill -l`.
const SIGNALS: [(u8, &str); 12] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
];

/// Returns a sentence on how the command failed; `None`: it succeeded, or its end was not seen.
pub fn command_failure(meta: &Meta) -> Option<String> {
    let status = meta.exit_status.filter(|&status| status != 0)?;
    let signal = SIGNALS.iter().find(|(number, _)| status.checked_sub(128) == Some(*number));
    let why = match (status, signal) {
        (126, _) => ": a command could not be executed".to_owned(),
        (127, _) => ": a command was not found".to_owned(),
        (_, Some((_, name))) => format!(": ended by {name}"),
        _ => String::new(),
    };
    Some(format!("the command failed with exit status {status}{why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_by_its_status() {
        let said = |exit_status| command_failure(&Meta { exit_status, ..Meta::default() });
        assert_eq!((said(None), said(Some(0))), (None, None));
        for (status, text) in [
            (3, "the command failed with exit status 3"),
            (127, "the command failed with exit status 127: a command was not found"),
            (139, "the command failed with exit status 139: ended by SIGSEGV"),
            (250, "the command failed with exit status 250"),
        ] {
            assert_eq!(said(Some(status)).as_deref(), Some(text));
        }
    }
}

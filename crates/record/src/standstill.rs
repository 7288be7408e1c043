//! Warns of processes that can't run: stopped ones, and zombies.

use plumb_process::state;
use plumb_target::Target;

/// A warning for each process of the target that is stopped or a zombie.
pub(crate) fn notes(target: &Target) -> Vec<String> {
    let Target::Processes(pids) = target else { return Vec::new() };
    pids.iter().filter_map(|&pid| note(pid, state(pid, pid)?)).collect()
}

fn note(pid: u32, state: char) -> Option<String> {
    match state {
        'T' => Some(format!("process {pid} is stopped by a signal; to continue it: kill -CONT {pid}")),
        'Z' => Some(format!("process {pid} has ended: it is only there until its parent waits for it")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn who_is_stopped_or_has_ended_is_named() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let said = || notes(&Target::Processes(vec![pid])).concat();
        let until = |words: &str| while !said().contains(words) {};
        assert_eq!(said(), "");
        assert!(Command::new("kill").args(["-STOP", &pid.to_string()]).status().unwrap().success());
        until("stopped by a signal");
        child.kill().unwrap();
        until("has ended");
        child.wait().unwrap();
        assert_eq!(said(), "", "it is gone");
    }
}

//! Finds other plumb agents on this machine: if two send to one server, it receives every sample twice.

use std::fs;

use plumb_process::pids;

/// Program name and subcommand of an agent.
const PROGRAM: &[u8] = b"plumb";
const COMMAND: &[u8] = b"agent";

/// Process ids of the other agents.
pub(crate) fn other_agents() -> Vec<u32> {
    let own = std::process::id();
    let command_line = |pid| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    pids().into_iter().filter(|&pid| pid != own && is_agent(&command_line(pid))).collect()
}

/// Whether a process with these NUL-terminated arguments is an agent.
fn is_agent(command_line: &[u8]) -> bool {
    let mut words = command_line.split(|&byte| byte == 0);
    let program = words.next().and_then(|path| path.rsplit(|&byte| byte == b'/').next());
    program == Some(PROGRAM) && words.next() == Some(COMMAND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_known_by_its_first_two_arguments() {
        for agent in [&b"plumb\0agent\0"[..], b"/usr/bin/plumb\0agent\0--to\0http://127.0.0.1:4041\0"] {
            assert!(is_agent(agent));
        }
        for other in [&b""[..], b"plumb\0", b"plumb\0record\0agent\0", b"vim\0agent\0", b"plumb agent\0"] {
            assert!(!is_agent(other));
        }
    }
}

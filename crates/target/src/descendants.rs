//! Processes that outlive a recording: the command itself, or processes that it started.

use std::fmt;
use std::time::{Duration, Instant};

use plumb_process::procfs;

use crate::held::Child;
use crate::policy::{self, Notice, SignalPolicy};
use crate::signals::Signals;
use crate::target::End;

/// Processes that have not ended after this time are considered to stay.
const LEAVE: Duration = Duration::from_millis(100);

/// A command that still runs.
#[derive(Debug)]
pub struct Running(pub Child);

impl Running {
    /// Asks the command and its descendants to end (SIGTERM). They may take their time, or refuse.
    pub fn terminate(&self) {
        policy::terminate(self.0);
    }

    /// Like [`terminate`](Self::terminate), but waits for the command's end: at most two seconds, or until a signal ends plumb first
    /// ([`End::Signal`]).
    pub fn end(self, say: impl FnMut(Notice)) -> std::io::Result<End> {
        policy::end(self.0, &Signals::watch()?, &mut SignalPolicy::default(), say)
    }
}

/// Processes that a command left behind at its end, and that are not recorded any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descendants {
    /// Name of the command.
    command: String,
    /// Process IDs in ascending order.
    pids: Vec<u32>,
}

impl Descendants {
    /// Returns those of these processes that run. `command`: the name of the command that started them.
    pub fn new(command: String, mut pids: Vec<u32>) -> Self {
        pids.sort_unstable();
        Self { command, pids }.living()
    }

    /// Keeps the processes that run now.
    pub fn living(mut self) -> Self {
        self.pids.retain(|&pid| procfs::is_alive(pid));
        self
    }

    /// Keeps the processes that stay: in a pipeline, for example, some end just after the last.
    pub fn staying(mut self) -> Self {
        let begin = Instant::now();
        while !self.pids.is_empty() && begin.elapsed() < LEAVE {
            std::thread::sleep(LEAVE / 10);
            self = self.living();
        }
        self
    }
}

/// Names the processes, and how to record them; empty if there are none.
impl fmt::Display for Descendants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Most processes that are named.
        const NAMED: usize = 8;
        let Self { command, pids } = self;
        let named: Vec<String> = pids.iter().take(NAMED).map(u32::to_string).collect();
        let more = if pids.len() > NAMED { ", ..." } else { "" };
        match &pids[..] {
            [] => Ok(()),
            [pid] => write!(
                f,
                "a descendant of {command} still ran when that ended (pid {pid}) and is no longer recorded; to record it and \
                 all that it starts: plumb record --tree {pid}"
            ),
            [first, ..] => write!(
                f,
                "{} descendants of {command} still ran when that ended (pids {}{more}) and are no longer recorded; to record \
                 them: plumb record -p {}; one with all that it starts: plumb record --tree {first}",
                pids.len(),
                named.join(", "),
                named.join(","),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Descendants;

    #[test]
    fn who_is_left_is_named_with_what_records_them() {
        let left = |pids: &[u32]| Descendants { command: "sh".into(), pids: pids.to_vec() }.to_string();
        assert_eq!(left(&[]), "");
        assert!(left(&[12]).contains("(pid 12)") && left(&[12]).ends_with("plumb record --tree 12"));
        let several = left(&[12, 13]);
        assert!(several.starts_with("2 descendants of sh") && several.contains("(pids 12, 13)"), "{several}");
        assert!(several.contains("plumb record -p 12,13;"), "{several}");
        let many = left(&Vec::from_iter(1..=100));
        assert!(many.starts_with("100 descendants") && many.contains("7, 8, ...)"), "{many}");
    }

    #[test]
    fn who_has_ended_is_not_left() {
        // The second is above the largest pid.
        let own = std::process::id();
        assert_eq!(Descendants::new("sh".into(), vec![4_194_999, own]).pids, [own]);
    }
}

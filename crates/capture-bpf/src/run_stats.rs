//! How long this process' BPF programs ran: the kernel's own account of them.
//!
//! Not here: programs. The kernel keeps the account only while it is asked to (`BPF_ENABLE_STATS`, Linux 5.8, or
//! `kernel.bpf_stats_enabled`), as it takes two looks at the clock with each run.

use std::collections::HashMap;
use std::fs::{self, DirEntry};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use aya::sys::{Stats, enable_stats};

/// Where the kernel says whether it keeps the account for all.
const ENABLED: &str = "/proc/sys/kernel/bpf_stats_enabled";
/// How the link ends that the kernel shows for the descriptor of a program: `anon_inode:bpf-prog`.
const PROGRAM: &[u8] = b":bpf-prog";

/// The account of BPF programs, kept while this exists.
#[derive(Debug)]
pub struct RunStats {
    asked: Option<OwnedFd>,
    is_kept: bool,
}

impl RunStats {
    /// Asks the kernel to keep it, which takes CAP_SYS_ADMIN. It is kept of all programs on the machine, and slows each run of them.
    pub fn enable() -> Self {
        let asked = enable_stats(Stats::RunTime).ok();
        let is_kept = asked.is_some() || fs::read_to_string(ENABLED).is_ok_and(|text| text.trim() == "1");
        Self { asked, is_kept }
    }

    /// Asks for it no more. Returns whether it is kept all the same.
    pub fn release(&mut self) -> bool {
        self.asked = None;
        self.is_kept = fs::read_to_string(ENABLED).is_ok_and(|text| text.trim() == "1");
        self.is_kept
    }

    /// How long all programs ran that this process has loaded and still holds, since they were loaded; `None` where the kernel keeps no account.
    pub fn own_run_time(&self) -> Option<Duration> {
        if !self.is_kept {
            return None;
        }
        // What else is open is passed over: what the kernel writes of each takes ten times as long as to read where it leads.
        let is_program = |entry: &DirEntry| {
            fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str().as_encoded_bytes().ends_with(PROGRAM))
        };
        let read =
            |entry: DirEntry| fs::read_to_string(Path::new("/proc/self/fdinfo").join(entry.file_name()));
        let descriptors = fs::read_dir("/proc/self/fd").ok()?.flatten().filter(is_program);
        // A program may be held twice.
        let programs: HashMap<u64, u64> =
            descriptors.filter_map(|entry| program(&read(entry).ok()?)).collect();
        Some(Duration::from_nanos(programs.values().sum()))
    }
}

/// The number of the program that a descriptor is of, and the nanoseconds for which it ran (`bpf_prog_show_fdinfo` in kernel/bpf/syscall.c).
fn program(fdinfo: &str) -> Option<(u64, u64)> {
    let number = |name: &str| fdinfo.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some((number("prog_id:")?, number("run_time_ns:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_told_from_a_link() {
        let of_program =
            "pos:\t0\nflags:\t02000002\nprog_type:\t26\nprog_id:\t41\nrun_time_ns:\t1234\nrun_cnt:\t5\n";
        assert_eq!(program(of_program), Some((41, 1234)));
        assert_eq!(program("pos:\t0\nlink_type:\traw_tracepoint\nlink_id:\t4\nprog_id:\t41\n"), None);
        assert_eq!(program(""), None);
    }
}

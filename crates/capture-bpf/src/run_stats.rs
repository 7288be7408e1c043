//! Run time of this process' BPF programs, from the kernel's statistics.
//!
//! Elsewhere: programs. The kernel keeps the statistics only while enabled (`BPF_ENABLE_STATS`, Linux 5.8, or
//! `kernel.bpf_stats_enabled`), as they read the clock twice per run.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirEntry, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aya::sys::{Stats, enable_stats};

/// File that shows whether the statistics are enabled globally.
const ENABLED: &str = "/proc/sys/kernel/bpf_stats_enabled";
/// End of the link that the kernel shows for a program's descriptor: `anon_inode:bpf-prog`.
const PROGRAM: &[u8] = b":bpf-prog";
/// Time between two searches of all descriptors. Few of them are programs.
const SEARCH: Duration = Duration::from_secs(60);

/// The statistics of BPF programs, enabled while this exists.
#[derive(Debug)]
pub struct RunStats {
    asked: Option<OwnedFd>,
    is_kept: bool,
    /// The fdinfo file of each program.
    programs: Vec<PathBuf>,
    searched: Option<Instant>,
}

impl RunStats {
    /// Enables the statistics, which requires CAP_SYS_ADMIN. They cover all programs on the machine, and slow each run.
    pub fn enable() -> Self {
        let asked = enable_stats(Stats::RunTime).ok();
        let is_kept = asked.is_some() || fs::read_to_string(ENABLED).is_ok_and(|text| text.trim() == "1");
        Self { asked, is_kept, programs: Vec::new(), searched: None }
    }

    /// Stops requesting the statistics. Returns whether they are enabled even so.
    pub fn release(&mut self) -> bool {
        self.asked = None;
        self.is_kept = fs::read_to_string(ENABLED).is_ok_and(|text| text.trim() == "1");
        self.is_kept
    }

    /// Whether the statistics are enabled.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Total run time of all programs that this process has loaded and still holds; `None` if the statistics are disabled.
    /// Programs loaded in the last minute may be missing.
    pub fn own_run_time(&mut self) -> Option<Duration> {
        if !self.is_kept {
            return None;
        }
        let is_new = |searched: Instant| searched.elapsed() < SEARCH;
        if self.programs.is_empty() || !self.searched.is_some_and(is_new) {
            self.programs = own_programs()?;
            self.searched = Some(Instant::now());
        }
        // A program may be held twice.
        let times: HashMap<u64, u64> = self.programs.iter().filter_map(|path| run_time(path)).collect();
        Some(Duration::from_nanos(times.values().sum()))
    }
}

/// The IDs of all programs that this process holds.
pub(crate) fn own_numbers() -> HashSet<u32> {
    let programs = own_programs().unwrap_or_default();
    programs.iter().filter_map(|path| u32::try_from(run_time(path)?.0).ok()).collect()
}

/// The fdinfo file of each program that this process holds. Other descriptors are skipped by their links: reading fdinfo takes ten
/// times as long.
fn own_programs() -> Option<Vec<PathBuf>> {
    let is_program = |entry: &DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str().as_encoded_bytes().ends_with(PROGRAM))
    };
    let descriptors = fs::read_dir("/proc/self/fd").ok()?.flatten().filter(is_program);
    Some(descriptors.map(|entry| Path::new("/proc/self/fdinfo").join(entry.file_name())).collect())
}

/// The ID of a program and its run time. The kernel writes the file in one piece.
fn run_time(path: &Path) -> Option<(u64, u64)> {
    let mut text = [0; 1024];
    let length = File::open(path).ok()?.read(&mut text).ok()?;
    program(str::from_utf8(text.get(..length)?).ok()?)
}

/// The program ID in fdinfo, and its run time in nanoseconds (`bpf_prog_show_fdinfo` in kernel/bpf/syscall.c).
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

//! What `/proc/PID` says about a process that runs now.
//!
//! Every answer is `None` or empty when the process is gone or may not be looked at: a recorder meets both all the
//! time. The `procfs` crate was weighed: it builds owned structures of every field, which costs more than the five
//! facts that are needed here.

use std::os::unix::ffi::OsStringExt;

/// Name of a thread (`comm`), without the line's end.
pub fn comm(pid: u32, tid: u32) -> Option<Vec<u8>> {
    let mut text = std::fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    Some(text)
}

/// Path of the executable as the process sees it, without " (deleted)". `None` for a kernel thread.
pub fn executable(pid: u32) -> Option<Vec<u8>> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?.into_os_string().into_vec();
    Some(path.strip_suffix(b" (deleted)").map(<[u8]>::to_vec).unwrap_or(path))
}

/// Text of the maps file, for [`parse_maps`](crate::parse_maps). Empty for a kernel thread.
pub fn mappings(pid: u32) -> Option<Vec<u8>> {
    std::fs::read(format!("/proc/{pid}/maps")).ok()
}

/// Process id of the parent.
pub fn parent(pid: u32) -> Option<u32> {
    parent_in_stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The most memory that was ever resident, in bytes. `None` for a kernel thread.
pub fn peak_rss(pid: u32) -> Option<u64> {
    peak_in_status(&std::fs::read(format!("/proc/{pid}/status")).ok()?)
}

/// Processes that run, in no order.
pub fn pids() -> Vec<u32> {
    numbers("/proc")
}

/// Thread ids of a process.
pub fn threads(pid: u32) -> Vec<u32> {
    numbers(&format!("/proc/{pid}/task"))
}

fn numbers(dir: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The fourth field of a stat file. The second is the name in parentheses and may hold blanks and parentheses itself.
fn parent_in_stat(text: &[u8]) -> Option<u32> {
    let after_name = &text[text.iter().rposition(|&b| b == b')')? + 1..];
    let mut words = after_name.split(|&b| b == b' ').filter(|word| !word.is_empty());
    std::str::from_utf8(words.nth(1)?).ok()?.parse().ok()
}

/// The line `VmHWM:    1234 kB` of a status file. The name, in a line before it, can hold no line's end.
fn peak_in_status(text: &[u8]) -> Option<u64> {
    let line = text.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(b"VmHWM:"))?;
    let number = std::str::from_utf8(line).ok()?.trim().strip_suffix("kB")?;
    number.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_parent_behind_a_tricky_name() {
        assert_eq!(parent_in_stat(b"42 (a) b ( c)) S 17 42 42 0"), Some(17));
        assert_eq!(parent_in_stat(b"42 (a"), None);
    }

    #[test]
    fn finds_the_peak_of_resident_memory() {
        assert_eq!(peak_in_status(b"Name:\tx\nVmHWM:\t    1234 kB\nVmRSS:\t 7 kB\n"), Some(1234 << 10));
        assert_eq!(peak_in_status(b"Name:\tkthreadd\n"), None);
        let memory = vec![1_u8; 64 << 20];
        assert!(peak_rss(std::process::id()).unwrap() > memory.len() as u64);
    }

    #[test]
    fn knows_ourselves() {
        let pid = std::process::id();
        assert_eq!(parent(pid), Some(std::os::unix::process::parent_id()));
        assert_eq!(executable(pid).unwrap(), std::env::current_exe().unwrap().as_os_str().as_encoded_bytes());
        assert!(pids().contains(&pid));
        assert!(threads(pid).contains(&pid));
        assert!(!comm(pid, pid).unwrap().contains(&b'\n'));
    }
}

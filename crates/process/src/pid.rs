//! Facts about a running process from `/proc/PID`.
//!
//! Every result is `None` or empty if the process is gone or access is denied: a recorder meets both all the
//! time. The `procfs` crate was considered: it builds owned structures of every field, which costs more than the five
//! facts needed here.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;

use crate::descriptor::read_memory;
use crate::identity::{DELETED, FileKey};
use crate::thread::state;

/// Returns the name of a thread (`comm`), without the newline.
pub fn comm(pid: u32, tid: u32) -> Option<Vec<u8>> {
    let mut text = std::fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    Some(text)
}

/// Returns the id of a thread that still has the memory of a process: the main thread, or, once that has exited (`pthread_exit` in `main`),
/// another running one. The kernel releases memory, files and root of a thread that has exited, so `/proc/PID/maps`, `exe` and `root` are
/// empty then; those of `/proc/TID` are not.
pub fn living_thread(pid: u32) -> u32 {
    find_living_thread(pid).unwrap_or(pid)
}

/// As [`living_thread`]; `None` if every thread has exited.
pub(crate) fn find_living_thread(pid: u32) -> Option<u32> {
    let is_living = |&tid: &u32| !matches!(state(pid, tid), Some('Z' | 'X') | None);
    Some(pid).filter(is_living).or_else(|| threads(pid).into_iter().find(is_living))
}

/// Returns the path of the executable as seen by the process, without the " (deleted)" of one that is gone. `None` for a kernel thread.
pub fn executable(pid: u32) -> Option<Vec<u8>> {
    let link = |pid: u32| Some((pid, std::fs::read_link(format!("/proc/{pid}/exe")).ok()?));
    let (living, path) = link(pid).or_else(|| link(living_thread(pid)))?;
    let path = path.into_os_string().into_vec();
    if !path.ends_with(DELETED) {
        return Some(path);
    }
    let inode = std::fs::metadata(format!("/proc/{living}/exe")).map_or(0, |meta| meta.ino());
    Some(FileKey { inode, ..FileKey::of_path(&path) }.without_deleted(living).path.into())
}

/// Returns the process' initial environment, up to `most` bytes: `NAME=VALUE` and a NUL each. The file with it is readable only for its user and
/// those who may read any file; its memory also for those who may trace it.
pub fn environment(pid: u32, most: usize) -> Option<Vec<u8>> {
    let (mut bytes, pid) = (Vec::new(), living_thread(pid));
    if let Ok(file) = File::open(format!("/proc/{pid}/environ")) {
        file.take(most as u64).read_to_end(&mut bytes).ok()?;
        return Some(bytes);
    }
    let (start, end) = environment_in_stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)?;
    bytes.resize(usize::try_from(end.checked_sub(start)?).ok()?.min(most), 0);
    let read = read_memory(pid, start, &mut bytes);
    bytes.truncate(read);
    (read > 0).then_some(bytes)
}

/// Returns the text of the maps file, for [`parse_maps`](crate::parse_maps). Empty for a kernel thread.
pub fn mappings(pid: u32) -> Option<Vec<u8>> {
    let read = |pid: u32| std::fs::read(format!("/proc/{pid}/maps")).ok();
    read(pid).filter(|text| !text.is_empty()).or_else(|| read(living_thread(pid)))
}

/// Returns the process id of the parent.
pub fn parent(pid: u32) -> Option<u32> {
    parent_in_stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Returns the peak resident memory in bytes. `None` for a kernel thread.
pub fn peak_rss(pid: u32) -> Option<u64> {
    let peak = |pid: u32| peak_in_status(&std::fs::read(format!("/proc/{pid}/status")).ok()?);
    peak(pid).or_else(|| peak(living_thread(pid)))
}

/// Whether `/proc` shows the processes of another pid namespace than this process is in, as if a container runtime has not mounted its own:
/// process ids have another meaning there.
pub fn is_proc_foreign() -> bool {
    let shown = std::fs::read_link("/proc/self").ok();
    shown.is_some_and(|shown| shown.as_os_str() != std::process::id().to_string().as_str())
}

/// The error and its remedy where [`is_proc_foreign`].
pub const FOREIGN_PROC: &str = "/proc is of another pid namespace than this command; mount this namespace's own (unshare --pid --fork \
     --mount-proc), or run plumb outside of it";

/// Returns the running processes, unordered.
pub fn pids() -> Vec<u32> {
    numbers("/proc")
}

/// Returns the thread ids of a process.
pub fn threads(pid: u32) -> Vec<u32> {
    numbers(&format!("/proc/{pid}/task"))
}

fn numbers(dir: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the fourth field of a stat file.
fn parent_in_stat(text: &[u8]) -> Option<u32> {
    fields_of_stat(text)?.nth(1)?.parse().ok()
}

/// Returns the fields 50 and 51: start and end of the environment. They are 0 without permission to trace the process.
fn environment_in_stat(text: &[u8]) -> Option<(u64, u64)> {
    let mut fields = fields_of_stat(text)?.skip(47).map(|field| field.parse().ok());
    let (start, end) = (fields.next()??, fields.next()??);
    (start != 0).then_some((start, end))
}

/// Returns the fields of a stat file (proc_pid_stat(5)) from the third on. The second is the name in parentheses, which may contain blanks and
/// parentheses itself.
pub(crate) fn fields_of_stat(text: &[u8]) -> Option<impl Iterator<Item = &str>> {
    let after_name = &text[text.iter().rposition(|&b| b == b')')? + 1..];
    Some(std::str::from_utf8(after_name).ok()?.split_ascii_whitespace())
}

/// Reads the line `VmHWM:    1234 kB` of a status file. The name, on an earlier line, cannot contain a newline.
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
    fn finds_the_environment() {
        let pid = std::process::id();
        let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap();
        let (start, end) = environment_in_stat(&stat).unwrap();
        let mut bytes = vec![0; (end - start) as usize];
        assert_eq!(read_memory(pid, start, &mut bytes), bytes.len());
        assert_eq!(environment(pid, usize::MAX).unwrap(), bytes);
        assert_eq!(environment(pid, 3).unwrap(), bytes[..3]);
        assert_eq!(environment_in_stat(b"42 (a) S 17"), None);
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
        assert!(!is_proc_foreign());
        assert_eq!(parent(pid), Some(std::os::unix::process::parent_id()));
        assert_eq!(executable(pid).unwrap(), std::env::current_exe().unwrap().as_os_str().as_encoded_bytes());
        assert!(pids().contains(&pid));
        assert!(threads(pid).contains(&pid));
        assert!(!comm(pid, pid).unwrap().contains(&b'\n'));
    }
}

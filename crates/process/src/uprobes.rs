//! Uprobes: those that tracefs lists, and those that the kernel has put into the code of running processes, whoever set them.
//!
//! The kernel writes a breakpoint into a private copy of the probed page. Where it single-steps the instruction, or a return is probed, it
//! maps an area `[uprobes]` into the process (kernel/events/uprobes.c). So in a process with that area, a page of code that is a copy and
//! differs from its file by breakpoints alone shows the probes. Work is bounded in processes, pages and time.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::arch::PROBE;
use crate::maps::{MapLine, parse_maps};
use crate::open::{FileOrigin, open_mapped, seen_by};
use crate::pid::{living_thread, mappings, pids};
use crate::thread::tracer;
use crate::usage::page_size;
use crate::{FileKey, read_memory};

/// The kernel's name of the area.
const AREA: &[u8] = b"[uprobes]";
/// Bits of an entry of `/proc/PID/pagemap`: the page is present; it is one of a file, not a copy.
const PRESENT: u64 = 1 << 63;
const OF_FILE: u64 = 1 << 61;
/// Largest number of pages of code that are looked at in a process: 1 GiB.
const MOST_PAGES: u64 = 1 << 18;
/// Largest number of pages that are compared with their files.
const MOST_COPIES: usize = 4096;
/// Largest number of probes returned.
const MOST_PROBES: usize = 1024;
/// Longest time for looking at processes.
const LONGEST: Duration = Duration::from_millis(500);

/// A uprobe.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uprobe {
    /// The file.
    pub path: PathBuf,
    /// Offset in the file of the probed instruction.
    pub offset: u64,
    /// `GROUP/EVENT`; `None` for one that was found in a process.
    pub name: Option<String>,
    /// Whether it is passed as the function returns.
    pub is_return: bool,
}

/// Parses `uprobe_events` of tracefs. Malformed lines are skipped.
pub fn parse_uprobe_events(text: &str) -> Vec<Uprobe> {
    text.lines().filter_map(parse_line).take(MOST_PROBES).collect()
}

/// Parses `p:GROUP/EVENT PATH:0xOFFSET ARGUMENTS`; `r` instead of `p` for a return.
fn parse_line(line: &str) -> Option<Uprobe> {
    let (kind, rest) = line.split_once(':')?;
    let (name, rest) = rest.split_once(' ')?;
    let (path, rest) = rest.split_once(":0x")?;
    let digits = rest.find(|digit: char| !digit.is_ascii_hexdigit()).unwrap_or(rest.len());
    let is_return = match kind.bytes().next()? {
        b'p' => false,
        b'r' => true,
        _ => return None,
    };
    let offset = u64::from_str_radix(&rest[..digits], 16).ok()?;
    Some(Uprobe { path: path.into(), offset, name: Some(name.to_owned()), is_return })
}

/// Finds the probes in the code of running processes that were passed there and took an area `[uprobes]`. Empty where the caller may not look
/// at the processes.
pub fn uprobes_in_processes() -> Vec<Uprobe> {
    let mut found = Vec::new();
    let began = Instant::now();
    let mut copies = MOST_COPIES;
    for pid in pids() {
        if began.elapsed() > LONGEST || copies == 0 {
            break;
        }
        let Some(text) = mappings(pid) else { continue };
        let has_area = text.windows(AREA.len()).any(|window| window == AREA);
        // A debugger sets breakpoints too.
        if has_area && tracer(pid).is_none() {
            look(pid, &text, &mut copies, &mut found);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn look(pid: u32, maps: &[u8], copies: &mut usize, found: &mut Vec<Uprobe>) {
    let Ok(pagemap) = File::open(format!("/proc/{}/pagemap", living_thread(pid))) else { return };
    let (size, mut pages) = (page_size(), MOST_PAGES);
    let page_bytes = size as u64;
    let (mut page, mut stored) = (vec![0; size], vec![0; size]);
    for line in parse_maps(maps).filter(|line| line.executable && line.inode != 0) {
        let count = ((line.end - line.start) / page_bytes).min(pages);
        pages -= count;
        let mut entries = vec![0; count as usize * 8];
        let Ok(read) = pagemap.read_at(&mut entries, line.start / page_bytes * 8) else { return };
        let mut file = None;
        for (number, entry) in entries[..read].chunks_exact(8).enumerate() {
            let entry = u64::from_ne_bytes(*entry.first_chunk().unwrap_or(&[0; 8]));
            if entry & PRESENT == 0 || entry & OF_FILE != 0 || *copies == 0 || found.len() >= MOST_PROBES {
                continue;
            }
            *copies -= 1;
            let file = file.get_or_insert_with(|| mapped_file(pid, &line));
            let at = number as u64 * page_bytes;
            let of_process = read_memory(pid, line.start + at, &mut page);
            let of_file = file.as_ref().and_then(|file| file.read_at(&mut stored, line.offset + at).ok());
            let whole = of_process.min(of_file.unwrap_or(0));
            for place in breakpoints(&page[..whole], &stored[..whole]) {
                let path = reachable(pid, &line);
                found.push(Uprobe { path, offset: line.offset + at + place, name: None, is_return: false });
            }
        }
    }
}

/// The path of a mapped file: as the process sees it, or through its root directory where that is another file here.
fn reachable(pid: u32, line: &MapLine<'_>) -> PathBuf {
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(line.path));
    if fs::metadata(&path).is_ok_and(|meta| meta.ino() == line.inode) {
        return path;
    }
    seen_by(living_thread(pid), &path)
}

fn mapped_file(pid: u32, line: &MapLine<'_>) -> Option<File> {
    let origin = FileOrigin::Process { pid, range: line.start..line.end, parent: 0 };
    open_mapped(&FileKey::of_line(line), &origin).ok()
}

/// Offsets of breakpoints in a page; none if anything else in it differs from its file.
fn breakpoints(page: &[u8], stored: &[u8]) -> Vec<u64> {
    let instructions = |bytes| <[u8]>::as_chunks::<{ PROBE.len() }>(bytes).0;
    let pairs = instructions(page).iter().zip(instructions(stored)).enumerate();
    let differing = || pairs.clone().filter(|(_, (now, then))| now != then);
    if differing().any(|(_, (now, _))| *now != PROBE) {
        return Vec::new();
    }
    differing().map(|(at, _)| (at * PROBE.len()) as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tracefs_are_probes() {
        let text = "p:probe_libc/malloc /usr/lib/libc.so.6:0x0000000000097e70 size=%di\n\
                    r:g/out /opt/a b:0x10(0x20)\nnonsense\np:x/y /bin/sh:0x\nq:x/y /bin/sh:0x1\n";
        let probe = |path: &str, offset, name: &str, is_return| Uprobe {
            path: path.into(),
            offset,
            name: Some(name.into()),
            is_return,
        };
        let expected = [
            probe("/usr/lib/libc.so.6", 0x97e70, "probe_libc/malloc", false),
            probe("/opt/a b", 0x10, "g/out", true),
        ];
        assert_eq!(parse_uprobe_events(text), expected);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn breakpoints_are_all_that_differs() {
        assert_eq!(breakpoints(&[0x55, 0xcc, 0x90, 0xcc], &[0x55, 0x48, 0x90, 0xc3]), [1, 3]);
        assert_eq!(breakpoints(&[0x55, 0xcc, 0x91], &[0x55, 0x48, 0x90]), [0; 0], "other code");
        assert_eq!(breakpoints(&[0xcc; 2], &[0xcc; 2]), [0; 0]);
    }
}

//! Parses the text of `/proc/PID/maps`.
//!
//! Format: proc_pid_maps(5), written by `show_map_vma` in fs/proc/task_mmu.c. Malformed lines are
//! skipped: the file can end in the middle of a line when its process exits.

use crate::identity::Device;

/// One line: one mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapLine<'a> {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Whether it is writable.
    pub writable: bool,
    /// Whether it is executable.
    pub executable: bool,
    /// Offset in the file where the mapping begins.
    pub offset: u64,
    /// Device of the file.
    pub device: Device,
    /// Inode of the file, 0 if there is none.
    pub inode: u64,
    /// Path, or a name such as `[vdso]`, or nothing. Newlines are escaped as `\012`; " (deleted)" is kept.
    pub path: &'a [u8],
}

/// Returns the mappings in the text of a maps file, by address.
pub fn parse_maps(text: &[u8]) -> impl Iterator<Item = MapLine<'_>> {
    text.split(|&b| b == b'\n').filter_map(parse_line)
}

fn parse_line(line: &[u8]) -> Option<MapLine<'_>> {
    let (range, rest) = word(line)?;
    let (flags, rest) = word(rest)?;
    let (offset, rest) = word(rest)?;
    let (device, rest) = word(rest)?;
    let (inode, rest) = word(rest)?;
    let (start, end) = pair(range, b'-')?;
    let (major, minor) = pair(device, b':')?;
    if start >= end {
        return None;
    }
    Some(MapLine {
        start,
        end,
        writable: flags.get(1) == Some(&b'w'),
        executable: flags.get(2) == Some(&b'x'),
        offset: hex(offset)?,
        device: Device { major: u32::try_from(major).ok()?, minor: u32::try_from(minor).ok()? },
        inode: std::str::from_utf8(inode).ok()?.parse().ok()?,
        path: rest.trim_ascii_start(),
    })
}

/// Splits off the word before the next blank. A line may end after its last word.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|&b| b == b' ').unwrap_or(text.len());
    (end > 0).then(|| (&text[..end], text.get(end + 1..).unwrap_or_default()))
}

fn pair(text: &[u8], separator: u8) -> Option<(u64, u64)> {
    let at = text.iter().position(|&b| b == separator)?;
    Some((hex(&text[..at])?, hex(&text[at + 1..])?))
}

fn hex(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_files_names_and_nothing() {
        let text = b"55d0c9c00000-55d0c9c02000 r-xp 00001000 fd:01 1835 /usr/bin/with space (deleted)\n\
            7ffc1000-7ffc3000 r-xp 00000000 00:00 0                                  [vdso]\n\
            7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n\
            garbage\n7f-";
        let lines: Vec<_> = parse_maps(text).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0].start..lines[0].end, 0x55d0_c9c0_0000..0x55d0_c9c0_2000);
        assert_eq!(lines[0].offset, 0x1000);
        assert_eq!(lines[0].device, Device { major: 0xfd, minor: 1 });
        assert_eq!(lines[0].inode, 1835);
        assert_eq!(lines[0].path, b"/usr/bin/with space (deleted)");
        assert_eq!(lines[1].path, b"[vdso]");
        assert_eq!(lines[2].path, b"");
        assert!(lines.iter().all(|line| line.executable));
    }

    #[test]
    fn reads_our_own() {
        let text = std::fs::read("/proc/self/maps").unwrap();
        let here = reads_our_own as *const () as usize as u64;
        let line = parse_maps(&text).find(|line| (line.start..line.end).contains(&here)).unwrap();
        assert!(line.executable);
        assert_eq!(line.path, std::env::current_exe().unwrap().as_os_str().as_encoded_bytes());
    }
}

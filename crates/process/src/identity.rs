//! The identity of mapped files.

use crate::maps::MapLine;

/// End of the path of a file without a name, as the kernel writes it (d_path in fs/d_path.c).
pub(crate) const DELETED: &[u8] = b" (deleted)";

/// A device number in two parts, as in `/proc/PID/maps` and perf's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Device {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl Device {
    /// Splits a `st_dev` from stat(2) (glibc's `gnu_dev_major` and `gnu_dev_minor`).
    pub fn from_stat(dev: u64) -> Self {
        let major = ((dev >> 8) & 0xfff) | ((dev >> 32) & !0xfff);
        let minor = (dev & 0xff) | ((dev >> 12) & !0xff);
        Device { major: major as u32, minor: minor as u32 }
    }
}

/// The description of a file in its mappings. Equal keys are the same file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// Path as the process saw it, without the " (deleted)" that the kernel appends (see [`FileKey::without_deleted`]).
    pub path: Box<[u8]>,
    /// Device, if the source of the mapping has it.
    pub device: Option<Device>,
    /// Inode number, 0 if not known.
    pub inode: u64,
    /// Inode generation, which changes when an inode number is reused; 0 if not known.
    pub generation: u64,
    /// Build id, if the source of the mapping has it instead of the inode.
    pub build_id: Option<Box<[u8]>>,
}

impl FileKey {
    /// Creates the key from a line of a maps file, with the path as it stands there.
    pub fn of_line(line: &MapLine<'_>) -> Self {
        FileKey { device: Some(line.device), inode: line.inode, ..Self::of_path(line.path) }
    }

    /// Creates a key with a path only.
    pub fn of_path(path: &[u8]) -> Self {
        FileKey { path: path.into(), device: None, inode: 0, generation: 0, build_id: None }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn device_agrees_with_proc_maps() {
        let exe = std::env::current_exe().unwrap();
        let text = std::fs::read("/proc/self/maps").unwrap();
        let line = crate::parse_maps(&text).find(|l| l.path == exe.as_os_str().as_encoded_bytes()).unwrap();
        let meta = std::fs::metadata(&exe).unwrap();
        assert_eq!(line.inode, meta.ino());
        assert_eq!(line.device, Device::from_stat(meta.dev()));
    }
}

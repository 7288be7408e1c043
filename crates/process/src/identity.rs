//! When two mappings are of the same file.

use crate::maps::MapLine;

/// A device number, in two parts as `/proc/PID/maps` and perf's records give it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Device {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl Device {
    /// The parts of a `st_dev` as stat(2) gives it (glibc's `gnu_dev_major` and `gnu_dev_minor`).
    pub fn from_stat(dev: u64) -> Self {
        let major = ((dev >> 8) & 0xfff) | ((dev >> 32) & !0xfff);
        let minor = (dev & 0xff) | ((dev >> 12) & !0xff);
        Device { major: major as u32, minor: minor as u32 }
    }
}

/// What a mapping says about its file. Equal keys are the same file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// Path as the process saw it, without " (deleted)".
    pub path: Box<[u8]>,
    /// Device, where the source of the mapping tells.
    pub device: Option<Device>,
    /// Inode number, 0 if not known.
    pub inode: u64,
    /// Inode generation, which changes when an inode number is used again; 0 if not known.
    pub generation: u64,
    /// Build id, where the source of the mapping tells it instead of the inode.
    pub build_id: Option<Box<[u8]>>,
}

impl FileKey {
    /// The key of a line of a maps file.
    pub fn of_line(line: &MapLine<'_>) -> Self {
        FileKey { device: Some(line.device), inode: line.inode, ..Self::of_path(line.path) }
    }

    /// A key of a path alone.
    pub fn of_path(path: &[u8]) -> Self {
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
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

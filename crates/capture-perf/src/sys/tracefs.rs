//! The kernel's tracing file system, even if it is not mounted.
//!
//! As root it is mounted for this process alone, at no path: open_tree(2) calls such a mount detached. It
//! ends with its descriptor.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The usual mount points.
const USUAL: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// `FSOPEN_CLOEXEC`, `FSMOUNT_CLOEXEC` and `FSCONFIG_CMD_CREATE` of include/uapi/linux/mount.h.
const CLOEXEC: libc::c_long = 1;
const CREATE: libc::c_long = 6;

/// The file system, available as long as this value lives.
pub struct Tracefs {
    path: PathBuf,
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Path of its root directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Finds a mount, or mounts it for this process.
    pub fn open() -> io::Result<Self> {
        open()
    }
}

fn open() -> io::Result<Tracefs> {
    let mut refused = None;
    for path in USUAL {
        match fs::read_dir(Path::new(path).join("events")) {
            Ok(_) => return Ok(Tracefs { path: path.into(), _mount: None }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused = Some(error),
            Err(_) => {}
        }
    }
    match mount() {
        Ok(mount) => {
            let path = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
            Ok(Tracefs { path, _mount: Some(mount) })
        }
        Err(error) => Err(refused.unwrap_or_else(|| {
            let why = format!("tracefs is mounted neither at {} nor at {} ({error})", USUAL[0], USUAL[1]);
            io::Error::new(error.kind(), why)
        })),
    }
}

/// A detached mount (kernel 5.2 and newer).
fn mount() -> io::Result<OwnedFd> {
    let name: &CStr = c"tracefs";
    // SAFETY: `name` is a live, terminated string.
    let context = descriptor(unsafe { libc::syscall(libc::SYS_fsopen, name.as_ptr(), CLOEXEC) })?;
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: this command takes neither key nor value.
    let made = unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, none, none, 0) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: takes no pointer.
    descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOEXEC, 0) })
}

fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    let fd = i32::try_from(result).map_err(|_| io::ErrorKind::InvalidData)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

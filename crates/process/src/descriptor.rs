//! Access to processes by descriptor and to their memory: `pidfd_open(2)`, `process_vm_readv(2)`.
//!
//! Elsewhere: the meaning of that memory, waiting for processes to end.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::pid::living_thread;

/// Returns a descriptor that becomes readable when the process ends (kernel 5.3 and newer).
pub fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: takes no pointer.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor (close-on-exec) for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Reads memory of another process; returns the number of bytes read from the start.
pub fn read_memory(pid: u32, at: u64, buffer: &mut [u8]) -> usize {
    let read = read_of_thread(pid, at, buffer).or_else(|error| match error.raw_os_error() {
        // A thread that has exited has no memory.
        Some(libc::ESRCH) => read_of_thread(living_thread(pid), at, buffer),
        _ => Err(error),
    });
    read.unwrap_or(0)
}

fn read_of_thread(thread: u32, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let pid = i32::try_from(thread).map_err(|_| io::ErrorKind::InvalidInput)?;
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: `local` describes `buffer`, which outlives the call; `remote` is only looked at by the kernel in the other
    // process, which reports addresses that are not there.
    let count = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

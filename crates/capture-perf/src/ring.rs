//! The memory to which the kernel writes the records of one CPU.
//!
//! Layout and protocol: `struct perf_event_mmap_page` in include/uapi/linux/perf_event.h. The kernel advances
//! `data_head`, the reader advances `data_tail`, and the bytes between them may be read in place.
//!
//! Elsewhere: the meaning of the bytes.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;

/// A mapped ring.
#[derive(Debug)]
pub(crate) struct Ring {
    base: NonNull<u8>,
    page: usize,
    /// Length of the data in bytes, a power of two.
    len: usize,
    /// The kernel's write position when last read, in bytes since the ring was mapped.
    head: u64,
    /// The position up to which bytes were released, in the same unit.
    tail: u64,
}

// SAFETY: the mapping belongs to this value alone, and is shared with the kernel only, not with a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps `len` bytes (a power of two, at least a page) for the records of the event `file`.
    pub fn map(file: &File, len: usize, page: usize) -> io::Result<Self> {
        if !len.is_power_of_two() || len < page {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let whole = len.checked_add(page).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                whole,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, page, len, head: 0, tail: 0 })
    }

    /// Reads the kernel's write position: [`Ring::unread`] then goes up to there.
    pub fn look(&mut self) {
        // SAFETY: the first page of the mapping is a perf_event_mmap_page, whose data_head is aligned, and which the
        // kernel writes with one store. Acquire: the records before it are read after it (the page's own comment).
        self.head = unsafe {
            let head = &raw mut (*self.base.as_ptr().cast::<perf_event_mmap_page>()).data_head;
            AtomicU64::from_ptr(head).load(Ordering::Acquire)
        };
    }

    /// The bytes written up to the last `look` and not yet released: two pieces, the second of which is empty unless
    /// the ring's end is between them.
    pub fn unread(&self) -> [&[u8]; 2] {
        // More than the ring holds can't be unread: the kernel stops writing at the tail.
        let unread = usize::try_from(self.head.wrapping_sub(self.tail)).unwrap_or(0).min(self.len);
        let start = (self.tail & (self.len as u64 - 1)) as usize;
        let first = unread.min(self.len - start);
        // SAFETY: both pieces are within the data part of the mapping, which is `len` bytes after the first page.
        // The kernel doesn't write between tail and head, and the tail moves by `&mut self` only.
        unsafe {
            let data = self.base.as_ptr().add(self.page);
            [
                std::slice::from_raw_parts(data.add(start), first),
                std::slice::from_raw_parts(data, unread - first),
            ]
        }
    }

    /// Releases the first `bytes` of the unread bytes to the kernel.
    pub fn release(&mut self, bytes: usize) {
        self.tail = self.tail.wrapping_add(bytes as u64).min(self.head);
        // SAFETY: as for data_head in `look`; only we write data_tail. Release: our reads come before it.
        unsafe {
            let tail = &raw mut (*self.base.as_ptr().cast::<perf_event_mmap_page>()).data_tail;
            AtomicU64::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `map` made, and no slice of it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page + self.len) };
    }
}

//! An allocator for programs that should report that memory is exhausted instead of aborting.
//!
//! Invariant: nothing is allocated between the failure and the end of the process.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator. If an allocation fails, the process exits with status 1 and a message that names the memory limit, if there is one:
/// the default is an abort with a backtrace, which helps nobody.
pub struct Allocator;

// SAFETY: everything is done by `System`, whose results are passed on as they are; a null pointer never is.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `alloc`, which is the same.
        there(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        there(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `realloc`, and `pointer` came from `System`.
        there(unsafe { System.realloc(pointer, layout, size) }, size)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn there(pointer: *mut u8, size: usize) -> *mut u8 {
    if pointer.is_null() {
        end(size);
    }
    pointer
}

#[cold]
fn end(size: usize) -> ! {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is there for the call to write to.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    let mut text = Text { bytes: [0; 256], length: 0 };
    text.add("plumb: out of memory: ");
    text.number(size as u64);
    text.add(" bytes more are not available");
    if limit.rlim_cur == libc::RLIM_INFINITY {
        text.add("; free some, or use a machine with more\n");
    } else {
        text.add(": address space is limited to ");
        text.number(limit.rlim_cur / 1024);
        text.add(" kB (ulimit -v); raise that, or: ulimit -v unlimited\n");
    }
    // SAFETY: the bytes are there, and `_exit` runs nothing that would want memory.
    unsafe {
        libc::write(libc::STDERR_FILENO, text.bytes.as_ptr().cast(), text.length);
        libc::_exit(1)
    }
}

/// A message buffer that needs no allocation.
struct Text {
    bytes: [u8; 256],
    length: usize,
}

impl Text {
    fn add(&mut self, words: &str) {
        for &byte in words.as_bytes() {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = byte;
                self.length += 1;
            }
        }
    }

    fn number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let (mut at, mut rest) = (digits.len(), number);
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        // Digits are valid UTF-8.
        self.add(std::str::from_utf8(&digits[at..]).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn numbers_are_written_without_memory() {
        let mut text = Text { bytes: [0; 256], length: 0 };
        [0, 7, 10, u64::MAX].into_iter().for_each(|number| {
            text.number(number);
            text.add(" ");
        });
        assert_eq!(&text.bytes[..text.length], b"0 7 10 18446744073709551615 ");
        text.add(&"x".repeat(1000));
        assert_eq!(text.length, text.bytes.len());
    }
}

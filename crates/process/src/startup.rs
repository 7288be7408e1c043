//! Facts about this process known only before Rust's runtime starts: it opens `/dev/null` for each of the first three descriptors that is
//! closed, so that later writes there seem to succeed.
//!
//! Invariant: the code that runs this early uses nothing of that runtime.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// The C library calls the function pointers in this section before `main`.
#[used]
// SAFETY: the section holds pointers to functions of C, and `look` is one; it takes no arguments, and C may pass more.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: it reads a flag of a descriptor, and touches no memory.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    STDOUT_WAS_CLOSED.store(flags < 0, Ordering::Relaxed);
}

/// Whether this process was started without a standard output (`>&-`).
pub fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

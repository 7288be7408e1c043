//! The running kernel's description of a system call's arguments.
//!
//! Elsewhere: their meaning (syscalls).

use std::fs;

use plumb_capture_perf::Tracefs;
use plumb_syscalls::Signature;

/// Reads the running kernel's description of a call. `bytes`: number of buffer bytes to copy.
pub fn described(tracefs: &Tracefs, name: &str, bytes: u16) -> Option<Signature> {
    let folder = format!("events/syscalls/sys_enter_{}/format", Signature::described_as(name));
    let format = fs::read_to_string(tracefs.path().join(folder)).ok()?;
    Some(Signature::new(name, &format, bytes))
}

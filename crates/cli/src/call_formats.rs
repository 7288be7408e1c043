//! What the running kernel says of the arguments of a system call.
//!
//! Not here: what they mean (syscalls).

use std::fs;

use plumb_capture_perf::Tracefs;
use plumb_syscalls::Signature;

/// What the running kernel says of a call. `bytes`: how much of buffers is to be copied.
pub fn described(tracefs: &Tracefs, name: &str, bytes: u16) -> Option<Signature> {
    let folder = format!("events/syscalls/sys_enter_{}/format", Signature::described_as(name));
    let format = fs::read_to_string(tracefs.path().join(folder)).ok()?;
    Some(Signature::new(name, &format, bytes))
}

//! Facts about the architecture of this machine that matter beside its registers.
//!
//! Elsewhere: registers (`plumb_unwind::LinuxRegisters`), system calls (`plumb_syscalls::Abi`).

use std::fmt;

/// Error: plumb does not observe processes on this architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsupportedMachine;

impl fmt::Display for UnsupportedMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "plumb does not record on {} yet, only on x86_64 and aarch64\
             \n  without:  plumb report, diff, export and serve read recordings that were made elsewhere",
            std::env::consts::ARCH
        )
    }
}

impl std::error::Error for UnsupportedMachine {}

/// Checks that plumb can observe the processes of this machine.
pub fn can_observe() -> Result<(), UnsupportedMachine> {
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) { Ok(()) } else { Err(UnsupportedMachine) }
}

/// The instruction that the kernel puts in place of a probed one: `int3`; `brk #5` (asm/brk-imm.h).
#[cfg(target_arch = "x86_64")]
pub(crate) const PROBE: [u8; 1] = [0xcc];
#[cfg(target_arch = "aarch64")]
pub(crate) const PROBE: [u8; 4] = 0xd420_00a0_u32.to_le_bytes();

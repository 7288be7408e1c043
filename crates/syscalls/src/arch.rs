//! The ABIs of system calls, and constants that differ between architectures, with those of the machine that this is built for.
//!
//! Elsewhere: registers with the number and the arguments of a call (`capture-bpf`: `bpf/arch.h`).

/// The system call ABI of a program, which determines its call numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Abi {
    /// Programs of x86_64.
    X86_64,
    /// 32-bit programs of x86, which x86_64 kernels also run.
    X86,
    /// Programs of aarch64.
    Aarch64,
    /// 32-bit programs of ARM (EABI), which most aarch64 kernels also run.
    Arm,
}

impl Abi {
    /// ABI of the machine's native programs.
    pub const NATIVE: Abi = native::NATIVE;
    /// ABI of the machine's 32-bit programs.
    pub const COMPAT: Abi = native::COMPAT;

    /// Returns the ABI of native programs of a machine, by the name that uname(2) gives.
    pub fn of_machine(name: &str) -> Option<Abi> {
        match name {
            "x86_64" => Some(Abi::X86_64),
            "aarch64" => Some(Abi::Aarch64),
            _ => None,
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod native {
    use super::Abi;

    pub(super) const NATIVE: Abi = Abi::X86_64;
    pub(super) const COMPAT: Abi = Abi::X86;
    pub use libc::{
        MAP_32BIT, PR_GET_SPECULATION_CTRL, PR_SET_SPECULATION_CTRL, PTRACE_GETREGS, PTRACE_SETREGS,
    };
}

#[cfg(target_arch = "aarch64")]
pub(crate) mod native {
    use super::Abi;

    pub(super) const NATIVE: Abi = Abi::Aarch64;
    pub(super) const COMPAT: Abi = Abi::Arm;
    /// The architecture lacks the flag: no value has it.
    pub const MAP_32BIT: i32 = 0;
    /// For 32-bit threads only (arch/arm64/include/asm/ptrace.h, COMPAT_PTRACE_GETREGS).
    pub const PTRACE_GETREGS: u32 = 12;
    pub const PTRACE_SETREGS: u32 = 13;
    /// include/uapi/linux/prctl.h; the crate `libc` lacks them here.
    pub const PR_GET_SPECULATION_CTRL: i32 = 52;
    pub const PR_SET_SPECULATION_CTRL: i32 = 53;
}

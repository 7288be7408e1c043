//! Names of system calls by number, for each ABI.

use std::borrow::Cow;

use syscalls::{aarch64, arm, x86, x86_64};

use crate::Abi;

/// Name of a call, or `None` if it is unknown.
pub fn name(abi: Abi, number: u32) -> Option<&'static str> {
    let number = number as usize;
    match abi {
        Abi::X86_64 => x86_64::Sysno::new(number).map(|call| call.name()),
        Abi::X86 => x86::Sysno::new(number).map(|call| call.name()),
        Abi::Aarch64 => aarch64::Sysno::new(number).map(|call| call.name()),
        Abi::Arm => arm::Sysno::new(number).map(|call| call.name()),
    }
}

/// Display name of a call: its name, or `syscall_NUMBER`.
pub fn named(abi: Abi, number: u32) -> Cow<'static, str> {
    match name(abi, number) {
        Some(name) => name.into(),
        None => format!("syscall_{number}").into(),
    }
}

/// Number of a call, by its name or by the result of [`named`].
pub fn number(abi: Abi, name: &str) -> Option<u32> {
    if let Some(digits) = name.strip_prefix("syscall_") {
        return digits.parse().ok();
    }
    let id = match abi {
        Abi::X86_64 => name.parse::<x86_64::Sysno>().ok()?.id(),
        Abi::X86 => name.parse::<x86::Sysno>().ok()?.id(),
        Abi::Aarch64 => name.parse::<aarch64::Sysno>().ok()?.id(),
        Abi::Arm => name.parse::<arm::Sysno>().ok()?.id(),
    };
    u32::try_from(id).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the C library of this build.
    #[test]
    fn numbers_are_those_of_the_c_library() {
        let truth = [
            (libc::SYS_read, "read"),
            (libc::SYS_getppid, "getppid"),
            (libc::SYS_getdents64, "getdents64"),
            (libc::SYS_rt_sigreturn, "rt_sigreturn"),
            (libc::SYS_clone3, "clone3"),
            (libc::SYS_process_madvise, "process_madvise"),
        ];
        for (id, name) in truth {
            let id = u32::try_from(id).expect("small");
            assert_eq!(super::name(Abi::NATIVE, id), Some(name));
            assert_eq!(number(Abi::NATIVE, name), Some(id));
        }
    }

    #[test]
    fn architectures_number_differently() {
        assert_eq!(number(Abi::Aarch64, "getdents64"), Some(61), "include/uapi/asm-generic/unistd.h");
        assert_eq!(number(Abi::X86_64, "getdents64"), Some(217), "arch/x86/entry/syscalls/syscall_64.tbl");
        assert_eq!(number(Abi::X86, "getdents64"), Some(220), "arch/x86/entry/syscalls/syscall_32.tbl");
        assert_eq!(number(Abi::Arm, "getdents64"), Some(217), "arch/arm/tools/syscall.tbl");
        assert_eq!(number(Abi::Aarch64, "open"), None);
    }

    #[test]
    fn calls_without_a_name_are_called_by_number() {
        assert_eq!(named(Abi::X86_64, 100_000), "syscall_100000");
        assert_eq!(number(Abi::X86_64, "syscall_100000"), Some(100_000));
        assert_eq!(number(Abi::X86_64, "no_such_call"), None);
        assert_eq!(name(Abi::X86_64, u32::MAX), None);
    }
}

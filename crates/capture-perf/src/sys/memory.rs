//! The memory of this process: how much is resident, and giving back what was freed.

#![allow(unsafe_code)]

/// Has the allocator keep little of what is freed: few heaps, and blocks of some size straight from the system, to which they return
/// when they are freed. Otherwise glibc's threshold for these grows with the largest block that was ever freed, and what symbol
/// tables took stays for ever. For a program's beginning, before it has threads.
pub fn return_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        const LARGE: libc::c_int = 256 << 10;
        const TOP: libc::c_int = 1 << 20;
        for (parameter, value) in
            [(libc::M_MMAP_THRESHOLD, LARGE), (libc::M_TRIM_THRESHOLD, TOP), (libc::M_ARENA_MAX, 2)]
        {
            // SAFETY: it takes two numbers and changes nothing but the allocator's own settings.
            unsafe { libc::mallopt(parameter, value) };
        }
    }
}

/// Gives back to the system what the allocator holds free. It takes some milliseconds.
pub fn trim_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number, locks what it looks at, and touches only memory that is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Memory of this process that is resident, and the most that ever was, in bytes: VmRSS and VmHWM in /proc/self/status. `None` if
/// that can't be read.
pub fn resident_memory() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let bytes = |name| {
        let line = status.lines().find_map(|line: &str| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    Some((bytes("VmRSS:")?, bytes("VmHWM:")?))
}

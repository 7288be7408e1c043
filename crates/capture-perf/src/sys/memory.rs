//! The memory of this process: reads its resident size, and returns free or unneeded memory to the system.

#![allow(unsafe_code)]

use plumb_process::{MapLine, parse_maps};

/// Configures the allocator to return freed memory: few heaps, and larger blocks mapped directly, so that freeing
/// unmaps them. Otherwise glibc's threshold for these grows with the largest block ever freed, and the memory of symbol
/// tables is never returned. To be called at the program's start, before there are threads.
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

/// Returns the allocator's free memory to the system. Takes some milliseconds.
pub fn trim_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number, locks what it looks at, and touches only memory that is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Drops the pages of this program's code and constants, many of which only start-up needs. Needed ones come back
/// at the first access, from the page cache.
pub fn release_program() {
    let Ok(maps) = std::fs::read("/proc/self/maps") else { return };
    let here = release_program as *const () as u64;
    let Some(code) = parse_maps(&maps).find(|mapping| (mapping.start..mapping.end).contains(&here)) else {
        return;
    };
    let is_own = |mapping: &MapLine<'_>| mapping.inode != 0 && mapping.inode == code.inode;
    // The linker's relocated data is read-only by now too, and follows the code.
    let is_as_in_file = |mapping: &MapLine<'_>| !mapping.writable && mapping.start <= code.start;
    for mapping in parse_maps(&maps).filter(|mapping| is_own(mapping) && is_as_in_file(mapping)) {
        let length = (mapping.end - mapping.start) as usize;
        // SAFETY: it is a whole mapping of a file, which nobody may write to or has written to: pages that are dropped are read from the file
        // again, with the same bytes.
        unsafe {
            libc::madvise(mapping.start as usize as *mut libc::c_void, length, libc::MADV_DONTNEED);
        }
    }
}

/// Resident memory of this process, and its peak, in bytes: VmRSS and VmHWM in /proc/self/status. `None` if
/// the file can't be read.
pub fn resident_memory() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let bytes = |name| {
        let line = status.lines().find_map(|line: &str| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    Some((bytes("VmRSS:")?, bytes("VmHWM:")?))
}

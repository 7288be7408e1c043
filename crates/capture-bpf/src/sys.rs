//! `bpf(2)` commands that `aya` lacks, and memory shared with a kernel map.
//!
//! Structures: `union bpf_attr` in include/uapi/linux/bpf.h.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_PAGE_FAULTS, PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use perf_event_open_sys::ioctls;

const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP_ELEM: libc::c_long = 1;
const MAP_UPDATE_ELEM: libc::c_long = 2;
const MAP_DELETE_ELEM: libc::c_long = 3;
const RAW_TRACEPOINT_OPEN: libc::c_long = 17;
const MAP_LOOKUP_BATCH: libc::c_long = 24;
const MAP_LOOKUP_AND_DELETE_BATCH: libc::c_long = 25;
const MAP_DELETE_BATCH: libc::c_long = 27;
const LINK_CREATE: libc::c_long = 28;
const ITER_CREATE: libc::c_long = 33;
/// BPF_TRACE_ITER in `enum bpf_attach_type`.
const TRACE_ITER: u32 = 28;

const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_PERF_EVENT_ARRAY: u32 = 4;
/// The map's values can be mapped.
const F_MMAPABLE: u32 = 1 << 10;

/// The fields of `union bpf_attr` for `MAP_CREATE`.
#[repr(C)]
struct Create {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    zero: u32,
}

/// The fields of `union bpf_attr` for `MAP_UPDATE_ELEM`.
#[repr(C)]
struct Update {
    map: u32,
    zero: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The fields of `union bpf_attr` for `MAP_LOOKUP_BATCH`, `MAP_LOOKUP_AND_DELETE_BATCH` and `MAP_DELETE_BATCH`.
#[repr(C)]
struct Batch {
    from: u64,
    to: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    element_flags: u64,
    flags: u64,
}

/// The fields of `union bpf_attr` for `RAW_TRACEPOINT_OPEN`. Kernels before 6.10 know no cookie.
#[repr(C)]
struct AtTracepoint {
    name: u64,
    program: u32,
    zero: u32,
    cookie: u64,
}

/// The fields of `union bpf_attr` for `LINK_CREATE` of a program that is run for each thread.
#[repr(C)]
struct EachTask {
    program: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
    info: u64,
    info_bytes: u32,
    zero: u32,
}

/// `struct task` in `union bpf_iter_link_info`: Linux 6.1 and newer.
#[repr(C)]
struct OfTask {
    tid: u32,
    pid: u32,
    pidfd: u32,
    zero: u32,
}

/// Calls `bpf(2)`.
///
/// # Safety
/// `attr` must be what `command` takes, and its addresses those of memory of the sizes that the map has.
unsafe fn bpf<T>(command: libc::c_long, attr: &mut T) -> io::Result<i32> {
    // SAFETY: the kernel reads and writes no more than the size of `attr`, and what it points at, see above.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attr, size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(i32::try_from(result).unwrap_or(0)) }
}

/// Creates an array map with one value of `size` bytes that can be mapped.
pub(crate) fn create_mappable(size: u32) -> io::Result<OwnedFd> {
    create(MAP_TYPE_ARRAY, size, 1, F_MMAPABLE)
}

/// Creates a map of events for this number of CPUs.
pub(crate) fn create_events(cpus: u32) -> io::Result<OwnedFd> {
    create(MAP_TYPE_PERF_EVENT_ARRAY, 4, cpus, 0)
}

fn create(map_type: u32, value_size: u32, max_entries: u32, flags: u32) -> io::Result<OwnedFd> {
    let mut attr = Create { map_type, key_size: 4, value_size, max_entries, flags, zero: 0 };
    // SAFETY: this is what MAP_CREATE takes, and it contains no addresses.
    let fd = unsafe { bpf(MAP_CREATE, &mut attr) }?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets the element `key` of a map with 4-byte keys and values.
pub(crate) fn update_u32(map: BorrowedFd<'_>, key: u32, value: u32) -> io::Result<()> {
    let address = |word: &u32| (&raw const *word).addr() as u64;
    let map = map.as_raw_fd() as u32;
    let mut attr = Update { map, zero: 0, key: address(&key), value: address(&value), flags: 0 };
    // SAFETY: this is what MAP_UPDATE_ELEM takes; key and value live until after the call, and the kernel reads four
    // bytes of each, as the caller says.
    unsafe { bpf(MAP_UPDATE_ELEM, &mut attr) }.map(drop)
}

/// Whether a map with 4-byte keys and values has an element `key`.
pub(crate) fn has_u32(map: BorrowedFd<'_>, key: u32) -> bool {
    let mut value = 0_u32;
    let mut attr = Update {
        map: map.as_raw_fd() as u32,
        zero: 0,
        key: (&raw const key).addr() as u64,
        value: (&raw mut value).addr() as u64,
        flags: 0,
    };
    // SAFETY: this is what MAP_LOOKUP_ELEM takes; key and value live until after the call, and the kernel reads four bytes of the
    // one and writes four of the other, as the caller says.
    unsafe { bpf(MAP_LOOKUP_ELEM, &mut attr) }.is_ok()
}

/// Removes the element `key` of a map with 4-byte keys.
pub(crate) fn delete(map: BorrowedFd<'_>, key: u32) -> io::Result<()> {
    let mut attr = Update {
        map: map.as_raw_fd() as u32,
        zero: 0,
        key: (&raw const key).addr() as u64,
        value: 0,
        flags: 0,
    };
    // SAFETY: this is what MAP_DELETE_ELEM takes; the key lives until after the call, and the kernel reads four bytes of it.
    unsafe { bpf(MAP_DELETE_ELEM, &mut attr) }.map(drop)
}

/// Attaches a program to a tracepoint for as long as the returned descriptor is open. The program can ask for `number`.
pub(crate) fn attach_to_tracepoint(program: BorrowedFd<'_>, name: &str, number: u64) -> io::Result<OwnedFd> {
    let name = CString::new(name).map_err(|_| io::ErrorKind::InvalidInput)?;
    let address = name.as_ptr().expose_provenance() as u64;
    let mut attr =
        AtTracepoint { name: address, program: program.as_raw_fd() as u32, zero: 0, cookie: number };
    // SAFETY: this is what RAW_TRACEPOINT_OPEN takes; the name ends with a zero, and lives until after the call.
    let fd = unsafe { bpf(RAW_TRACEPOINT_OPEN, &mut attr) }?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Attaches a program to the tracepoint that it was loaded for (by BTF), for as long as the returned descriptor is open.
pub(crate) fn attach(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut attr = AtTracepoint { name: 0, program: program.as_raw_fd() as u32, zero: 0, cookie: 0 };
    // SAFETY: this is what RAW_TRACEPOINT_OPEN takes for such programs, and it contains no address.
    let fd = unsafe { bpf(RAW_TRACEPOINT_OPEN, &mut attr) }?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Runs a program at each page fault of a CPU, for as long as the returned event is open.
pub(crate) fn attach_to_page_faults(program: BorrowedFd<'_>, cpu: u32) -> io::Result<OwnedFd> {
    let cpu = i32::try_from(cpu).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut attr = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        size: size_of::<perf_event_attr>() as u32,
        config: PERF_COUNT_SW_PAGE_FAULTS.into(),
        ..perf_event_attr::default()
    };
    attr.__bindgen_anon_1.sample_period = 1;
    // SAFETY: `attr` is a live, initialised perf_event_attr whose size field says its size; the kernel reads it and writes no more than its
    // size field. All tasks (-1), no group leader (-1).
    let fd =
        unsafe { perf_event_open_sys::perf_event_open(&mut attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC.into()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us, and nobody else owns it.
    let event = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: takes no pointer.
    match unsafe { ioctls::SET_BPF(event.as_raw_fd(), program.as_raw_fd() as _) } {
        0 => Ok(event),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs a loaded program for each thread of a process, given by its pidfd, or of all processes where the kernel is too old for that.
pub(crate) fn each_thread(program: BorrowedFd<'_>, pid: BorrowedFd<'_>) -> io::Result<()> {
    let of = OfTask { tid: 0, pid: 0, pidfd: pid.as_raw_fd() as u32, zero: 0 };
    let link = link_each(program, Some(&of)).or_else(|_| link_each(program, None))?;
    let mut attr = [link.as_raw_fd() as u32, 0];
    // SAFETY: this is what ITER_CREATE takes: a link, and flags; it contains no address.
    let fd = unsafe { bpf(ITER_CREATE, &mut attr) }?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else owns it.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    // The program writes no output.
    file.read_to_end(&mut Vec::new()).map(drop)
}

fn link_each(program: BorrowedFd<'_>, of: Option<&OfTask>) -> io::Result<OwnedFd> {
    let mut attr = EachTask {
        program: program.as_raw_fd() as u32,
        target: 0,
        attach_type: TRACE_ITER,
        flags: 0,
        info: of.map_or(0, |of| (&raw const *of).expose_provenance() as u64),
        info_bytes: of.map_or(0, |of| size_of_val(of) as u32),
        zero: 0,
    };
    // SAFETY: this is what LINK_CREATE takes; `of` lives until after the call, and the kernel reads no more than its size of it.
    let fd = unsafe { bpf(LINK_CREATE, &mut attr) }?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Takes elements out of a hash map with keys and values of the sizes of `K` and `V`: at most as many as fit in `keys` and
/// `values`. Returns their number, and whether there may be more. `position`: where to continue.
pub(crate) fn take<K: aya::Pod, V: aya::Pod>(
    map: BorrowedFd<'_>,
    position: &mut Option<u64>,
    keys: &mut [K],
    values: &mut [V],
) -> io::Result<(usize, bool)> {
    read_batch(MAP_LOOKUP_AND_DELETE_BATCH, map, position, keys, values)
}

/// As [`take`], without removing them.
pub(crate) fn look<K: aya::Pod, V: aya::Pod>(
    map: BorrowedFd<'_>,
    position: &mut Option<u64>,
    keys: &mut [K],
    values: &mut [V],
) -> io::Result<(usize, bool)> {
    read_batch(MAP_LOOKUP_BATCH, map, position, keys, values)
}

fn read_batch<K: aya::Pod, V: aya::Pod>(
    command: libc::c_long,
    map: BorrowedFd<'_>,
    position: &mut Option<u64>,
    keys: &mut [K],
    values: &mut [V],
) -> io::Result<(usize, bool)> {
    let from = position.unwrap_or(0);
    let mut to = 0_u64;
    let room = keys.len().min(values.len());
    let mut attr = Batch {
        from: if position.is_some() { (&raw const from).addr() as u64 } else { 0 },
        to: (&raw mut to).expose_provenance() as u64,
        keys: keys.as_mut_ptr().expose_provenance() as u64,
        values: values.as_mut_ptr().expose_provenance() as u64,
        count: u32::try_from(room).unwrap_or(u32::MAX),
        map: map.as_raw_fd() as u32,
        element_flags: 0,
        flags: 0,
    };
    // SAFETY: this is what both commands take; the kernel writes no more than `count` keys and values, for which there is room, and any
    // bytes are values of plain types; a position is a number of four bytes.
    let result = unsafe { bpf(command, &mut attr) };
    let taken = (attr.count as usize).min(room);
    match result {
        Ok(_) => {
            *position = Some(to);
            Ok((taken, true))
        }
        // The end of the map was reached.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok((taken, false)),
        Err(error) => Err(error),
    }
}

/// Removes elements of a hash map with keys of the size of `K`. Missing ones are skipped.
pub(crate) fn delete_all<K: aya::Pod>(map: BorrowedFd<'_>, mut keys: &[K]) -> io::Result<()> {
    while !keys.is_empty() {
        let mut attr = Batch {
            from: 0,
            to: 0,
            keys: keys.as_ptr().expose_provenance() as u64,
            values: 0,
            count: u32::try_from(keys.len()).unwrap_or(u32::MAX),
            map: map.as_raw_fd() as u32,
            element_flags: 0,
            flags: 0,
        };
        // SAFETY: this is what MAP_DELETE_BATCH takes; the kernel reads no more than `count` keys, which live until after the call.
        let result = unsafe { bpf(MAP_DELETE_BATCH, &mut attr) };
        let mut done = attr.count as usize;
        match result {
            Ok(_) => {}
            // The kernel stopped at a missing key.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => done += 1,
            Err(error) => return Err(error),
        }
        keys = keys.get(done.max(1)..).unwrap_or_default();
    }
    Ok(())
}

/// Copies `bytes` to offset `at` of the values of an array map (BPF_F_MMAPABLE) of `len` bytes. Fails if they do not fit.
///
/// The pages are mapped only for the copy: mapped pages would count a second time, as memory of this process.
pub(crate) fn write_mappable(map: BorrowedFd<'_>, len: usize, at: usize, bytes: &[u8]) -> io::Result<()> {
    if at.checked_add(bytes.len()).is_none_or(|end| end > len) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let before = at % plumb_process::usage::page_size();
    let window = before + bytes.len();
    let offset = libc::off_t::try_from(at - before).map_err(io::Error::other)?;
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
    let base = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), window, protection, libc::MAP_SHARED, map.as_raw_fd(), offset)
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is ours to write and has room for `before` and all of `bytes`, which is other memory. Programs may read it
    // meanwhile: they check every place that they read from it, and are told of it only afterwards. Nothing refers to the mapping when it goes.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), base.cast::<u8>().add(before), bytes.len());
        libc::munmap(base, window);
    }
    Ok(())
}

//! The functions of `include/plumb_sampler.h`. They return 0 or a count, or a negative `errno`.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::stacks::{Stacks, cut};
use crate::{Clock, Error, Options, Stack};

/// `struct plumb_sampler_options`: 0 selects the default in every field but `size`.
#[repr(C)]
pub struct COptions {
    size: u32,
    frequency_hz: u32,
    signal: i32,
    clock: u32,
    ring_words: u32,
    max_frames: u32,
}

/// `struct plumb_sampler_stack`.
#[repr(C)]
pub struct CStack {
    tid: i32,
    weight: u32,
    complete: i32,
    count: u32,
    pcs: *const u64,
}

/// `struct plumb_sampler_statistics`.
#[repr(C)]
pub struct CStatistics {
    signals: u64,
    dropped: u64,
    ticks: u64,
    threads: u64,
}

fn code(result: impl FnOnce() -> Result<i64, Error>) -> i64 {
    match catch_unwind(AssertUnwindSafe(result)) {
        Ok(Ok(count)) => count,
        Ok(Err(error)) => error.code().into(),
        Err(_) => (-libc::EIO).into(),
    }
}

/// # Safety
/// `options` is null or points to as many bytes as its first field says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plumb_sampler_start(options: *const COptions) -> i32 {
    let mut wanted = Options::default();
    // SAFETY: guaranteed by the caller. A smaller structure would belong to an older version of the header, and there is none.
    if let Some(given) = unsafe { options.as_ref() } {
        if (given.size as usize) < size_of::<COptions>() {
            return -libc::EINVAL;
        }
        let or = |given: u32, default: usize| if given == 0 { default } else { given as usize };
        wanted = Options {
            frequency_hz: if given.frequency_hz == 0 { wanted.frequency_hz } else { given.frequency_hz },
            signal: (given.signal != 0).then_some(given.signal),
            clock: match given.clock {
                1 => Clock::Perf,
                2 => Clock::Posix,
                _ => Clock::Best,
            },
            ring_words: or(given.ring_words, wanted.ring_words),
            max_frames: or(given.max_frames, wanted.max_frames),
        };
    }
    code(|| crate::start(wanted).map(|()| 0)) as i32
}

/// See [`crate::register_thread`].
#[unsafe(no_mangle)]
pub extern "C" fn plumb_sampler_register_thread() -> i32 {
    code(|| crate::register_thread().map(|()| 0)) as i32
}

/// See [`crate::unregister_thread`].
#[unsafe(no_mangle)]
pub extern "C" fn plumb_sampler_unregister_thread() {
    crate::unregister_thread();
}

/// See [`crate::refresh`].
#[unsafe(no_mangle)]
pub extern "C" fn plumb_sampler_refresh() -> i32 {
    code(|| crate::refresh().map(|()| 0)) as i32
}

/// See [`crate::drain`].
///
/// # Safety
/// `each` can be called with `data` and a stack that lives as long as the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plumb_sampler_drain(
    each: extern "C" fn(data: *mut c_void, stack: *const CStack),
    data: *mut c_void,
) -> i64 {
    let mut pcs = Vec::new();
    code(|| {
        let count = crate::drain(|tid, stack: &Stack| {
            pcs.clear();
            pcs.extend(stack.frames.iter().map(|frame| frame.pc.wrapping_sub(frame.is_return.into())));
            each(
                data,
                &CStack {
                    tid,
                    weight: stack.weight,
                    complete: cut(stack.end).is_none().into(),
                    count: pcs.len() as u32,
                    pcs: pcs.as_ptr(),
                },
            );
        })?;
        Ok(count.cast_signed())
    })
}

/// Drains the queues and writes folded stacks to a descriptor. Returns the number of samples.
#[unsafe(no_mangle)]
pub extern "C" fn plumb_sampler_write_folded(fd: i32) -> i64 {
    write(fd, |stacks, file| stacks.write_folded(file))
}

/// Drains the queues and writes addresses and mappings to a descriptor. Returns the number of samples.
#[unsafe(no_mangle)]
pub extern "C" fn plumb_sampler_write_addresses(fd: i32) -> i64 {
    write(fd, |stacks, file| stacks.write_addresses(file))
}

fn write(fd: i32, how: impl FnOnce(&Stacks, &mut dyn std::io::Write) -> std::io::Result<()>) -> i64 {
    code(|| {
        let mut stacks = Stacks::default();
        let count = crate::drain(|tid, stack| stacks.add(tid, stack))?;
        // SAFETY: the descriptor belongs to the caller, who keeps it: it is not closed here.
        let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        let mut text = Vec::new();
        let failed = |error| Error::System { what: "writing stacks", error };
        how(&stacks, &mut text).map_err(failed)?;
        std::io::Write::write_all(&mut *file, &text).map_err(failed)?;
        Ok(count.cast_signed())
    })
}

/// See [`crate::statistics`].
///
/// # Safety
/// `out` points to memory for the statistics.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plumb_sampler_statistics(out: *mut CStatistics) -> i32 {
    code(|| {
        let found = crate::statistics()?;
        let crate::Statistics { signals, dropped, ticks, threads } = found;
        // SAFETY: guaranteed by the caller.
        unsafe { out.write(CStatistics { signals, dropped, ticks, threads: threads as u64 }) };
        Ok(0)
    }) as i32
}

/// See [`crate::stop`].
#[unsafe(no_mangle)]
pub extern "C" fn plumb_sampler_stop() -> i32 {
    code(|| crate::stop().map(|()| 0)) as i32
}

//! Starts a program in a chosen way and waits for it; measures the time.
//!
//! std starts programs as it sees fit, and `nix` has `fork` (as unsafe as libc's) but neither vfork nor a clone with
//! shared memory that can be told from it, so this calls libc itself.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::null;
use std::time::{Duration, Instant};

use plumb_process::usage::{of_rusage, thread_cpu_ns};

/// A way to start a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// fork(2), then execve(2) in the child: the parent's page tables are copied.
    Fork,
    /// The equivalent of vfork(2), then execve(2): the child borrows the parent's memory while the parent waits. It has a stack
    /// of its own, as vfork itself can't be called from Rust: a function that returns twice.
    Vfork,
    /// posix_spawn(3) of the C library.
    PosixSpawn,
}

impl Way {
    /// All ways.
    pub const ALL: [Way; 3] = [Way::Fork, Way::Vfork, Way::PosixSpawn];

    /// Stable name, for people and machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Way::Fork => "fork",
            Way::Vfork => "vfork",
            Way::PosixSpawn => "posix_spawn",
        }
    }
}

/// Time of one start and run of the program.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// Elapsed time until the program was waited for.
    pub wall: Duration,
    /// CPU time of the calling thread and of the child.
    pub cpu: Duration,
}

/// The exit status of a child that could not exec, as shells have it.
const NO_EXEC: c_int = 127;
/// Enough for one system call.
const STACK: usize = 64 << 10;

/// Input of the child's exec.
struct Image {
    path: *const c_char,
    arguments: [*const c_char; 2],
    environment: [*const c_char; 1],
}

/// Starts `program` without arguments and environment and waits until it has exited. An error if it can't be started
/// or does not exit with 0.
pub fn start_and_wait(way: Way, program: &CStr) -> io::Result<Took> {
    let image =
        Image { path: program.as_ptr(), arguments: [program.as_ptr(), null()], environment: [null()] };
    let mut stack: Vec<u128> = Vec::with_capacity(STACK / size_of::<u128>());
    let (clock, cpu) = (Instant::now(), thread_time());
    let pid = match way {
        Way::Fork => fork(&image),
        Way::Vfork => vfork(&image, &mut stack),
        Way::PosixSpawn => posix_spawn(&image),
    }?;
    let (status, child) = wait(pid)?;
    let took = Took { wall: clock.elapsed(), cpu: thread_time().saturating_sub(cpu) + child };
    match status {
        0 => Ok(took),
        _ if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == NO_EXEC => {
            Err(io::Error::new(io::ErrorKind::NotFound, "the program could not be started"))
        }
        _ => Err(io::Error::other(format!("the program failed (wait status {status})"))),
    }
}

/// The child's part: becomes the program, or ends.
extern "C" fn exec(image: *mut c_void) -> c_int {
    // SAFETY: `image` is the caller's `&Image`, whose strings and null-terminated lists are alive: in a copy of the
    // caller's memory after a fork, in that memory itself, where the caller waits, otherwise. Both calls are
    // async-signal-safe.
    unsafe {
        let image = &*image.cast::<Image>();
        libc::execve(image.path, image.arguments.as_ptr(), image.environment.as_ptr());
        libc::_exit(NO_EXEC)
    }
}

fn fork(image: &Image) -> io::Result<libc::pid_t> {
    // SAFETY: the child only calls `exec`, which is async-signal-safe, so threads that it lacks don't matter.
    match unsafe { libc::fork() } {
        0 => {
            exec(std::ptr::from_ref(image).cast_mut().cast());
            unreachable!("exec does not return")
        }
        pid => checked(pid),
    }
}

fn vfork(image: &Image, stack: &mut Vec<u128>) -> io::Result<libc::pid_t> {
    let top = stack.spare_capacity_mut().as_mut_ptr_range().end;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the child runs `exec` on `stack`, which is aligned, large enough for it and used by nobody else. By
    // CLONE_VFORK this thread goes on only once the child has exec'd or ended, so `stack` and `image` outlive its use.
    checked(unsafe { libc::clone(exec, top.cast(), flags, std::ptr::from_ref(image).cast_mut().cast()) })
}

fn posix_spawn(image: &Image) -> io::Result<libc::pid_t> {
    let mut pid = 0;
    // SAFETY: all pointers are to live, terminated strings and lists; no attributes and no file actions are given.
    let error = unsafe {
        libc::posix_spawn(
            &mut pid,
            image.path,
            null(),
            null(),
            image.arguments.as_ptr().cast(),
            image.environment.as_ptr().cast(),
        )
    };
    if error == 0 { Ok(pid) } else { Err(io::Error::from_raw_os_error(error)) }
}

fn checked(pid: libc::pid_t) -> io::Result<libc::pid_t> {
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) }
}

/// Waits for the child; its wait status and CPU time.
fn wait(pid: libc::pid_t) -> io::Result<(c_int, Duration)> {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    loop {
        // SAFETY: both pointers are to live values.
        match checked(unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            // SAFETY: it is filled in, and zeroed was valid already.
            Ok(_) => return Ok((status, of_rusage(unsafe { usage.assume_init_ref() }).total())),
        }
    }
}

/// Processor time of this thread so far.
fn thread_time() -> Duration {
    Duration::from_nanos(thread_cpu_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_starts_a_program_and_waits_for_it() {
        for way in Way::ALL {
            let took = start_and_wait(way, c"/bin/true").unwrap_or_else(|error| panic!("{way:?}: {error}"));
            assert!(!took.cpu.is_zero() && !took.wall.is_zero(), "{way:?}: {took:?}");
            assert!(start_and_wait(way, c"/no/such/program").is_err(), "{way:?}");
            assert!(start_and_wait(way, c"/bin/false").is_err(), "{way:?}");
        }
    }

    #[test]
    fn only_a_fork_pays_for_the_parents_memory() {
        let memory = std::hint::black_box(vec![1_u8; 256 << 20]);
        let median = |way| {
            let mut times: Vec<Duration> =
                (0..7).map(|_| start_and_wait(way, c"/bin/true").unwrap().cpu).collect();
            times.sort();
            times[3]
        };
        let (fork, vfork, spawn) = (median(Way::Fork), median(Way::Vfork), median(Way::PosixSpawn));
        drop(memory);
        if std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
            .is_ok_and(|text| text.contains("[always]"))
        {
            plumb_fixtures::skip(
                plumb_fixtures::Requirement::Kernel,
                "the memory is in huge pages, which cost a fork little",
            );
            return;
        }
        assert!(fork > vfork * 2 && fork > spawn * 2, "{fork:?}, {vfork:?}, {spawn:?} of processor time");
    }
}

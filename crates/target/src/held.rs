//! Starting a child that waits before its exec, and learning of the end of processes.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::thread::JoinHandle;

use plumb_process::parse_maps;
use plumb_process::usage::{CpuTime, Usage};

use crate::signals::Mask;

/// A forked child that has not begun its program yet.
pub struct Held {
    pid: u32,
    go: PipeWriter,
    /// Separate thread, because `Command::spawn` returns only after the exec.
    spawn: JoinHandle<io::Result<()>>,
}

impl Held {
    /// Forks. The child calls itself `name` and waits for [`Held::release`]; should the recorder die first, it
    /// exits. It runs its program with signals blocked and ignored as in `mask`.
    pub fn fork(mut command: Command, name: &str, mask: Mask) -> io::Result<Self> {
        let (mut pid_reader, pid_writer) = io::pipe()?;
        let (go_reader, go) = io::pipe()?;
        let go_in_child = go.as_raw_fd();
        let name = CString::new(name.as_bytes()).unwrap_or_default();
        let wait = move || wait_before_exec(&pid_writer, &go_reader, go_in_child, &name, mask);
        // SAFETY: the closure only makes async-signal-safe system calls and allocates nothing.
        unsafe { command.pre_exec(wait) };
        keep_rings_from_children();
        let spawn =
            std::thread::Builder::new().name("launch".into()).spawn(move || command.spawn().map(drop))?;
        let mut pid = [0; 4];
        if pid_reader.read_exact(&mut pid).is_err() {
            // The pipe ended: there was no fork, and spawn says why.
            drop(go);
            return Err(joined(spawn).err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(Self { pid: u32::from_ne_bytes(pid), go, spawn })
    }

    /// The process ID.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the child continue to its exec. An error is that of the exec; the child has ended then.
    pub fn release(mut self) -> io::Result<Child> {
        self.go.write_all(&[1])?;
        joined(self.spawn).map(|()| Child { pid: self.pid })
    }
}

/// A fork copies the page tables of the rings of programs in the kernel, 160 MiB with some, and the child's exec gives them back: milliseconds
/// that would be the command's.
fn keep_rings_from_children() {
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    for ring in parse_maps(&maps).filter(|mapping| mapping.path == b"anon_inode:bpf-map") {
        // SAFETY: it changes what children get of a mapping, and those exec or exit without looking at it.
        unsafe {
            libc::madvise(ring.start as *mut _, (ring.end - ring.start) as usize, libc::MADV_DONTFORK);
        }
    }
}

fn joined(thread: JoinHandle<io::Result<()>>) -> io::Result<()> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the launching thread panicked")))
}

/// Runs in the child between fork and exec: async-signal-safe calls only.
fn wait_before_exec(
    pid: &PipeWriter,
    go_reader: &PipeReader,
    go_writer: i32,
    name: &CString,
    mask: Mask,
) -> io::Result<()> {
    mask.restore_in_child();
    // SAFETY: `name` is a live, terminated string. The child's copy of the pipe's writing end is closed once, and
    // nobody uses it here; while it is open, the end of the recorder could not be noticed.
    let own = unsafe {
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        libc::close(go_writer);
        libc::getpid()
    };
    (&mut &*pid).write_all(&own.to_ne_bytes())?;
    (&mut &*go_reader).read_exact(&mut [0])
}

/// A child that has begun its program. Not waited for when dropped.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    pid: u32,
}

impl Child {
    /// The process ID.
    pub fn pid(self) -> u32 {
        self.pid
    }

    /// Returns the exit status, and the CPU time of the child and of the descendants that it waited for; `None` while it runs.
    pub fn try_wait(self) -> io::Result<Option<(ExitStatus, CpuTime)>> {
        Ok(self.try_wait_usage()?.map(|(status, usage)| (status, usage.cpu)))
    }

    /// As [`try_wait`](Self::try_wait), with the complete resource usage.
    pub fn try_wait_usage(self) -> io::Result<Option<(ExitStatus, Usage)>> {
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        let pid = i32::try_from(self.pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: both pointers are to live values; zeroed is a valid rusage.
        let (result, usage) = unsafe {
            (libc::wait4(pid, &mut status, libc::WNOHANG, usage.as_mut_ptr()), usage.assume_init())
        };
        match result {
            0 => Ok(None),
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(Some((ExitStatus::from_raw(status), Usage::of(&usage)))),
        }
    }
}

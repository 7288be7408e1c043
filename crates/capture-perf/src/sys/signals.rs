//! Signals as something to poll for: blocked, and read from a `signalfd(2)`.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};

/// What ends or steers a recording.
const WATCHED: [i32; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGCHLD];

/// The signals that were blocked before [`Signals::watch`].
#[derive(Clone, Copy)]
pub(crate) struct Mask(libc::sigset_t);

impl Mask {
    /// Blocks these signals, and no others, in the calling thread. Safe to call between fork and exec.
    pub fn restore(&self) {
        // SAFETY: the set is initialised and lives through the call; the old set isn't asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// A signal that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    /// Its number.
    pub number: i32,
    /// Whether the terminal sent it, and so to the whole foreground process group.
    pub from_terminal: bool,
}

/// The watched signals, which reach nothing else while this lives.
pub(crate) struct Signals {
    file: File,
    before: Mask,
}

impl Signals {
    /// Blocks the signals that steer a recording in this thread (and in those that it will start) and watches for
    /// them.
    pub fn watch() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initialises the set before anything reads it; all signal numbers are valid.
        let fd = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in WATCHED {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
            libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        // SAFETY: pthread_sigmask has filled it in; it only fails for a wrong `how`.
        let before = Mask(unsafe { before.assume_init() });
        if fd < 0 {
            before.restore();
            return Err(io::Error::last_os_error());
        }
        // SAFETY: signalfd has just made this descriptor, and nobody else owns it.
        Ok(Self { file: unsafe { File::from_raw_fd(fd) }, before })
    }

    /// The mask to restore in a child before its exec.
    pub fn before(&self) -> Mask {
        self.before
    }

    /// The next signal that came in, if any.
    pub fn next(&self) -> Option<Signal> {
        let mut bytes = [0u8; size_of::<libc::signalfd_siginfo>()];
        (&self.file).read_exact(&mut bytes).ok()?;
        // SAFETY: signalfd_siginfo is plain integers, for which all bytes are valid; the buffer has its size.
        let info: libc::signalfd_siginfo = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
        Some(Signal { number: info.ssi_signo as i32, from_terminal: info.ssi_code == libc::SI_KERNEL })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // What came in since the last look was meant for the recording: it must not kill the writing of the file.
        while self.next().is_some() {}
        self.before.restore();
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Sends `signal` to the process `pid`.
pub(crate) fn send(pid: u32, signal: i32) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().filter(|&pid| pid > 0).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: takes no pointer.
    if unsafe { libc::kill(pid, signal) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until one of `files` is readable, or an error or end on it, or `timeout_ms` have passed.
/// Returns which are.
pub(crate) fn poll(files: &[BorrowedFd<'_>], timeout_ms: i32) -> io::Result<Vec<bool>> {
    let mut fds: Vec<libc::pollfd> = files
        .iter()
        .map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    // SAFETY: the array is live, and its length is given.
    let result = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout_ms) };
    if result < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted {
            Ok(vec![false; files.len()])
        } else {
            Err(error)
        };
    }
    Ok(fds.iter().map(|fd| fd.revents != 0).collect())
}

//! Signals as something to poll for: blocked, and read from a `signalfd(2)`.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Signals that end or steer a recording.
const WATCHED: [i32; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGCHLD];

/// The signals that were blocked before [`Signals::watch`].
#[derive(Clone, Copy)]
pub struct Mask(libc::sigset_t);

impl Mask {
    /// Blocks these signals, and no others, in the calling thread. Safe to call between fork and exec.
    pub fn restore(&self) {
        // SAFETY: the set is initialised and lives through the call; the old set isn't asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }

    /// As [`restore`](Self::restore), in a child before its exec. The child then also ignores the signals that plumb was started with ignored. Rust's
    /// runtime ignores SIGPIPE, and its `Command` resets it to the default in children.
    pub fn restore_in_child(&self) {
        self.restore();
        for (signal, was_ignored) in
            [(libc::SIGPIPE, &PIPE_WAS_IGNORED), (libc::SIGCHLD, &CHILDREN_WERE_IGNORED)]
        {
            if was_ignored.load(Ordering::Relaxed) {
                // SAFETY: takes no pointer, and is safe to call between fork and exec.
                unsafe { libc::signal(signal, libc::SIG_IGN) };
            }
        }
    }
}

/// Whether this program was started with SIGPIPE ignored, as systemd's services are.
static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);
/// Whether this program was started with SIGCHLD ignored, so that the exit status of children would be lost.
static CHILDREN_WERE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Runs before Rust's runtime, which ignores SIGPIPE regardless of the previous action.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    PIPE_WAS_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    CHILDREN_WERE_IGNORED.store(is_ignored(libc::SIGCHLD), Ordering::Relaxed);
}

/// Whether this process ignores a signal.
fn is_ignored(signal: i32) -> bool {
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is set; the old action is written where there is room for it, and zeroed is a valid one.
    let old = unsafe {
        libc::sigaction(signal, std::ptr::null(), old.as_mut_ptr());
        old.assume_init()
    };
    old.sa_sigaction == libc::SIG_IGN
}

/// A signal that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The signal number.
    pub number: i32,
    /// Whether the terminal sent it, and so to the whole foreground process group.
    pub from_terminal: bool,
    /// Whether it was ignored when the recorder was started.
    pub was_ignored: bool,
}

/// The watched signals, which reach nothing else while this lives.
pub struct Signals {
    file: File,
    before: Mask,
    /// Watched signals that were ignored: the kernel keeps them pending for threads that block them.
    ignored: Vec<i32>,
}

impl Signals {
    /// Blocks the signals that steer a recording in this thread (and in those that it will start) and watches for
    /// them.
    pub fn watch() -> io::Result<Self> {
        let mut signals = Self::of(&WATCHED)?;
        signals.ignored = WATCHED.into_iter().filter(|&signal| is_ignored(signal)).collect();
        if signals.ignored.contains(&libc::SIGCHLD) {
            // SAFETY: takes no pointer; the default for SIGCHLD is to do nothing, and to keep how a child ended.
            unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        }
        Ok(signals)
    }

    /// Watches no signals: for a recording beside another one, which gets them all.
    pub fn none() -> io::Result<Self> {
        Self::of(&[])
    }

    /// Blocks these signals in this thread and watches for them; without any the mask stays as it is.
    fn of(watched: &[i32]) -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initialises the set before anything reads it; all signal numbers are valid; pthread_sigmask fills the old mask in, as it
        // only fails for a wrong `how`.
        let (fd, before) = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for &signal in watched {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
            let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            (fd, Mask(before.assume_init()))
        };
        if fd < 0 {
            let error = io::Error::last_os_error();
            before.restore();
            return Err(error);
        }
        // SAFETY: signalfd has just made this descriptor, and nobody else owns it.
        Ok(Self { file: unsafe { File::from_raw_fd(fd) }, before, ignored: Vec::new() })
    }

    /// The signal state to restore in a child before its exec.
    pub fn before(&self) -> Mask {
        self.before
    }

    /// Returns the next received signal, if any.
    pub fn next(&self) -> Option<Signal> {
        let mut bytes = [0u8; size_of::<libc::signalfd_siginfo>()];
        (&self.file).read_exact(&mut bytes).ok()?;
        // SAFETY: signalfd_siginfo is plain integers, for which all bytes are valid; the buffer has its size.
        let info: libc::signalfd_siginfo = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
        let number = info.ssi_signo as i32;
        let was_ignored = self.ignored.contains(&number);
        Some(Signal { number, from_terminal: info.ssi_code == libc::SI_KERNEL, was_ignored })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Signals received since the last look were meant for the recording: they must not interrupt the writing of the file.
        while self.next().is_some() {}
        self.before.restore();
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Blocks SIGTERM for good in this thread, and in those that it will start: only [`Signals`] sees one from here on, and none that comes
/// after them ends the process.
pub fn block_termination() {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set before anything reads it, and the number is valid; the old mask isn't asked for.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Sends `signal` to the process `pid`.
pub fn send(pid: u32, signal: i32) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().filter(|&pid| pid > 0).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: takes no pointer.
    if unsafe { libc::kill(pid, signal) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until one of `files` is readable, or an error or end on it, or `timeout_ms` have passed.
/// Returns which are.
pub fn poll(files: &[BorrowedFd<'_>], timeout_ms: i32) -> io::Result<Vec<bool>> {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    /// Returns the watched signals that are blocked in this thread.
    fn blocked() -> Vec<i32> {
        let mut mask = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: without a new set the mask is only read, into room for it; all signal numbers are valid.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
            let mask = mask.assume_init();
            WATCHED.into_iter().filter(|&signal| libc::sigismember(&mask, signal) == 1).collect()
        }
    }

    #[test]
    fn signals_are_blocked_while_they_are_watched() {
        let before = blocked();
        let none = Signals::none().unwrap();
        assert_eq!(blocked(), before);
        assert_eq!(none.next(), None);
        drop(none);
        assert_eq!(blocked(), before);
        let watched = Signals::watch().unwrap();
        assert_eq!(blocked(), WATCHED);
        drop(watched);
        assert_eq!(blocked(), before);
    }
}

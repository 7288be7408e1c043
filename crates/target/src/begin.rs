//! The first steps of a recording: check that the target exists, hold its command, find its processes and follow them.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use plumb_process::{is_proc_foreign, pidfd, procfs};

use crate::error::TargetError;
use crate::held::{Child, Held};
use crate::signals::Signals;
use crate::{Launch, Prints, Target};

/// Checks that the processes of a target exist.
pub fn check(target: &Target) -> Result<(), TargetError> {
    let pids = match target {
        Target::Processes(pids) => &pids[..],
        Target::Tree(root) => std::slice::from_ref(root),
        _ => return Ok(()),
    };
    if is_proc_foreign() {
        return Err(TargetError::ForeignProc);
    }
    match pids.iter().find(|&&pid| !procfs::exists(pid)) {
        Some(&pid) => Err(TargetError::NoSuchProcess(pid)),
        None => Ok(()),
    }
}

/// Forks for a command, which waits before its exec.
pub fn hold(launch: &Launch, prints: &Prints, signals: &Signals) -> Result<Held, TargetError> {
    let command = launch.command(prints).map_err(|error| failed(launch, error))?;
    Held::fork(command, &launch.name(), signals.before()).map_err(|error| failed(launch, error))
}

/// Lets the held command continue to its exec.
pub fn release(held: Held, launch: &Launch) -> Result<Child, TargetError> {
    held.release().map_err(|error| failed(launch, error))
}

fn failed(launch: &Launch, error: io::Error) -> TargetError {
    TargetError::Command { name: launch.program.to_string_lossy().into_owned(), error: launch.explain(error) }
}

/// The processes that the recording begins with.
pub fn pids_of(target: &Target, held: Option<&Held>) -> Vec<u32> {
    match (held, target) {
        (Some(held), _) => vec![held.pid()],
        (None, Target::Processes(pids)) => pids.clone(),
        (None, Target::Tree(root)) => procfs::tree(&[*root]),
        (None, _) => Vec::new(),
    }
}

/// Calls `follow` with the pidfd of each of these processes and of their descendants, until no new ones are found.
pub fn follow_all(pids: &[u32], mut follow: impl FnMut(BorrowedFd<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut known = HashSet::new();
    // While processes are listed, one that is not followed yet may fork, so this repeats until none is new.
    loop {
        let new: Vec<u32> = procfs::tree(pids).into_iter().filter(|&pid| known.insert(pid)).collect();
        if new.is_empty() {
            return Ok(());
        }
        for pid in new {
            // A process that has ended since need not be followed.
            let Ok(descriptor) = pidfd(pid) else { continue };
            match follow(descriptor.as_fd()) {
                Err(error) if error.raw_os_error() != Some(libc::ESRCH) => return Err(error),
                _ => {}
            }
        }
    }
}

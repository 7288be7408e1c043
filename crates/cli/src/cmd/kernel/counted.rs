//! Counting of calls in addition to samples.

use anyhow::{Result, anyhow};
use plumb_capture_bpf::{CallFacts, CallSums, LoadError, Per};
use plumb_syscalls::{Abi, named, path_argument, takes_file};

/// Grouping of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Apart {
    /// Threads
    Thread,
    /// Processes
    Process,
    /// Files that a descriptor names; other calls are left out
    File,
}

/// Loads the BPF programs that count calls, grouped by `apart`, and time them if `latency`.
pub(super) fn load(latency: bool, apart: Option<Apart>) -> Result<CallSums> {
    let per = match apart {
        None => Per::Call,
        Some(Apart::Thread) => Per::Thread,
        Some(Apart::Process) => Per::Process,
        Some(Apart::File) => Per::File,
    };
    let facts = |number| {
        let name = named(Abi::NATIVE, number);
        CallFacts { text: path_argument(&name), takes_file: takes_file(&name) }
    };
    CallSums::load(latency, per, facts).map_err(|error| refusal(&error))
}

fn refusal(error: &LoadError) -> anyhow::Error {
    anyhow!(
        "system calls can't be counted: {error}{}\
         \n  without:  plumb kernel shows where processor time went; strace -c counts, and slows the program down",
        error.remedy()
    )
}

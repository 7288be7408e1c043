//! From addresses to functions, inlined calls and source lines: a profile goes in, the same profile with
//! [`Symbols`](plumb_profile::Symbols) comes out.
//!
//! Invariant: a name that can't be trusted is not given. A file that is not the one that was recorded is not used,
//! and everything that is missing has its reason in the [`Summary`].
//!
//! Not here: unwinding, what is shown, and how stacks are counted.

#![forbid(unsafe_code)]

mod debug_file;
mod demangle;
mod dwarf;
mod elf;
mod file;
mod headers;
mod job;
mod mini;
mod options;
mod plt;
mod summary;
mod symbols;
mod symtab;
mod table;
mod work;

pub use options::{Options, Progress};
pub use summary::{DsoSummary, Missing, Summary};

use std::time::Instant;

use plumb_profile::{DsoKind, Profile};

use crate::job::{Answer, Job};

/// Finds for each frame that has no lines yet what it stands for.
///
/// Never fails: what could not be found is said in the summary, file by file, and the frame stays without lines.
/// `progress` is called on this thread, from time to time.
pub fn symbolize(profile: &mut Profile, options: &Options, progress: &mut dyn FnMut(Progress)) -> Summary {
    let start = Instant::now();
    let jobs = job::jobs(profile);
    let mut answers = work::run(jobs, options, progress, |job, _| solve(job, options));
    answers.sort_by_key(|answer| answer.summary.dso);
    let dsos = answers.into_iter().map(|answer| answer.store(profile)).collect();
    profile.meta.symbolized = true;
    Summary { dsos, seconds: start.elapsed().as_secs_f64() }
}

fn solve(job: &Job, options: &Options) -> Answer {
    match job.kind {
        DsoKind::File => file::solve(job, options, &|_| None),
        DsoKind::Vdso | DsoKind::Kernel | DsoKind::KernelModule | DsoKind::Anonymous { .. } => {
            Answer::new(job)
        }
    }
}

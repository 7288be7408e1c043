//! From addresses to functions, inlined calls and source lines: a profile goes in, the same profile with
//! [`Symbols`](plumb_profile::Symbols) comes out.
//!
//! Invariant: a name that can't be trusted is not given. A file that is not the one that was recorded is not used,
//! and everything that is missing has its reason in the [`Summary`].
//!
//! Not here: unwinding, what is shown, and how stacks are counted.

#![forbid(unsafe_code)]

mod debug_file;
mod debuginfod;
mod demangle;
mod dwarf;
mod elf;
mod file;
mod headers;
mod job;
mod kernel;
mod mini;
mod options;
mod perf_map;
mod plt;
mod strings;
mod summary;
mod symbols;
mod symtab;
mod table;
mod vdso;
mod work;

pub use options::{Options, Progress};
pub use summary::{DsoSummary, Missing, Summary};

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plumb_profile::{BuildId, DsoKind, Meta, Profile};

use crate::debuginfod::Debuginfod;
use crate::job::{Answer, Job};
use crate::kernel::Kernel;
use crate::work::Message;

/// Finds for each frame that has no lines yet what it stands for.
///
/// Never fails: what could not be found is said in the summary, file by file, and the frame stays without lines.
/// `progress` is called on this thread, from time to time.
pub fn symbolize(profile: &mut Profile, options: &Options, progress: &mut dyn FnMut(Progress)) -> Summary {
    let start = Instant::now();
    let jobs = job::jobs(profile);
    let mut options = options.clone();
    options.recorded_until = options.recorded_until.or(end_of(&profile.meta));
    let sources = Sources {
        options: &options,
        meta: &profile.meta,
        kernel: Kernel::default(),
        debuginfod: Debuginfod::new(&options),
    };
    let mut answers = work::run(jobs, &options, progress, |job, sender| sources.solve(job, sender));
    answers.sort_by_key(|answer| answer.summary.dso);
    let dsos = answers.into_iter().map(|answer| answer.store(profile)).collect();
    profile.meta.symbolized = true;
    Summary { dsos, seconds: start.elapsed().as_secs_f64() }
}

/// What all files' workers share.
struct Sources<'a> {
    options: &'a Options,
    meta: &'a Meta,
    kernel: Kernel,
    debuginfod: Option<Debuginfod>,
}

impl Sources<'_> {
    fn solve(&self, job: &Job, sender: &Sender<Message>) -> Answer {
        let fetch = |build_id: &BuildId, answer: &mut Answer| {
            self.debuginfod.as_ref().and_then(|servers| servers.fetch(build_id, answer, sender))
        };
        match job.kind {
            DsoKind::File => file::solve(job, self.options, &fetch),
            DsoKind::Vdso => vdso::solve(job, self.options, self.meta),
            DsoKind::Kernel | DsoKind::KernelModule => self.kernel.solve(job, self.options, self.meta),
            DsoKind::Anonymous { pid } => perf_map::solve(job, pid, self.options),
        }
    }
}

/// When the recording ended, if the profile says so.
fn end_of(meta: &Meta) -> Option<SystemTime> {
    let end = meta.start_unix_ns.checked_add(meta.duration_ns)?;
    (meta.start_unix_ns > 0 && meta.duration_ns > 0).then(|| UNIX_EPOCH + Duration::from_nanos(end))
}

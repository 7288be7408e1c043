//! The sources of names, shared by all workers: options, and data read once.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use plumb_profile::{BuildId, DsoKind, Meta};

use crate::debuginfod::Debuginfod;
use crate::file::Images;
use crate::job::{Answer, Job};
use crate::kernel::Kernel;
use crate::options::Options;
use crate::roots::other_root;
use crate::work::Message;
use crate::{perf_map, vdso};

/// Data shared by the workers of all files.
pub(crate) struct Sources {
    /// Options of the symbolization.
    pub options: Options,
    /// Metadata of the profile.
    pub meta: Meta,
    /// The kernel's symbol table.
    pub kernel: Arc<Kernel>,
    /// The debuginfod servers.
    pub debuginfod: Option<Debuginfod>,
}

impl Sources {
    /// Finds the ELF files to resolve a job's frames from.
    pub fn images(&self, job: &Job, answer: &mut Answer, sender: &Sender<Message>) -> Option<Images> {
        let fetch = |build_id: &BuildId, answer: &mut Answer| {
            self.debuginfod.as_ref().and_then(|servers| servers.fetch(build_id, answer, sender))
        };
        if job.kind == DsoKind::Vdso {
            let image = vdso::open(job, &self.options, &self.meta, answer)?;
            return Some(Images::of(image, &self.options, &|_, _| None, answer));
        }
        let roots = self.roots(job);
        if roots.is_empty() {
            return Images::find(job, &self.options, &fetch, answer);
        }
        // The root itself: what is beside the file there.
        let roots = roots.into_iter().flat_map(|root| [root.join("usr/lib/debug"), root]);
        let debug_roots = self.options.debug_roots.iter().cloned().chain(roots).collect();
        Images::find(job, &Options { debug_roots, ..self.options.clone() }, &fetch, answer)
    }

    /// Returns the root directories, other than ours, of processes that had the file mapped: those held open, and those of running processes.
    fn roots(&self, job: &Job) -> Vec<PathBuf> {
        let held = job.roots.iter().map(|root| root.path());
        let others = job.pids.iter().filter(|&&pid| !job.roots.iter().any(|root| root.pid == pid));
        held.chain(others.filter_map(|&pid| other_root(pid, &self.options))).collect()
    }

    /// Names the frames of a job without an ELF file.
    pub fn name(&self, job: &Job, answer: &mut Answer) {
        match job.kind {
            DsoKind::Anonymous { pid } => perf_map::solve(job, pid, &self.options, answer),
            DsoKind::Kernel | DsoKind::KernelModule => {
                self.kernel.solve(job, &self.options, &self.meta, answer)
            }
            // The recorder has already named script frames.
            DsoKind::File | DsoKind::Script | DsoKind::Vdso => {}
        }
    }
}

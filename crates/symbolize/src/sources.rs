//! Where names come from, for all workers: what was asked for, and what is read once and shared.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use plumb_profile::{BuildId, DsoKind, Meta};

use crate::debuginfod::Debuginfod;
use crate::file::Images;
use crate::job::{Answer, Job};
use crate::kernel::Kernel;
use crate::options::Options;
use crate::work::Message;
use crate::{perf_map, vdso};

/// What all files' workers share.
pub(crate) struct Sources {
    /// What was asked for.
    pub options: Options,
    /// What the profile says about its making.
    pub meta: Meta,
    /// The kernel's table.
    pub kernel: Arc<Kernel>,
    /// Servers to ask.
    pub debuginfod: Option<Debuginfod>,
}

impl Sources {
    /// The ELF files to resolve a job's frames from.
    pub fn images(&self, job: &Job, answer: &mut Answer, sender: &Sender<Message>) -> Option<Images> {
        let fetch = |build_id: &BuildId, answer: &mut Answer| {
            self.debuginfod.as_ref().and_then(|servers| servers.fetch(build_id, answer, sender))
        };
        if job.kind == DsoKind::Vdso {
            let image = vdso::open(job, &self.options, &self.meta, answer)?;
            return Some(Images::of(image, &self.options, &|_, _| None, answer));
        }
        Images::find(job, &self.options, &fetch, answer)
    }

    /// Names the frames of a job that has no ELF file.
    pub fn name(&self, job: &Job, answer: &mut Answer) {
        match job.kind {
            DsoKind::Anonymous { pid } => perf_map::solve(job, pid, &self.options, answer),
            DsoKind::Kernel | DsoKind::KernelModule => {
                self.kernel.solve(job, &self.options, &self.meta, answer)
            }
            // The recorder has named those of scripts.
            DsoKind::File | DsoKind::Script | DsoKind::Vdso => {}
        }
    }
}

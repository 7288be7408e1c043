//! Samples of a task that is in the middle of an exec.
//!
//! Between the moment when an exec gives a task its new, empty memory and the moment when it starts the new program,
//! the saved user registers are still those of the old program, whose stack is gone. Such a sample has no user stack
//! by nature: its kernel frames are all there is. Two facts tell it, on either side of the COMM record that an exec
//! writes (`begin_new_exec` in fs/exec.c: `exec_mmap`, then `perf_event_exec` and the new name):
//!
//! - Before the record (tearing down the old memory takes a while): the stack can't be read at all, not its first
//!   byte, and the thread's next sign of life is the exec. Such a sample is kept as cut, and corrected by the record.
//! - After the record: no sample has shown the new program yet, neither in user mode nor with a whole user stack, and
//!   the registers do not lead to a root in the new mappings.

use plumb_profile::{DsoId, StackId, Truncation};

use super::Ingest;
use super::user::Ending;
use super::wire::{self, Stack};

/// A sample that an exec may explain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// Its number.
    pub(super) sample: usize,
    /// Its kernel frames alone.
    pub(super) kernel_only: Option<StackId>,
    /// What it was counted as.
    pub(super) cut: (Truncation, Option<DsoId>),
}

impl Ingest {
    /// Whether the saved user registers of a sample, whose user part ended like this, belong to a program that an
    /// exec has already done away with.
    pub(super) fn is_old_image(&mut self, pid: u32, sample: &wire::Sample<'_>, ending: Ending) -> bool {
        let Some(process) = self.tasks.processes.get_mut(&pid) else { return false };
        if !process.just_exec {
            return false;
        }
        if !sample.in_kernel || ending == Ending::Root {
            process.just_exec = false;
            return false;
        }
        matches!(ending, Ending::Truncation(..))
    }

    /// Whether an exec, if one comes next, explains why the user stack of a sample can't be read.
    pub(super) fn may_be_in_exec(sample: &wire::Sample<'_>) -> bool {
        sample.in_kernel && matches!(sample.stack, Stack::Copied { bytes: [], .. })
    }

    /// An exec came: the samples that waited for it have only kernel frames.
    pub(super) fn settle_pending(&mut self, tid: u32) {
        let Some(thread) = self.tasks.threads.get_mut(&tid) else { return };
        for pending in thread.pending.drain(..) {
            self.profile.samples.set_stack(pending.sample, pending.kernel_only);
            self.statistics.uncut(pending.cut);
        }
    }
}

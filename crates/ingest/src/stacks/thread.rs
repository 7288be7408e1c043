//! What is remembered of one thread's stacks.
//!
//! Some samples are taken of a task that is in the middle of an exec. Between the moment when an exec gives a task its new, empty memory
//! and the moment when it starts the new program, the saved user registers are still those of the old program, whose stack is gone. Such
//! a sample has no user stack by nature: its kernel frames are all there is. Two facts tell it, on either side of the COMM record that
//! an exec writes (`begin_new_exec` in fs/exec.c: `exec_mmap`, then `perf_event_exec` and the new name):
//!
//! - Before the record (tearing down the old memory takes a while): the stack can't be read at all, not its first
//!   byte, and the thread's next sign of life is the exec. Such a sample is kept as cut, and corrected by the record.
//! - After the record: `Process::is_old_image` says.

use plumb_profile::{DsoId, Frame, FrameId, StackId, Truncation};

use super::draft::{Draft, Ending};
use super::intern::LastStack;
use super::stitch::Stitcher;
use crate::output::Output;

/// Stacks of one thread.
#[derive(Debug, Default)]
pub(crate) struct ThreadStacks {
    /// The stack of the last sample.
    pub(crate) last: LastStack,
    /// What is remembered of the stack beyond copies, once one was too short.
    pub(crate) stitcher: Option<Box<Stitcher>>,
    /// Samples since the last one with a readable stack that an exec may explain.
    pending: Vec<Pending>,
    /// When its live stack was read last, see `live`.
    pub(crate) tried_ns: u64,
}

/// A sample that an exec may explain.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// Its number.
    sample: usize,
    /// Its kernel frames alone.
    kernel_only: Option<StackId>,
    /// What it was counted as.
    cut: (Truncation, Option<DsoId>),
}

impl ThreadStacks {
    /// The thread has ended, or its memory is another one: its frames will not come again.
    pub(crate) fn forget_frames(&mut self) {
        self.last = LastStack::default();
        self.stitcher = None;
    }

    /// All stacks and samples so far are taken out of the profile.
    pub(crate) fn forget_samples(&mut self) {
        self.last = LastStack::default();
        self.pending.clear();
    }

    /// Counts how the thread's next stack ended and puts it into the profile. `may_be_in_exec`: an exec, if one comes next, explains
    /// why the user stack can't be read.
    pub(crate) fn finish(
        &mut self,
        out: &mut Output,
        draft: &mut Draft,
        ending: Ending,
        may_be_in_exec: bool,
    ) -> Option<StackId> {
        let Output { profile, statistics } = out;
        statistics.samples += 1;
        let Ending::Truncation(cut, blamed) = ending else {
            statistics.complete += 1;
            if ending == Ending::Root {
                self.pending.clear();
            }
            return self.last.intern(profile, &draft.leaf_first, draft.base, draft.kept);
        };
        *statistics.cut.entry((cut, blamed)).or_default() += 1;
        let marker = profile.frames.add(Frame::marker(cut, blamed));
        if may_be_in_exec {
            let kernel_only = profile.add_stack(&draft.leaf_first[..draft.kernel_frames]);
            let sample = profile.samples.len();
            self.pending.push(Pending { sample, kernel_only, cut: (cut, blamed) });
        } else {
            self.pending.clear();
        }
        draft.leaf_first.push(marker);
        self.last.intern(profile, &draft.leaf_first, draft.base, 0)
    }

    /// An exec came: the samples that waited for it have only kernel frames.
    pub(crate) fn settle_exec(&mut self, out: &mut Output) {
        for pending in self.pending.drain(..) {
            out.profile.samples.set_stack(pending.sample, pending.kernel_only);
            out.statistics.uncut(pending.cut);
        }
    }

    /// Completes what can be completed of the cut stacks of a thread that ends here, as this thread at least.
    pub(crate) fn settle_cut(&mut self, out: &mut Output) {
        let Some(mut stitcher) = self.stitcher.take() else { return };
        let Output { profile, statistics } = out;
        for (index, outside) in stitcher.settle(profile) {
            let Some(sample) = profile.samples.get(index) else { continue };
            let mut frames: Vec<FrameId> = profile.frames_of(sample.stack).collect();
            // Its outermost frame is the marker that says why it is cut.
            let Some(marker) = frames.pop().map(|marker| profile.frames[marker]) else { continue };
            let Some(cut) = marker.cut() else { continue };
            let add = |caller, &frame: &FrameId| Some(profile.stacks.add(caller, frame));
            let stack = frames.iter().rev().fold(outside, add);
            profile.samples.set_stack(index, stack);
            statistics.uncut((cut, marker.dso));
            statistics.stitched += 1;
        }
    }
}

//! State of one thread's stacks.
//!
//! Some samples are taken of a task in the middle of an exec. Between the moment when an exec gives a task its new, empty memory
//! and the moment when it starts the new program, the saved user registers are still those of the old program, whose stack is gone. Such
//! a sample has no user stack by nature: it has only kernel frames. Two signs reveal it, on either side of the COMM record that
//! an exec writes (`begin_new_exec` in fs/exec.c: `exec_mmap`, then `perf_event_exec` and the new name):
//!
//! - Before the record (tearing down the old memory takes a while): the stack can't be read at all, not even its first
//!   byte, and the thread's next event is the exec. Such a sample is kept as truncated, and corrected at the record.
//! - After the record: see `Process::is_old_image`.

use plumb_profile::{DsoId, Frame, FrameId, StackId, Truncation};
use plumb_unwind::{End, Walked};

use super::draft::{Draft, Ending};
use super::intern::LastStack;
use super::stitch::{Beyond, Border, Frames, Stitcher};
use crate::output::Output;

/// Time between attempts to read a live stack. None is needed while the stack beyond a border was seen recently.
const PAUSE_NS: u64 = 20_000_000;
/// Stacks of one thread.
#[derive(Debug, Default)]
pub(crate) struct ThreadStacks {
    /// The stack of the last sample.
    pub(crate) last: LastStack,
    /// The stitcher, created once a copy was too short.
    pub(crate) stitcher: Option<Box<Stitcher>>,
    /// Samples since the last one with a readable stack that an exec may explain.
    pending: Vec<Pending>,
    /// Time of the last attempt to read its live stack, see `live`.
    tried_ns: u64,
}

/// A sample that an exec may explain.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// Index of the sample.
    sample: usize,
    /// The stack of its kernel frames.
    kernel_only: Option<StackId>,
    /// The reason it was counted under.
    cut: (Truncation, Option<DsoId>),
}

impl ThreadStacks {
    /// Forgets frames: the thread has ended, or has new memory, and they will not recur.
    pub(crate) fn forget_frames(&mut self) {
        self.last = LastStack::default();
        self.stitcher = None;
    }

    /// Forgets samples: all stacks and samples so far are taken out of the profile.
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

    /// Handles an exec: the samples that waited for it have only kernel frames.
    pub(crate) fn settle_exec(&mut self, out: &mut Output) {
        for pending in self.pending.drain(..) {
            out.profile.samples.set_stack(pending.sample, pending.kernel_only);
            out.statistics.uncut(pending.cut);
        }
    }

    /// Passes the next sample to the stitcher, which is created with the first stack that is too deep for its copy.
    pub(crate) fn begin_stitching(&mut self, now_ns: u64, end: End, is_live: bool) {
        if end == End::BeyondCopy {
            self.stitcher.get_or_insert_default();
        }
        self.stitcher.iter_mut().for_each(|stitcher| stitcher.begin(now_ns, is_live));
    }

    /// Whether the stitcher knows no callers beyond the unwound stack, or none seen recently.
    pub(crate) fn is_cut_for_good(&mut self, walked: &[Walked]) -> bool {
        self.stitcher.as_mut().is_some_and(|stitcher| !stitcher.knows_beyond(walked))
    }

    /// Passes the unwound stack of sample number `index` to the stitcher, if there is one. Returns `Some` if callers of it are known.
    pub(crate) fn stitch(
        &mut self,
        frames: &mut impl Frames,
        index: usize,
        walked: &[Walked],
        border: Border,
    ) -> Option<Beyond> {
        self.stitcher.as_mut()?.sample(frames, index, walked, border)
    }

    /// Whether the last attempt to read its live stack is long enough ago; if so, this is the next one.
    pub(crate) fn may_read_live(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns.saturating_sub(self.tried_ns) >= PAUSE_NS;
        if is_due {
            self.tried_ns = now_ns;
        }
        is_due
    }

    /// Completes the truncated stacks of a thread that ends here, as far as possible.
    pub(crate) fn settle_cut(&mut self, out: &mut Output) {
        let Some(mut stitcher) = self.stitcher.take() else { return };
        let Output { profile, statistics } = out;
        for (index, outside) in stitcher.settle(profile) {
            let Some(sample) = profile.samples.get(index) else { continue };
            let mut frames: Vec<FrameId> = profile.frames_of(sample.stack).collect();
            // The outermost frame is the marker with the reason of the truncation.
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

//! What lies beyond a copy that was too short, from earlier samples of the same thread.
//!
//! The kernel copies at most 64 KiB of a stack. Of a deeper one, frames further out were seen at other times, when
//! the stack was shallower. What is remembered is, for every run of [`WINDOW`] successive frames (return addresses
//! *and* the stack addresses that hold them), which frame came next, towards the root. The outermost frames of a cut
//! stack are such a run; from there the remembered callers are followed, run by run, to the root.
//!
//! **What this proves and what not.** The words of a run are the same, at the same addresses, as when its caller was
//! seen. If these frames were never left in between, everything outside of them is unchanged: that much is certain.
//! But they may have returned and been called again, with the same words in the same places, from elsewhere. Such a
//! thing shows when the shallower part of the new stack is sampled: a run is then seen with another caller. From
//! then on the run proves nothing and the stack stays cut, until the new caller has been seen [`RESTORED`] times on
//! end without the old one. What has never been seen to differ is taken to be the same; frames that come this way
//! are marked as stitched.
//!
//! Remembering costs one comparison for each frame of a sample, and starts with a thread's first cut stack.

use plumb_profile::{Found, Frame, FrameId, Profile, StackId};
use plumb_unwind::Walked;
use rustc_hash::FxHashMap;

/// Frames that have to agree.
pub(super) const WINDOW: usize = 8;
/// How often in succession a changed caller has to be seen until it is believed.
const RESTORED: u16 = 16;
/// Runs remembered for a thread. When there are more, all are forgotten.
const MAX_RUNS: usize = 1 << 16;
/// Frames added to a stack at most.
const MAX_STITCHED: usize = 1 << 15;
/// Borders between what was seen and what is stitched are moved inwards to a multiple of so many bytes (as a power
/// of two). The frames between are in the copy and in memory alike; without this, a recursion would give a new stack
/// for each depth at which a copy may happen to end.
const BORDER_BITS: u32 = 14;

/// Why the walk of a stack ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Border {
    /// At its root.
    Root,
    /// At the end of the copy.
    Copy,
}

/// What was found beyond a border.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beyond {
    /// The stack of all frames outside. `None` if there are none: the copy ended at the root itself.
    pub(super) stack: Option<StackId>,
    /// How many of the outermost frames of the copy are part of `stack`.
    pub(super) included: usize,
}

/// What comes outside of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outer {
    /// Not seen yet.
    Unknown,
    /// Nothing: the run ends with the root.
    Root,
    /// This frame, and the run that begins one frame further out.
    Caller(FrameId, u32),
}

/// A run of frames.
#[derive(Clone, Copy, Debug)]
struct Run {
    hash: u64,
    outer: Outer,
    /// The run that was seen last with this one as its outer one: where to look first.
    inner: u32,
    /// How often in succession `outer` was seen.
    seen: u16,
    /// Whether another `outer` was ever seen.
    changed: bool,
    /// In this epoch...
    epoch: u32,
    /// ... the stack of all frames outside was this.
    outside: Option<StackId>,
}

/// What is remembered of a thread's stack.
#[derive(Debug, Default)]
pub(super) struct Stitcher {
    runs: Vec<Run>,
    by_hash: FxHashMap<u64, u32>,
    /// Runs of the stack at hand, the outermost first.
    hashes: Vec<u64>,
    mixes: Vec<u64>,
    path: Vec<(u32, FrameId)>,
    /// Counts changed minds: whatever was derived from remembered callers before is void.
    epoch: u32,
}

impl Stitcher {
    /// Learns from a stack, `walked` and `frames` from the innermost frame outwards. If it was cut and what is
    /// missing is remembered, says what it is.
    pub(super) fn sample(
        &mut self,
        profile: &mut Profile,
        walked: &[Walked],
        frames: &[FrameId],
        border: Border,
    ) -> Option<Beyond> {
        if self.runs.len() + walked.len() > MAX_RUNS {
            self.runs.clear();
            self.by_hash.clear();
        }
        // The innermost frame is where the thread is just now, in no stack slot.
        let callers = walked.get(1..).unwrap_or_default();
        self.hash_runs(callers);
        let outermost = self.find(*self.hashes.first()?);
        if border == Border::Root {
            self.observe(outermost, Outer::Root);
        }
        let included = aligned_border(callers).filter(|&included| included < self.hashes.len());
        let (mut run, mut aligned) = (outermost, None);
        for index in 1..self.hashes.len() {
            let inner = self.find_inside(run, self.hashes[index]);
            // Runs are numbered from the root: run 0 ends with the last frame, run `index` ends `index` before it.
            if let Some(&frame) = frames.get(frames.len().wrapping_sub(index)) {
                self.observe(inner, Outer::Caller(frame, run));
            }
            run = inner;
            if included == Some(index) {
                aligned = Some(run);
            }
        }
        if border == Border::Root {
            return None;
        }
        let at_aligned = included
            .zip(aligned)
            .and_then(|(included, run)| Some(Beyond { stack: self.outside(profile, run)?, included }));
        at_aligned.or_else(|| Some(Beyond { stack: self.outside(profile, outermost)?, included: 0 }))
    }

    /// Hashes of all runs, the outermost first: a polynomial over the frames, carried along from run to run.
    fn hash_runs(&mut self, callers: &[Walked]) {
        const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
        const LAST: u64 = BASE.wrapping_pow(WINDOW as u32);
        let mix = |frame: &Walked| {
            let slot = frame.slot.0.wrapping_mul(0xd6e8_feb8_6659_fd93);
            let pc = frame.pc.0.wrapping_mul(0xa076_1d64_78bd_642f);
            slot ^ slot >> 32 ^ pc.rotate_left(29)
        };
        self.mixes.clear();
        self.mixes.extend(callers.iter().rev().map(mix));
        self.hashes.clear();
        let Some((first, _)) = self.mixes.split_at_checked(WINDOW) else { return };
        let mut hash = first.iter().fold(0_u64, |hash, &mix| hash.wrapping_mul(BASE).wrapping_add(mix));
        self.hashes.push(hash);
        for (leaving, entering) in self.mixes.iter().zip(&self.mixes[WINDOW..]) {
            hash = hash.wrapping_mul(BASE).wrapping_add(*entering).wrapping_sub(leaving.wrapping_mul(LAST));
            self.hashes.push(hash);
        }
    }

    fn find(&mut self, hash: u64) -> u32 {
        *self.by_hash.entry(hash).or_insert_with(|| {
            let outer = Outer::Unknown;
            self.runs.push(Run {
                hash,
                outer,
                inner: 0,
                seen: 0,
                changed: false,
                epoch: u32::MAX,
                outside: None,
            });
            (self.runs.len() - 1) as u32
        })
    }

    /// [`Stitcher::find`], for a run that is one frame inside of `outer`.
    fn find_inside(&mut self, outer: u32, hash: u64) -> u32 {
        let hint = self.runs[outer as usize].inner;
        if self.runs[hint as usize].hash == hash {
            return hint;
        }
        let found = self.find(hash);
        self.runs[outer as usize].inner = found;
        found
    }

    fn observe(&mut self, run: u32, outer: Outer) {
        let run = &mut self.runs[run as usize];
        if run.outer == outer {
            run.seen = run.seen.saturating_add(1);
            return;
        }
        if run.outer != Outer::Unknown {
            run.changed = true;
            self.epoch = self.epoch.wrapping_add(1);
        }
        (run.outer, run.seen) = (outer, 1);
    }

    /// The stack of what is remembered outside of a run, if that goes up to the root.
    fn outside(&mut self, profile: &mut Profile, mut run: u32) -> Option<Option<StackId>> {
        self.path.clear();
        let mut stack = loop {
            let at = &self.runs[run as usize];
            if at.epoch == self.epoch {
                break at.outside;
            }
            match at.trusted() {
                Outer::Root => break None,
                Outer::Unknown => return None,
                Outer::Caller(frame, outer) => {
                    self.path.push((run, frame));
                    run = outer;
                }
            }
            if self.path.len() > MAX_STITCHED {
                return None;
            }
        };
        while let Some((run, frame)) = self.path.pop() {
            let stitched = profile.frames.add(Frame { found: Found::Stitched, ..profile.frames[frame] });
            stack = Some(profile.stacks.add(stack, stitched));
            let run = &mut self.runs[run as usize];
            (run.epoch, run.outside) = (self.epoch, stack);
        }
        Some(stack)
    }
}

impl Run {
    fn trusted(&self) -> Outer {
        if self.changed && self.seen < RESTORED { Outer::Unknown } else { self.outer }
    }
}

/// How many of the outermost frames lie outside of the first multiple of the alignment inwards of the border.
fn aligned_border(callers: &[Walked]) -> Option<usize> {
    let block = |frame: &Walked| frame.slot.0 >> BORDER_BITS;
    let first = block(callers.last()?);
    callers.iter().rev().position(|frame| block(frame) != first)
}

#[cfg(test)]
#[path = "stitch_tests.rs"]
mod tests;

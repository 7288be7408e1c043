//! What lies beyond a copy that was too short, from other samples of the same thread.
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
//! What was seen *later* serves as well, by the same reasoning: a stack that stays cut is tried again when its thread
//! ends. That matters for the first samples, and for those from before the recorder asked for larger copies.
//!
//! Remembering costs one comparison for each frame of a sample, and starts with a thread's first cut stack.

use plumb_profile::{Found, Frame, FrameId, Profile, StackId};
use plumb_unwind::Walked;
use rustc_hash::FxHashMap;

/// Frames that have to agree.
pub(crate) const WINDOW: usize = 8;
/// How often in succession a changed caller has to be seen until it is believed.
const RESTORED: u16 = 16;
/// Runs remembered for a thread. When there are more, all are forgotten.
const MAX_RUNS: usize = 1 << 16;
/// Cut stacks of a thread that wait for their outer frames to be seen.
const MAX_WAITING: usize = 1 << 14;
/// Frames added to a stack at most.
const MAX_STITCHED: usize = 1 << 15;
/// Borders between what was seen and what is stitched are moved inwards to a multiple of so many bytes (as a power
/// of two). The frames between are in the copy and in memory alike; without this, a recursion would give a new stack
/// for each depth at which a copy may happen to end.
const BORDER_BITS: u32 = 14;

/// Why the walk of a stack ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Border {
    /// At its root.
    Root,
    /// At the end of the copy.
    Copy,
}

/// What is known of a stack, from the root inwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beyond {
    /// The stack of the frames that are known. `None` if there are none.
    pub(crate) stack: Option<StackId>,
    /// How many of the outermost frames of the copy are part of `stack`.
    pub(crate) included: usize,
}

/// Where frames are made.
pub(crate) trait Frames {
    /// The frame of the profile for a frame that was walked.
    fn frame(&mut self, walked: &Walked) -> FrameId;
    /// The profile.
    fn profile(&mut self) -> &mut Profile;
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
    /// In this epoch, within a stack that begins with this one, ...
    base: (u32, Option<StackId>),
    /// ... the stack up to the run's innermost frame was this.
    stack: Option<StackId>,
}

/// No epoch: nothing is known yet.
const NEVER: u32 = u32::MAX;

/// What is remembered of a thread's stack.
#[derive(Debug, Default)]
pub(crate) struct Stitcher {
    runs: Vec<Run>,
    by_hash: FxHashMap<u64, u32>,
    /// Runs of the stack at hand, the outermost first.
    hashes: Vec<u64>,
    mixes: Vec<u64>,
    /// The same as numbers in `runs`.
    at: Vec<u32>,
    path: Vec<(u32, FrameId)>,
    /// Counts changed minds: whatever was derived from remembered callers before is void.
    epoch: u32,
    /// Numbers of samples whose stacks stayed cut, and the outermost runs of those.
    waiting: Vec<(usize, u32)>,
}

impl Stitcher {
    /// Learns from the stack of sample number `index`, given from the innermost frame outwards. Unless it was cut and
    /// what is missing is not remembered, says what its callers are; only those that are new have to be made.
    pub(crate) fn sample(
        &mut self,
        to: &mut impl Frames,
        index: usize,
        walked: &[Walked],
        border: Border,
    ) -> Option<Beyond> {
        if self.runs.len() + walked.len() > MAX_RUNS {
            self.runs.clear();
            self.by_hash.clear();
            self.waiting.clear();
        }
        // The innermost frame is where the thread is just now, in no stack slot.
        let callers = walked.get(1..).unwrap_or_default();
        self.hash_runs(callers);
        self.learn(to, callers, border)?;
        let base = match border {
            Border::Root => Beyond { stack: None, included: 0 },
            Border::Copy => match self.beyond(to.profile(), callers) {
                Some(base) => base,
                None => {
                    let outermost = *self.at.first()?;
                    if self.waiting.len() < MAX_WAITING {
                        self.waiting.push((index, outermost));
                    }
                    return None;
                }
            },
        };
        Some(self.intern(to, callers, base))
    }

    /// Whether what is outside of a cut stack has been seen, at least in part.
    pub(crate) fn knows_beyond(&mut self, walked: &[Walked]) -> bool {
        let outermost = walked.len().checked_sub(WINDOW).filter(|&first| first > 0);
        let Some(first) = outermost else { return true };
        self.hash_runs(&walked[first..]);
        let run = self.hashes.first().and_then(|hash| self.by_hash.get(hash));
        run.is_some_and(|&run| self.runs[run as usize].outer != Outer::Unknown)
    }

    /// The samples whose stacks stayed cut but can be completed now, by what was seen after them: their numbers, and
    /// what is outside of the frames that they have.
    pub(crate) fn settle(&mut self, profile: &mut Profile) -> Vec<(usize, Option<StackId>)> {
        let waiting = std::mem::take(&mut self.waiting);
        let now = |(index, run)| Some((index, self.outside(profile, run)?));
        waiting.into_iter().filter_map(now).collect()
    }

    /// Finds the runs of a stack, and which one is outside of which.
    fn learn(&mut self, to: &mut impl Frames, callers: &[Walked], border: Border) -> Option<()> {
        let mut run = self.find(*self.hashes.first()?);
        if border == Border::Root {
            self.observe(run, Outer::Root);
        }
        self.at.clear();
        self.at.push(run);
        for index in 1..self.hashes.len() {
            let inner = self.find_inside(run, self.hashes[index]);
            match &mut self.runs[inner as usize] {
                Run { outer: Outer::Caller(_, outer), seen, .. } if *outer == run => {
                    *seen = seen.saturating_add(1)
                }
                // Runs are numbered from the root: `index` frames are outside of this one.
                _ => {
                    let frame = to.frame(&callers[callers.len() - index]);
                    self.observe(inner, Outer::Caller(frame, run));
                }
            }
            run = inner;
            self.at.push(run);
        }
        Some(())
    }

    /// What is remembered outside of a cut stack.
    fn beyond(&mut self, profile: &mut Profile, callers: &[Walked]) -> Option<Beyond> {
        if let Some(included) = aligned_border(callers)
            && let Some(&run) = self.at.get(included)
            && let Some(stack) = self.outside(profile, run)
        {
            return Some(Beyond { stack, included });
        }
        Some(Beyond { stack: self.outside(profile, *self.at.first()?)?, included: 0 })
    }

    /// The stack of all callers. Most of it was made before, in the innermost run that is known already.
    fn intern(&mut self, to: &mut impl Frames, callers: &[Walked], base: Beyond) -> Beyond {
        let key = (self.epoch, base.stack);
        let known = self.at.iter().skip(base.included).rposition(|&run| self.runs[run as usize].base == key);
        let mut done = base;
        if let Some(index) = known.map(|index| index + base.included) {
            done = Beyond { stack: self.runs[self.at[index] as usize].stack, included: index + WINDOW };
        }
        for caller in callers.iter().rev().skip(done.included) {
            let frame = to.frame(caller);
            done = Beyond {
                stack: Some(to.profile().stacks.add(done.stack, frame)),
                included: done.included + 1,
            };
            // The run whose innermost frame this is.
            if let Some(&run) = done.included.checked_sub(WINDOW).and_then(|index| self.at.get(index))
                && done.included - WINDOW >= base.included
            {
                let run = &mut self.runs[run as usize];
                (run.base, run.stack) = (key, done.stack);
            }
        }
        done
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
            let (outer, base) = (Outer::Unknown, (NEVER, None));
            let (inner, seen, changed, epoch, outside, stack) = (0, 0, false, NEVER, None, None);
            self.runs.push(Run { hash, outer, inner, seen, changed, epoch, outside, base, stack });
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

//! Completes stacks that were deeper than their copy, from other samples of the same thread.
//!
//! The kernel copies at most 64 KiB of a stack. The outer frames of a deeper one were seen at other times, when
//! the stack was shallower. For every run of [`WINDOW`] successive frames (return addresses
//! *and* the stack addresses that hold them), the next frame towards the root is stored. The outermost frames of a truncated
//! stack are such a run; from there the stored callers are followed, run by run, to the root.
//!
//! **What this proves and what it does not.** The words of a run are the same, at the same addresses, as when its caller was
//! seen. If these frames were never left in between, everything outside of them is unchanged: that much is certain.
//! But they may have returned and been called again from elsewhere, with the same words in the same places. A sample
//! that shows the thread further out reveals that ([`Returns`]): then these frames' callers are unknown until they
//! are seen again, unless they came back before and had the same caller each time. A run that is seen with
//! another caller is no longer evidence, and the stack stays truncated, until the new caller has been seen
//! [`RESTORED`](super::run::RESTORED) times in a row without the old one; a third caller makes that permanent. And observations of a running process
//! older than [`FRESH_NS`] are not trusted, as its memory can be read (`live`). Anything else is assumed unchanged;
//! frames found this way are marked as stitched.
//!
//! *Later* observations serve as well, by the same reasoning: a stack that stays truncated is tried again whenever a complete
//! one is seen. That matters for the first samples, and for those from before the recorder asked for larger copies.
//!
//! The cost is a few comparisons per frame of a sample, starting with a thread's first truncated stack.

use plumb_profile::{Found, Frame, FrameId, Profile, StackId};
use plumb_unwind::Walked;
use rustc_hash::FxHashMap;

use super::returns::Returns;
use super::run::{Outer, Run};

/// Number of frames that have to agree.
pub(crate) const WINDOW: usize = 8;
/// Age in nanoseconds from which an observation is read again if possible, and not trusted if that would have been possible.
const FRESH_NS: u64 = 100_000_000;
/// Most runs stored for a thread. Beyond that, all are dropped.
const MAX_RUNS: usize = 1 << 16;
/// Most truncated stacks of a thread that wait for their outer frames to be seen.
const MAX_WAITING: usize = 1 << 14;
/// Most frames added to a stack.
const MAX_STITCHED: usize = 1 << 15;
/// Borders between copied and stitched frames are moved inwards to a multiple of this many bytes (as a power
/// of two). The frames between are both copied and stored; otherwise a recursion would give a new stack
/// for each depth at which a copy may happen to end.
const BORDER_BITS: u32 = 14;

/// The reason why unwinding a stack ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Border {
    /// At its root.
    Root,
    /// At the end of the copy.
    Copy,
}

/// The known part of a stack, from the root inwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beyond {
    /// The stack of the known frames. `None` if there are none.
    pub(crate) stack: Option<StackId>,
    /// Number of outermost copied frames that are part of `stack`.
    pub(crate) included: usize,
}

/// Makes frames.
pub(crate) trait Frames {
    /// The profile's frame for an unwound frame.
    fn frame(&mut self, walked: &Walked) -> FrameId;
    /// The profile.
    fn profile(&mut self) -> &mut Profile;
}

/// The observed stacks of a thread.
#[derive(Debug, Default)]
pub(crate) struct Stitcher {
    runs: Vec<Run>,
    by_hash: FxHashMap<u64, u32>,
    /// Hashes of the runs of the current stack, outermost first.
    hashes: Vec<u64>,
    mixes: Vec<u64>,
    /// The runs of the current stack, as indices in `runs`.
    at: Vec<u32>,
    path: Vec<(u32, FrameId)>,
    /// Counts changed callers. Each change invalidates results derived from stored callers.
    epoch: u32,
    returns: Returns,
    /// The time of the current sample.
    now_ns: u64,
    /// Whether the process' memory can be read.
    is_live: bool,
    /// The innermost slot of a stored return address that was used in this epoch.
    lowest: Option<u64>,
    /// Whether the last truncated stack stayed so.
    stays_cut: bool,
    /// Samples whose stacks stayed truncated.
    waiting: Vec<Waiting>,
    /// Samples that can be completed now: their indices, and the stack outside of their frames.
    settled: Vec<(usize, Option<StackId>)>,
}

/// A sample whose stack stayed truncated.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    index: usize,
    /// The outermost run of its frames.
    run: u32,
    /// The sample's number among those of its thread.
    number: u32,
}

impl Stitcher {
    /// Starts the next sample, at this time. `is_live`: the process' memory can be read.
    pub(crate) fn begin(&mut self, now_ns: u64, is_live: bool) {
        (self.now_ns, self.is_live) = (now_ns, is_live);
    }

    /// Learns from the stack of the sample with this `index`, given from the innermost frame outwards. Unless the stack was truncated and
    /// its callers are unknown, returns them; only new frames have to be made.
    pub(crate) fn sample(
        &mut self,
        to: &mut impl Frames,
        index: usize,
        walked: &[Walked],
        border: Border,
    ) -> Option<Beyond> {
        // The innermost frame is the program counter, which is in no stack slot.
        let callers = walked.get(1..).unwrap_or_default();
        let innermost = callers.first().map_or(0, |caller| caller.slot.0);
        if !self.returns.sample(innermost) || self.runs.len() + walked.len() > MAX_RUNS {
            self.runs.clear();
            self.by_hash.clear();
            self.waiting.clear();
        }
        if self.lowest.is_some_and(|lowest| innermost > lowest) {
            self.forget_derived();
        }
        self.hash_runs(callers);
        self.learn(to, callers, border)?;
        let base = match border {
            Border::Root => {
                self.settle_waiting(to.profile());
                Beyond { stack: None, included: 0 }
            }
            Border::Copy => match self.beyond(to.profile(), callers) {
                Some(base) => {
                    self.stays_cut = false;
                    base
                }
                None => {
                    self.stays_cut = true;
                    let run = *self.at.first()?;
                    if self.waiting.len() < MAX_WAITING {
                        self.waiting.push(Waiting { index, run, number: self.returns.now() });
                    }
                    return None;
                }
            },
        };
        Some(self.intern(to, callers, base))
    }

    /// Whether the callers of a truncated stack have been seen recently, at least in part.
    pub(crate) fn knows_beyond(&mut self, walked: &[Walked]) -> bool {
        let outermost = walked.len().checked_sub(WINDOW).filter(|&first| first > 0);
        let Some(first) = outermost else { return true };
        self.hash_runs(&walked[first..]);
        let run = self.hashes.first().and_then(|hash| self.by_hash.get(hash));
        run.is_some_and(|&run| {
            let run = &self.runs[run as usize];
            let is_derived = run.epoch == self.epoch;
            let seen_ns = if is_derived { run.oldest_ns } else { run.verified.1 };
            self.is_new(seen_ns) && !self.stays_cut && (is_derived || self.trusted(run) != Outer::Unknown)
        })
    }

    /// The stored caller of a run, if it can still be the same.
    fn trusted(&self, run: &Run) -> Outer {
        match run.always_returns_to_the_same() || self.returns.has_stayed(run.verified.0, run.slot) {
            true => run.trusted(),
            false => Outer::Unknown,
        }
    }

    /// The current sample: its number, and its time.
    fn now(&self) -> (u32, u64) {
        (self.returns.now(), self.now_ns)
    }

    /// Whether an observation at that time is recent enough.
    fn is_new(&self, seen_ns: u64) -> bool {
        !self.is_live || self.now_ns.saturating_sub(seen_ns) < FRESH_NS / 2
    }

    /// Drops results derived from stored callers.
    fn forget_derived(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.lowest = None;
    }

    /// Completes the waiting samples that can be, and gives up those whose frames have returned.
    fn settle_waiting(&mut self, profile: &mut Profile) {
        for waiting in std::mem::take(&mut self.waiting) {
            // A complete stack without the run shows that the run has returned.
            let Run { outer, slot, .. } = self.runs[waiting.run as usize];
            if outer == Outer::Unknown || !self.returns.has_stayed(waiting.number, slot) {
                continue;
            }
            match self.outside(profile, waiting.run) {
                Some(outside) => self.settled.push((waiting.index, outside)),
                None => self.waiting.push(waiting),
            }
        }
    }

    /// The samples whose stacks stayed truncated but can be completed now, by later observations: their indices, and
    /// the stack outside of their frames.
    pub(crate) fn settle(&mut self, profile: &mut Profile) -> Vec<(usize, Option<StackId>)> {
        self.settle_waiting(profile);
        self.waiting.clear();
        std::mem::take(&mut self.settled)
    }

    /// Finds the runs of a stack, and links each to its outer one.
    fn learn(&mut self, to: &mut impl Frames, callers: &[Walked], border: Border) -> Option<()> {
        let mut run = self.find(*self.hashes.first()?);
        let now = self.now();
        if border == Border::Root {
            self.observe(run, Outer::Root, u64::MAX);
        }
        self.at.clear();
        self.at.push(run);
        for index in 1..self.hashes.len() {
            let inner = self.find_inside(run, self.hashes[index]);
            match &mut self.runs[inner as usize] {
                known if known.is_inside(run) => known.verify(now, &self.returns),
                // Runs are numbered from the root: `index` frames are outside of this one.
                _ => {
                    let caller = &callers[callers.len() - index];
                    let frame = to.frame(caller);
                    self.observe(inner, Outer::Caller(frame, run), caller.slot.0);
                }
            }
            run = inner;
            self.at.push(run);
        }
        Some(())
    }

    /// The stored callers of a truncated stack.
    fn beyond(&mut self, profile: &mut Profile, callers: &[Walked]) -> Option<Beyond> {
        if let Some(included) = aligned_border(callers)
            && let Some(&run) = self.at.get(included)
            && let Some(stack) = self.outside(profile, run)
        {
            return Some(Beyond { stack, included });
        }
        Some(Beyond { stack: self.outside(profile, *self.at.first()?)?, included: 0 })
    }

    /// The stack of all callers. Most of it was made before, in the innermost known run.
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
            // The run with this innermost frame.
            if let Some(&run) = done.included.checked_sub(WINDOW).and_then(|index| self.at.get(index))
                && done.included - WINDOW >= base.included
            {
                let run = &mut self.runs[run as usize];
                (run.base, run.stack) = (key, done.stack);
            }
        }
        done
    }

    /// Hashes of all runs, outermost first: a rolling polynomial over the frames.
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
            self.runs.push(Run::new(hash));
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

    fn observe(&mut self, run: u32, outer: Outer, slot: u64) {
        let now = self.now();
        let run = &mut self.runs[run as usize];
        if run.outer == outer {
            return run.verify(now, &self.returns);
        }
        let is_changed = run.outer != Outer::Unknown;
        run.changes = run.changes.saturating_add(is_changed.into());
        (run.outer, run.slot, run.verified, run.has_returned, run.seen) = (outer, slot, now, false, 1);
        if is_changed {
            self.forget_derived();
        }
    }

    /// The stack of a run's stored callers, if they reach the root.
    fn outside(&mut self, profile: &mut Profile, mut run: u32) -> Option<Option<StackId>> {
        self.path.clear();
        let mut oldest_ns = u64::MAX;
        let mut stack = loop {
            let at = &self.runs[run as usize];
            // Older observations may have been renewed since this was derived.
            if at.epoch == self.epoch && self.is_new(at.oldest_ns) {
                oldest_ns = oldest_ns.min(at.oldest_ns);
                break at.outside;
            }
            oldest_ns = oldest_ns.min(at.verified.1);
            match self.trusted(at) {
                Outer::Root => break None,
                Outer::Unknown => return None,
                Outer::Caller(frame, outer) => {
                    self.lowest = Some(self.lowest.map_or(at.slot, |lowest| lowest.min(at.slot)));
                    self.path.push((run, frame));
                    run = outer;
                }
            }
            if self.path.len() > MAX_STITCHED {
                return None;
            }
        };
        if self.is_live && self.now_ns.saturating_sub(oldest_ns) > FRESH_NS {
            return None;
        }
        while let Some((run, frame)) = self.path.pop() {
            let stitched = profile.frames.add(Frame { found: Found::Stitched, ..profile.frames[frame] });
            stack = Some(profile.stacks.add(stack, stitched));
            let run = &mut self.runs[run as usize];
            (run.epoch, run.outside, run.oldest_ns) = (self.epoch, stack, oldest_ns);
        }
        Some(stack)
    }
}

/// Number of outermost frames outside of the first multiple of the alignment inwards of the border.
fn aligned_border(callers: &[Walked]) -> Option<usize> {
    let block = |frame: &Walked| frame.slot.0 >> BORDER_BITS;
    let first = block(callers.last()?);
    callers.iter().rev().position(|frame| block(frame) != first)
}

#[cfg(test)]
#[path = "stitch_tests.rs"]
mod tests;

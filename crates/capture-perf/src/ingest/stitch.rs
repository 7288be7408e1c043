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

use plumb_profile::FrameId;
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

/// Why the walk of a stack ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Border {
    /// At its root.
    Root,
    /// At the end of the copy.
    Copy,
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
}

/// What is remembered of a thread's stack.
#[derive(Debug, Default)]
pub(super) struct Stitcher {
    runs: Vec<Run>,
    by_hash: FxHashMap<u64, u32>,
    hashes: Vec<u64>,
}

impl Stitcher {
    /// Learns from a stack, `walked` and `frames` from the innermost frame outwards. If it was cut and what is
    /// missing is remembered, appends that to `missing`, inner frames first, and returns true.
    pub(super) fn sample(
        &mut self,
        walked: &[Walked],
        frames: &[FrameId],
        border: Border,
        missing: &mut Vec<FrameId>,
    ) -> bool {
        if self.runs.len() + walked.len() > MAX_RUNS {
            self.runs.clear();
            self.by_hash.clear();
        }
        // The innermost frame is where the thread is just now, in no stack slot.
        self.hash_runs(walked.get(1..).unwrap_or_default());
        let Some(&outermost) = self.hashes.first() else { return false };
        let mut run = self.find(outermost);
        if border == Border::Root {
            self.runs[run as usize].observe(Outer::Root);
        }
        let found = border == Border::Copy && self.follow(run, missing);
        for index in 1..self.hashes.len() {
            let hash = self.hashes[index];
            let inner = self.find_inside(run, hash);
            // Runs are numbered from the root: run 0 ends with the last frame, run `index` ends `index` before it.
            if let Some(&frame) = frames.get(frames.len().wrapping_sub(index)) {
                self.runs[inner as usize].observe(Outer::Caller(frame, run));
            }
            run = inner;
        }
        found
    }

    /// Hashes of all runs, the outermost first: a polynomial over the frames, carried along from run to run.
    fn hash_runs(&mut self, walked: &[Walked]) {
        const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
        const LAST: u64 = {
            let (mut power, mut i) = (1_u64, 1);
            while i < WINDOW {
                power = power.wrapping_mul(BASE);
                i += 1;
            }
            power
        };
        let mix = |frame: &Walked| {
            let slot = frame.slot.0.wrapping_mul(0xd6e8_feb8_6659_fd93);
            let pc = frame.pc.0.wrapping_mul(0xa076_1d64_78bd_642f);
            slot ^ slot >> 32 ^ pc.rotate_left(29)
        };
        self.hashes.clear();
        let mut hash = 0_u64;
        for (count, frame) in walked.iter().rev().enumerate() {
            if count >= WINDOW {
                // `walked[len - 1 - (count - WINDOW)]` leaves the run at its outer end.
                let leaving = mix(&walked[walked.len() - 1 - (count - WINDOW)]);
                hash = hash.wrapping_sub(leaving.wrapping_mul(LAST));
            }
            hash = hash.wrapping_mul(BASE).wrapping_add(mix(frame));
            if count + 1 >= WINDOW {
                self.hashes.push(hash);
            }
        }
    }

    fn find(&mut self, hash: u64) -> u32 {
        *self.by_hash.entry(hash).or_insert_with(|| {
            self.runs.push(Run { hash, outer: Outer::Unknown, inner: 0, seen: 0, changed: false });
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

    /// Appends what is remembered outside of a run, up to the root. Appends nothing if that is not reached.
    fn follow(&self, mut run: u32, missing: &mut Vec<FrameId>) -> bool {
        let before = missing.len();
        while missing.len() - before < MAX_STITCHED {
            match self.runs[run as usize].trusted() {
                Outer::Root => return true,
                Outer::Unknown => break,
                Outer::Caller(frame, outer) => {
                    missing.push(frame);
                    run = outer;
                }
            }
        }
        missing.truncate(before);
        false
    }
}

impl Run {
    fn observe(&mut self, outer: Outer) {
        if self.outer == outer {
            self.seen = self.seen.saturating_add(1);
        } else {
            self.changed |= self.outer != Outer::Unknown;
            (self.outer, self.seen) = (outer, 1);
        }
    }

    fn trusted(&self) -> Outer {
        if self.changed && self.seen < RESTORED { Outer::Unknown } else { self.outer }
    }
}

#[cfg(test)]
#[path = "stitch_tests.rs"]
mod tests;

//! A run of successive frames of a thread's stack, and its observed caller. See `stitch` for what that proves.

use plumb_profile::{FrameId, StackId};

use super::returns::Returns;

/// Number of successive observations after which a changed caller is trusted.
pub(super) const RESTORED: u16 = 16;
/// No epoch: nothing is known yet.
const NEVER: u32 = u32::MAX;

/// The caller of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outer {
    /// Not seen yet.
    Unknown,
    /// None: the run ends with the root.
    Root,
    /// This frame, and the run that begins one frame further out.
    Caller(FrameId, u32),
}

/// A run of frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) hash: u64,
    pub(super) outer: Outer,
    /// The run last seen with this one as its outer one: the first guess of a search.
    pub(super) inner: u32,
    /// Stack address of the return address to `outer`.
    pub(super) slot: u64,
    /// The last observation of `outer`: sample number, and time.
    pub(super) verified: (u32, u64),
    /// Whether `outer` was seen again after these frames had returned.
    pub(super) has_returned: bool,
    /// Number of successive observations of `outer`.
    pub(super) seen: u16,
    /// Number of observations of an `outer` that differed from the one before.
    pub(super) changes: u8,
    /// In this epoch...
    pub(super) epoch: u32,
    /// ... the stack of all frames outside was this, ...
    pub(super) outside: Option<StackId>,
    /// ... of which some were seen no later than this.
    pub(super) oldest_ns: u64,
    /// In this epoch, within a stack that begins with this one, ...
    pub(super) base: (u32, Option<StackId>),
    /// ... the stack up to the run's innermost frame was this.
    pub(super) stack: Option<StackId>,
}

impl Run {
    /// A run without a known caller.
    pub(super) fn new(hash: u64) -> Self {
        let (outer, base) = (Outer::Unknown, (NEVER, None));
        let (inner, slot, verified, has_returned, seen, changes) = (0, 0, (0, 0), false, 0, 0);
        let (epoch, outside, oldest_ns, stack) = (NEVER, None, 0, None);
        Self {
            hash,
            outer,
            inner,
            slot,
            verified,
            has_returned,
            seen,
            changes,
            epoch,
            outside,
            oldest_ns,
            base,
            stack,
        }
    }

    /// Whether `run` is the one outside of this one, as far as known.
    pub(super) fn is_inside(&self, run: u32) -> bool {
        matches!(self.outer, Outer::Caller(_, outer) if outer == run)
    }

    /// Notes that the caller was seen again now.
    pub(super) fn verify(&mut self, now: (u32, u64), returns: &Returns) {
        self.has_returned = self.has_returned || !returns.has_stayed(self.verified.0, self.slot);
        self.seen = self.seen.saturating_add(1);
        self.verified = now;
    }

    /// Whether the same frames have come back with the same caller each time: they are assumed to keep doing so.
    pub(super) fn always_returns_to_the_same(&self) -> bool {
        self.has_returned && self.changes == 0
    }

    /// The caller that is trusted, unless these frames have returned. One change is allowed, as a program may move on to another part of its
    /// work; callers that alternate prove nothing.
    pub(super) fn trusted(&self) -> Outer {
        match self.changes {
            0 => self.outer,
            1 if self.seen >= RESTORED => self.outer,
            _ => Outer::Unknown,
        }
    }
}

//! Computes how many outer frames of a thread's stack are unchanged since its last sample, so that frames are
//! translated or stored only once.
//!
//! The result is exact: the walk has just read the return address of every frame again, and a frame counts as kept
//! only if its address, its stack slot and its method are the same as before, from the root inwards without a gap.
//! The check costs two comparisons per frame. Skipping the walk as well could save at most some twenty instructions per
//! frame. It would require comparing all words that the last walk had read (saved frame pointers too), which is no
//! cheaper.
//!
//! Addresses are only comparable while the mappings stay the same: call [`forget`](Last::forget) when they change. A
//! stack that does not reach its root keeps nothing, because the number of frames beyond its end is unknown.

use alloc::vec::Vec;

use crate::frame::{End, Walked};

/// The last stack of a thread.
#[derive(Clone, Debug, Default)]
pub struct Last {
    /// Frames from the root inwards.
    frames: Vec<Walked>,
}

/// Comparison of a stack with the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Number of outermost frames that are unchanged.
    pub kept: usize,
    /// Number of innermost frames that are new.
    pub new: usize,
}

impl Last {
    /// Replaces the last stack by the next one, as [`walk`](fn@crate::walk) yields it, and returns how much of it is
    /// unchanged.
    pub fn next(&mut self, walked: &[Walked], end: End) -> Shared {
        if end != End::Root {
            self.forget();
            return Shared { kept: 0, new: walked.len() };
        }
        let kept = self.frames.iter().zip(walked.iter().rev()).take_while(|(old, new)| old == new).count();
        self.frames.truncate(kept);
        self.frames.extend(walked.iter().rev().skip(kept));
        Shared { kept, new: walked.len() - kept }
    }

    /// Forgets the stack, so the next one keeps nothing.
    pub fn forget(&mut self) {
        self.frames.clear();
    }

    /// Returns the last stack, from the root inwards.
    pub fn frames(&self) -> &[Walked] {
        &self.frames
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::address::Avma;
    use crate::method::Method;

    fn stack(frames: &[(u64, u64)]) -> Vec<Walked> {
        let frame =
            |&(pc, slot)| Walked { pc: Avma(pc), is_return: true, found: Method::Cfi, slot: Avma(slot) };
        frames.iter().map(frame).collect()
    }

    #[test]
    fn frames_are_kept_from_the_root_inwards() {
        let mut last = Last::default();
        let kept = |last: &mut Last, frames: &[(u64, u64)]| last.next(&stack(frames), End::Root).kept;
        assert_eq!(kept(&mut last, &[(5, 0), (4, 8), (3, 16)]), 0);
        assert_eq!(kept(&mut last, &[(9, 0), (4, 8), (3, 16)]), 2);
        assert_eq!(kept(&mut last, &[(7, 0), (6, 4), (4, 8), (3, 16)]), 2);
        assert_eq!(kept(&mut last, &[(4, 8), (3, 16)]), 2);
        assert_eq!(last.next(&stack(&[(4, 8), (3, 16)]), End::Root), Shared { kept: 2, new: 0 });
        assert_eq!(kept(&mut last, &[(4, 0), (3, 16)]), 1, "the same address in another slot");
        assert_eq!(kept(&mut last, &[(4, 0), (2, 16)]), 0, "another address in the same slot");
        assert_eq!(kept(&mut last, &[(4, 0)]), 0, "what was the root has a caller no more");
        let mut signal = stack(&[(4, 0)]);
        signal[0].is_return = false;
        assert_eq!(last.next(&signal, End::Root).kept, 0);
    }

    #[test]
    fn nothing_is_kept_of_a_cut_stack_or_after_forgetting() {
        let (mut last, frames) = (Last::default(), stack(&[(5, 0), (4, 8)]));
        last.next(&frames, End::Root);
        assert_eq!(last.next(&frames, End::BeyondCopy), Shared { kept: 0, new: 2 });
        assert_eq!(last.next(&frames, End::Root).kept, 0);
        last.forget();
        assert_eq!(last.next(&frames, End::Root).kept, 0);
        assert_eq!(last.next(&frames, End::Root).kept, 2);
        assert!(last.frames().iter().rev().eq(&frames));
    }
}

//! How much of a thread's stack is that of its last sample: so that whoever translates or stores frames does it once.
//!
//! What is kept was proven, not guessed: the walk that found the new stack has just read the return address of every
//! frame again, and a frame counts as kept only if its address, the stack slot that holds it and the way that it was found
//! are the same as before, from the root inwards without a gap. That costs two comparisons a frame; walking the frame again
//! costs some twenty instructions at most, which is what skipping the walk too could save. To skip it, all words that the
//! last walk had read (saved frame pointers too) would have to be compared, and that is no cheaper.
//!
//! Addresses mean something only among the same mappings: whoever keeps what was made of frames must
//! [`forget`](Last::forget) when mappings change. A stack that does not reach its root keeps nothing, because nothing says
//! how many frames are beyond.

use alloc::vec::Vec;

use crate::frame::{End, Walked};

/// The last stack of a thread.
#[derive(Clone, Debug, Default)]
pub struct Last {
    /// From the root inwards.
    frames: Vec<Walked>,
}

/// How much of a stack is that of the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// So many of the outermost frames are the same.
    pub kept: usize,
    /// So many of the innermost ones are new.
    pub new: usize,
}

impl Last {
    /// Takes the next stack, as [`walk`](fn@crate::walk) yields it, and says how much of it is that of the last one.
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

    /// Forgets the stack: the next one keeps nothing.
    pub fn forget(&mut self) {
        self.frames.clear();
    }

    /// The stack that was taken last, from the root inwards.
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

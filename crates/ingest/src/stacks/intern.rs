//! Puts stacks into the profile's tree cheaply: most of a sample's stack equals that of the thread's last sample.

use plumb_capture_api::FrameWord;
use plumb_profile::{FrameId, Profile, StackId};
use plumb_unwind::prefix::{Last, Shared};
use plumb_unwind::{End, Walked};

use crate::spaces::SpaceId;

/// The stack of a thread's last sample, from the root, each frame with its node.
#[derive(Debug, Default)]
pub(crate) struct LastStack {
    /// The stack outside of the first of `nodes`.
    base: Option<StackId>,
    nodes: Vec<(FrameId, StackId)>,
    /// The unwound frames from which the first of `nodes` were made, ...
    walked: Last,
    /// ... or the words except the innermost, if the stack was unwound in the kernel, ...
    words: Vec<FrameWord>,
    /// ... with these mappings. `None`: with others.
    made_in: Option<Made>,
    /// Whether `walked` or `words` belongs to the next stack.
    is_ahead: bool,
    /// Number of compared frames, and of equal ones.
    compared: (u32, u32),
}

/// Number of frames of a thread compared before deciding whether it pays.
const TRIED: u32 = 4096;

/// An address space, and its number of mapping changes.
type Made = (SpaceId, u32);

impl LastStack {
    /// Number of outermost frames of the next stack, which was unwound completely, that equal those of the last one, so that
    /// they can be reused.
    pub(crate) fn kept(&mut self, walked: &[Walked], space: SpaceId, changes: u32) -> usize {
        // Below 70% comparing costs more than it saves: ingesting cc1plus (57%) took 2.0% more instructions with it,
        // a script and python (72%) 2.6% less.
        let (all, same) = self.compared;
        if all > TRIED && u64::from(same) * 10 < u64::from(all) * 7 {
            return 0;
        }
        self.expect(space, changes);
        self.words.clear();
        let Shared { kept, new } = self.walked.next(walked, End::Root);
        let count = |so_far: u32, more: usize| so_far.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
        self.compared = (count(all, kept + new), count(same, kept));
        kept
    }

    /// As [`kept`](Self::kept), for a stack that was unwound in the kernel, whose words determine their frames, except for the
    /// innermost, which is made in another way.
    pub(crate) fn kept_words(&mut self, user: &[FrameWord], space: SpaceId, changes: u32) -> usize {
        self.expect(space, changes);
        self.walked.forget();
        let callers = user.get(1..).unwrap_or_default();
        let kept = self.words.iter().zip(callers.iter().rev()).take_while(|(old, new)| old == new).count();
        self.words.truncate(kept);
        self.words.extend(callers[..callers.len() - kept].iter().rev());
        kept
    }

    /// Notes that the next stack is made with these mappings.
    fn expect(&mut self, space: SpaceId, changes: u32) {
        let now = Some((space, changes));
        if self.made_in != now || self.base.is_some() {
            self.walked.forget();
            self.words.clear();
        }
        (self.made_in, self.is_ahead) = (now, true);
    }

    /// Notes that the next stack is not the one passed to [`LastStack::kept`].
    pub(crate) fn forget(&mut self) {
        self.is_ahead = false;
    }

    /// The node of a stack that is given from the innermost frame outwards to the one that `base` called; without
    /// a base, to the root. `None` if it is empty. The outermost `kept` frames are left out: those reported by
    /// [`LastStack::kept`].
    pub(crate) fn intern(
        &mut self,
        profile: &mut Profile,
        leaf_first: &[FrameId],
        base: Option<StackId>,
        kept: usize,
    ) -> Option<StackId> {
        if !std::mem::take(&mut self.is_ahead) {
            self.made_in = None;
        }
        if self.base != base {
            self.base = base;
            self.nodes.clear();
        }
        let same = self
            .nodes
            .iter()
            .skip(kept)
            .zip(leaf_first.iter().rev())
            .take_while(|(node, frame)| node.0 == **frame)
            .count();
        self.nodes.truncate(kept + same);
        let mut caller = self.nodes.last().map(|node| node.1).or(base);
        for &frame in leaf_first.iter().rev().skip(same) {
            let node = profile.stacks.add(caller, frame);
            self.nodes.push((frame, node));
            caller = Some(node);
        }
        caller
    }
}

#[cfg(test)]
mod tests {
    use plumb_profile::{Address, Found, Frame, FrameKind, Truncation};

    use super::*;
    use crate::spaces::Spaces;

    /// A frame for each word, with a different one for the innermost.
    fn frame(profile: &mut Profile, index: usize, word: u64) -> FrameId {
        let found = if index == 0 { Found::Sampled } else { Found::Cfi };
        let address = Address(word);
        profile.frames.add(Frame { kind: FrameKind::User, dso: None, address, is_return: false, found })
    }

    #[test]
    fn what_is_kept_of_words_gives_the_same_nodes() {
        let (mut profile, mut last, mut spaces) =
            (Profile::default(), LastStack::default(), Spaces::default());
        let (one, other) = (spaces.create(1), spaces.create(2));
        let stacks: [(&[u64], SpaceId, u32, usize); 9] = [
            (&[5, 4, 3, 2, 1], one, 0, 0),
            (&[6, 4, 3, 2, 1], one, 0, 4),
            (&[7, 6, 4, 3, 2, 1], one, 0, 4),
            // The innermost is made in another way, even if its word is the same.
            (&[4, 3, 2, 1], one, 0, 3),
            (&[5, 4, 3, 2, 1], one, 0, 3),
            (&[], one, 0, 0),
            (&[5, 4, 3, 2, 1], one, 0, 0),
            (&[5, 4, 3, 2, 1], one, 1, 0),
            (&[5, 4, 3, 2, 1], other, 1, 0),
        ];
        let words = |user: &[u64]| -> Vec<FrameWord> { user.iter().copied().map(FrameWord::new).collect() };
        for (user, space, changes, expected) in stacks {
            let kept = last.kept_words(&words(user), space, changes);
            assert_eq!(kept, expected, "{user:?}");
            let frames: Vec<_> =
                user.iter().enumerate().map(|(index, &word)| frame(&mut profile, index, word)).collect();
            let kernel = frame(&mut profile, 0, u64::MAX);
            let with_kernel: Vec<_> = std::iter::once(kernel).chain(frames).collect();
            let new = &with_kernel[..with_kernel.len() - kept];
            assert_eq!(last.intern(&mut profile, new, None, kept), profile.add_stack(&with_kernel));
        }
        last.kept_words(&words(&[5, 4, 3, 2, 1]), other, 1);
        last.forget();
        last.intern(&mut profile, &[], None, 0);
        assert_eq!(last.kept_words(&words(&[5, 4, 3, 2, 1]), other, 1), 0, "the stack between was another");
    }

    #[test]
    fn gives_the_same_nodes_as_the_plain_way() {
        let mut profile = Profile::default();
        let frames: Vec<_> =
            Truncation::ALL.iter().map(|&cut| profile.frames.add(Frame::marker(cut, None))).collect();
        let mut last = LastStack::default();
        for stack in [&frames[0..4], &frames[1..4], &frames[0..4], &frames[2..6], &[], &frames[0..1]] {
            assert_eq!(last.intern(&mut profile, stack, None, 0), profile.add_stack(stack));
            let base = profile.add_stack(&frames[5..7]);
            let whole: Vec<_> = stack.iter().chain(&frames[5..7]).copied().collect();
            assert_eq!(last.intern(&mut profile, stack, base, 0), profile.add_stack(&whole));
        }
    }
}

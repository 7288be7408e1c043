//! Stitching of made-up stacks.

use plumb_profile::{Address, FrameKind};
use plumb_unwind::{Avma, Method};

use super::super::run::RESTORED;
use super::*;

fn frame(address: u64, found: Found) -> Frame {
    Frame { kind: FrameKind::User, dso: None, address: Address(address), is_return: true, found }
}

/// The innermost `visible` frames of a stack with these return addresses, 32 bytes per frame.
fn stack(root_first: &[u64], visible: usize) -> Vec<Walked> {
    let slot = |depth: usize| Avma(0x7fff_0000 - 32 * depth as u64);
    let callers = root_first.iter().enumerate().rev().take(visible);
    let mut walked = vec![Walked { pc: Avma(1), is_return: false, found: Method::Sampled, slot: Avma(0) }];
    walked.extend(callers.map(|(depth, &pc)| Walked {
        pc: Avma(pc),
        is_return: true,
        found: Method::Cfi,
        slot: slot(depth),
    }));
    walked
}

#[derive(Default)]
struct Tried {
    stitcher: Stitcher,
    profile: Profile,
    count: usize,
}

impl Frames for Profile {
    fn frame(&mut self, walked: &Walked) -> FrameId {
        self.frames.add(frame(walked.pc.0, Found::Cfi))
    }

    fn profile(&mut self) -> &mut Profile {
        self
    }
}

impl Tried {
    fn sample(&mut self, walked: &[Walked], border: Border) -> Option<Beyond> {
        self.count += 1;
        self.stitcher.sample(&mut self.profile, self.count, walked, border)
    }

    /// The frames of a stack from the root inwards.
    fn frames(&self, stack: Option<StackId>) -> Vec<Frame> {
        let mut frames: Vec<Frame> =
            self.profile.frames_of(stack).map(|id| self.profile.frames[id]).collect();
        frames.reverse();
        frames
    }

    fn whole(&mut self, root_first: &[u64]) {
        if let Some(beyond) = self.sample(&stack(root_first, usize::MAX), Border::Root) {
            let got = self.frames(beyond.stack);
            assert!(got.iter().all(|frame| frame.found == Found::Cfi));
            assert_eq!(got.iter().map(|frame| frame.address.0).collect::<Vec<_>>(), root_first);
        }
    }

    /// The stack completed from its innermost `visible` frames, from the root inwards.
    fn cut(&mut self, root_first: &[u64], visible: usize) -> Option<Vec<u64>> {
        let walked = stack(root_first, visible);
        let beyond = self.sample(&walked, Border::Copy)?;
        assert_eq!(beyond.included, visible, "all callers are known");
        let got = self.frames(beyond.stack);
        let stitched = got.iter().take_while(|frame| frame.found == Found::Stitched).count();
        assert!(got[stitched..].iter().all(|frame| frame.found == Found::Cfi));
        assert!((root_first.len() - visible..=root_first.len() - WINDOW).contains(&stitched));
        Some(got.iter().map(|frame| frame.address.0).collect())
    }
}

/// `main`, then a recursion of this depth.
fn recursion(main: u64, depth: usize) -> Vec<u64> {
    std::iter::once(main).chain(std::iter::repeat_n(500, depth)).collect()
}

#[test]
fn missing_frames_are_those_of_the_whole_stack() {
    let mut tried = Tried::default();
    let whole: Vec<u64> = (100..160).collect();
    tried.whole(&whole);
    assert_eq!(tried.cut(&whole, 20).unwrap(), whole);
    assert_eq!(tried.cut(&whole, WINDOW).unwrap(), whole);
    assert_eq!(tried.cut(&whole, WINDOW - 1), None, "too few frames to compare");
}

#[test]
fn nothing_is_known_at_first() {
    let mut tried = Tried::default();
    assert_eq!(tried.cut(&recursion(100, 50), 20), None);
    assert_eq!(tried.cut(&recursion(100, 50), 20), None, "the root was never seen");
}

#[test]
fn deeper_stacks_are_reached_step_by_step() {
    let mut tried = Tried::default();
    tried.whole(&recursion(100, 20));
    assert_eq!(tried.cut(&recursion(100, 60), 20), None, "no overlap with what was seen");
    assert!(tried.cut(&recursion(100, 30), 20).is_some());
    assert!(tried.cut(&recursion(100, 40), 20).is_some());
    assert!(tried.cut(&recursion(100, 50), 20).is_some());
    assert_eq!(tried.cut(&recursion(100, 60), 20).unwrap(), recursion(100, 60));
}

#[test]
fn shallow_stacks_in_between_do_no_harm_unless_they_are_further_out() {
    let mut tried = Tried::default();
    let deep = recursion(100, 60);
    tried.whole(&deep);
    let mut shallow = recursion(100, 45);
    shallow.push(700);
    tried.whole(&shallow);
    assert_eq!(tried.cut(&deep, 20).unwrap(), deep, "what is missing was not left");
    // Now the same words come again in the same places, as far as samples show; their caller is unknown.
    tried.whole(&[100, 701]);
    assert_eq!(tried.cut(&deep, 20), None);
    assert_eq!(tried.cut(&deep, 59).unwrap(), deep, "the outermost function was not left");
    assert_eq!(tried.cut(&deep, 20).unwrap(), deep, "it was seen again");
}

#[test]
fn what_was_seen_long_ago_is_asked_for_again_where_that_is_possible() {
    let mut tried = Tried::default();
    let deep = recursion(100, 60);
    tried.stitcher.begin(0, true);
    tried.whole(&deep);
    tried.stitcher.begin(FRESH_NS / 4, true);
    assert!(tried.stitcher.knows_beyond(&stack(&deep, 20)));
    tried.stitcher.begin(FRESH_NS * 3 / 4, true);
    assert!(!tried.stitcher.knows_beyond(&stack(&deep, 20)), "it is time to ask");
    assert_eq!(tried.cut(&deep, 20).unwrap(), deep, "it is believed for a while");
    tried.stitcher.begin(FRESH_NS * 5 / 4, true);
    assert_eq!(tried.cut(&deep, 20), None);
    // In a recording from elsewhere, the process can't be read.
    tried.stitcher.begin(FRESH_NS * 5 / 4, false);
    assert_eq!(tried.cut(&deep, 20).unwrap(), deep);
}

#[test]
fn other_slots_or_other_words_are_not_taken() {
    let mut tried = Tried::default();
    let whole: Vec<u64> = (100..160).collect();
    tried.whole(&whole);
    // A stack with the same return addresses, one frame further in.
    let moved: Vec<u64> = std::iter::once(99).chain(100..160).collect();
    assert_eq!(tried.cut(&moved, 20), None);
    // One different word among those at the border.
    let mut other = whole.clone();
    other[60 - 20 + 3] = 777;
    assert_eq!(tried.cut(&other, 20), None);
}

#[test]
fn contradiction_ends_trust_until_it_is_outvoted() {
    let mut tried = Tried::default();
    tried.whole(&recursion(100, 60));
    assert_eq!(tried.cut(&recursion(100, 60), 20).unwrap()[0], 100);
    // A recursion of the same function from another caller: a shallow sample shows it, and deep ones can't be distinguished.
    tried.whole(&recursion(101, 20));
    assert_eq!(tried.cut(&recursion(101, 60), 20), None);
    assert_eq!(tried.cut(&recursion(100, 60), 20), None);
    for _ in 0..RESTORED {
        tried.whole(&recursion(101, 20));
    }
    tried.whole(&recursion(101, 60));
    assert_eq!(tried.cut(&recursion(101, 60), 20).unwrap()[0], 101);
    // The callers alternate.
    for _ in 0..2 * RESTORED {
        tried.whole(&recursion(100, 20));
    }
    assert_eq!(tried.cut(&recursion(101, 60), 20), None);
}

#[test]
fn what_is_seen_later_completes_what_was_cut_before() {
    let mut tried = Tried::default();
    let whole: Vec<u64> = (100..160).collect();
    assert_eq!(tried.cut(&whole, 20), None);
    let early = tried.count;
    assert_eq!(tried.cut(&recursion(7, 50), 20), None);
    tried.whole(&whole);
    let settled = tried.stitcher.settle(&mut tried.profile);
    assert_eq!(settled.len(), 1, "the recursion was never seen whole");
    assert_eq!(settled[0].0, early);
    let outside: Vec<u64> = tried.frames(settled[0].1).iter().map(|frame| frame.address.0).collect();
    assert_eq!(outside, whole[..40]);
    assert!(tried.stitcher.settle(&mut tried.profile).is_empty(), "settled once");
}

#[test]
fn borders_are_moved_to_few_places() {
    let mut tried = Tried::default();
    let deep = recursion(100, 2000);
    tried.whole(&deep);
    let before = tried.profile.stacks.len();
    for visible in 700..1400 {
        assert_eq!(tried.cut(&deep, visible).unwrap(), deep);
    }
    let borders = 700 * 32 / (1 << BORDER_BITS) + 2;
    assert!(tried.profile.stacks.len() - before <= (borders + 1) * deep.len());
}

#[test]
fn memory_stays_bounded() {
    let mut tried = Tried::default();
    for round in 0..3 * MAX_RUNS as u64 / 50 {
        let other: Vec<u64> = (0..60).map(|i| 1000 + round * 60 + i).collect();
        tried.whole(&other);
    }
    assert!(tried.stitcher.runs.len() <= MAX_RUNS);
    let whole: Vec<u64> = (100..160).collect();
    tried.whole(&whole);
    assert!(tried.cut(&whole, 20).is_some());
}

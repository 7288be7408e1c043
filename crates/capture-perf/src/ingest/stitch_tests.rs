//! Stitching on made-up stacks.

use plumb_profile::{Cut, Frame, Id};
use plumb_unwind::{Avma, Method};

use super::*;

/// A stack as `(slot, return address)` from the root inwards, and a frame on top of it.
struct Made {
    walked: Vec<Walked>,
    frames: Vec<FrameId>,
}

/// Frames are named by their return address here.
fn frame(pc: u64) -> FrameId {
    let _ = Frame::marker(Cut::NotMapped, None);
    FrameId::from_index(pc as usize)
}

/// The innermost `visible` frames of a stack of these return addresses, 32 bytes a frame.
fn stack(root_first: &[u64], visible: usize) -> Made {
    let slot = |depth: usize| Avma(0x7fff_0000 - 32 * depth as u64);
    let callers = root_first.iter().enumerate().rev().take(visible);
    let mut walked = vec![Walked { pc: Avma(1), is_return: false, found: Method::Sampled, slot: Avma(0) }];
    walked.extend(callers.map(|(depth, &pc)| Walked {
        pc: Avma(pc),
        is_return: true,
        found: Method::Cfi,
        slot: slot(depth),
    }));
    let frames = walked.iter().map(|frame_| frame(frame_.pc.0)).collect();
    Made { walked, frames }
}

impl Stitcher {
    fn whole(&mut self, root_first: &[u64]) {
        let made = stack(root_first, usize::MAX);
        assert!(!self.sample(&made.walked, &made.frames, Border::Root, &mut Vec::new()));
    }

    /// What is stitched to the innermost `visible` frames, from the root inwards.
    fn cut(&mut self, root_first: &[u64], visible: usize) -> Option<Vec<u64>> {
        let made = stack(root_first, visible);
        let mut missing = Vec::new();
        let found = self.sample(&made.walked, &made.frames, Border::Copy, &mut missing);
        found.then(|| missing.iter().rev().map(|frame| frame.index() as u64).collect())
    }
}

/// `main`, then a recursion of this depth.
fn recursion(main: u64, depth: usize) -> Vec<u64> {
    std::iter::once(main).chain(std::iter::repeat_n(500, depth)).collect()
}

#[test]
fn missing_frames_are_those_of_the_whole_stack() {
    let mut stitcher = Stitcher::default();
    let whole: Vec<u64> = (100..160).collect();
    stitcher.whole(&whole);
    assert_eq!(stitcher.cut(&whole, 20).unwrap(), (100..140).collect::<Vec<_>>());
    assert_eq!(stitcher.cut(&whole, WINDOW).unwrap().len(), 60 - WINDOW);
    assert_eq!(stitcher.cut(&whole, WINDOW - 1), None, "too few frames to compare");
}

#[test]
fn nothing_is_known_at_first() {
    let mut stitcher = Stitcher::default();
    assert_eq!(stitcher.cut(&recursion(100, 50), 20), None);
    assert_eq!(stitcher.cut(&recursion(100, 50), 20), None, "the root was never seen");
}

#[test]
fn deeper_stacks_are_reached_step_by_step() {
    let mut stitcher = Stitcher::default();
    stitcher.whole(&recursion(100, 20));
    assert_eq!(stitcher.cut(&recursion(100, 60), 20), None, "no overlap with what was seen");
    assert!(stitcher.cut(&recursion(100, 30), 20).is_some());
    assert!(stitcher.cut(&recursion(100, 40), 20).is_some());
    assert!(stitcher.cut(&recursion(100, 50), 20).is_some());
    assert_eq!(stitcher.cut(&recursion(100, 60), 20).unwrap(), recursion(100, 40));
}

#[test]
fn shallow_stacks_in_between_do_no_harm() {
    let mut stitcher = Stitcher::default();
    let deep = recursion(100, 60);
    stitcher.whole(&deep);
    let mut shallow = recursion(100, 30);
    shallow.push(700);
    stitcher.whole(&shallow);
    stitcher.whole(&[100, 701]);
    assert_eq!(stitcher.cut(&deep, 20).unwrap(), recursion(100, 40));
}

#[test]
fn other_slots_or_other_words_are_not_taken() {
    let mut stitcher = Stitcher::default();
    let whole: Vec<u64> = (100..160).collect();
    stitcher.whole(&whole);
    // The same return addresses, one frame further in.
    let moved: Vec<u64> = std::iter::once(99).chain(100..160).collect();
    assert_eq!(stitcher.cut(&moved, 20), None);
    // One different word among those at the border.
    let mut other = whole.clone();
    other[60 - 20 + 3] = 777;
    assert_eq!(stitcher.cut(&other, 20), None);
}

#[test]
fn contradiction_ends_trust_until_it_is_outvoted() {
    let mut stitcher = Stitcher::default();
    stitcher.whole(&recursion(100, 60));
    assert_eq!(stitcher.cut(&recursion(100, 60), 20).unwrap()[0], 100);
    // The same recursion from elsewhere: a shallow sample shows it, and deep ones can't be told apart.
    stitcher.whole(&recursion(101, 20));
    assert_eq!(stitcher.cut(&recursion(101, 60), 20), None);
    assert_eq!(stitcher.cut(&recursion(100, 60), 20), None);
    for _ in 0..RESTORED {
        stitcher.whole(&recursion(101, 20));
    }
    assert_eq!(stitcher.cut(&recursion(101, 60), 20).unwrap()[0], 101);
}

#[test]
fn memory_stays_bounded() {
    let mut stitcher = Stitcher::default();
    for round in 0..3 * MAX_RUNS as u64 / 50 {
        let other: Vec<u64> = (0..60).map(|i| 1000 + round * 60 + i).collect();
        stitcher.whole(&other);
    }
    assert!(stitcher.runs.len() <= MAX_RUNS);
    let whole: Vec<u64> = (100..160).collect();
    stitcher.whole(&whole);
    assert!(stitcher.cut(&whole, 20).is_some());
}

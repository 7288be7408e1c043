//! Native frames that are eval frames: which of a stack's frames run script frames.

use plumb_capture_api::{Parts, Script, ScriptPlace};
use plumb_interpreters::eval_frames;
use plumb_unwind::Walked;

use crate::spaces::{AddressSpaces, SpaceId};

/// Finds the eval frames among the native frames of an address space.
#[derive(Clone, Copy)]
pub(crate) struct EvalLoops<'a> {
    pub(crate) spaces: &'a AddressSpaces,
    pub(crate) space: SpaceId,
}

impl EvalLoops<'_> {
    /// The user frames of a stack unwound in the kernel that are eval frames with script frames: the marked ones; if script frames don't say
    /// where they run, none is marked, and as many frames are in the loop, or one more that has no script frame yet.
    pub(crate) fn of_words(self, parts: Parts<'_>) -> Vec<bool> {
        let loops: Vec<bool> = parts.user.iter().map(|word| word.is_loop()).collect();
        let lists = self.spaces.frame_lists(self.space);
        if loops.contains(&true) || !lists.is_some_and(|lists| lists.rounds_are_counted()) {
            return loops;
        }
        let rounds = parts.script.split_inclusive(|place| place.is_entry).count();
        self.counted(parts.user.iter().map(|word| word.call()), rounds)
    }

    /// The unwound frames that are eval frames, if script frames don't say in which native frame they run.
    pub(crate) fn of_walked(self, script: &Script, walked: &[Walked]) -> Vec<bool> {
        if script.rounds.iter().any(|round| round.at.is_some()) {
            return Vec::new();
        }
        self.counted(walked.iter().map(|frame| frame.call().0), script.rounds.len())
    }

    /// The script frames of a complete stack without the innermost eval frame, if that is not on the native stack: it has not begun, or has ended.
    pub(crate) fn without_idle_round<'s>(
        self,
        script: &'s [ScriptPlace],
        loops: &[bool],
    ) -> &'s [ScriptPlace] {
        let rounds = || script.split_inclusive(|place| place.is_entry);
        let innermost = rounds().next().map_or(0, <[_]>::len);
        match self.has_idle_round(rounds().count(), loops) {
            true => script.get(innermost..).unwrap_or_default(),
            false => script,
        }
    }

    /// Whether the innermost of `rounds` eval frames is not on a native stack with these loops.
    pub(crate) fn has_idle_round(self, rounds: usize, loops: &[bool]) -> bool {
        let lists = self.spaces.frame_lists(self.space);
        let on_stack = loops.iter().filter(|&&is_loop| is_loop).count();
        let is_idle = on_stack > 0 && rounds == on_stack + 1;
        is_idle && lists.is_some_and(|lists| lists.calls_outlast_rounds())
    }

    /// The native frames, innermost first, that are eval frames, if only their number is known.
    fn counted(self, calls: impl Iterator<Item = u64>, rounds: usize) -> Vec<bool> {
        eval_frames(calls.map(|at| self.spaces.loop_part(self.space, at)), rounds)
    }
}

//! Stacks that were unwound in the kernel.

use linux_perf_event_reader::constants::PERF_CONTEXT_MAX;
use plumb_capture_api::{FrameWord, Parts, ScriptPlace};
use plumb_profile::{Found, Truncation};

use super::builder::StackBuilder;
use super::draft::Ending;
use super::script::Rest;
use crate::spaces::{MAX_FRAMES, SpaceId, frame_key};

impl StackBuilder<'_> {
    /// Appends the kernel frames. `before`: how many of these, innermost first, belong to the sampling itself.
    pub(crate) fn kernel_of_walked(
        &mut self,
        kernel: &[FrameWord],
        before: impl FnOnce(&mut dyn Iterator<Item = u64>) -> usize,
    ) {
        // Among the addresses, the kernel inserts markers for the context of those that follow.
        let addresses =
            || kernel.iter().map(|frame| frame.word()).filter(|&address| address < PERF_CONTEXT_MAX);
        let before = before(&mut addresses());
        let frames = addresses().enumerate().skip(before);
        self.push_kernel(frames.map(|(index, address)| (address, index > 0)));
    }

    /// Appends the user frames of a stack that is complete or has the maximum number of frames, reusing those of the thread's last one.
    pub(crate) fn user_of_walked(&mut self, parts: Parts<'_>, script_is_cut: bool) -> Ending {
        let is_cut = parts.user.len() >= MAX_FRAMES;
        let is_plain = parts.script.is_empty() && !is_cut;
        if is_plain && self.space().is_some_and(|space| self.push_new_words(space, parts.user)) {
            return Ending::Root;
        }
        let mut space = self.space();
        if space.is_none_or(|space| !self.knows_all(space, parts.user))
            && self.processes.refresh(&mut self.out.profile, self.pid)
        {
            space = self.space();
        }
        let Some(space) = space else { return Ending::Truncation(Truncation::NotMapped, None) };
        self.push_words(space, parts, script_is_cut);
        if is_cut { Ending::Truncation(Truncation::TooManyFrames, None) } else { Ending::Root }
    }

    /// Appends all frames, with the script frames where they run.
    fn push_words(&mut self, space: SpaceId, parts: Parts<'_>, script_is_cut: bool) {
        let loops = self.loops_of_words(space, parts);
        let mut script = parts.script;
        if !script_is_cut {
            script = self.without_idle_round(space, script, &loops);
        }
        let mut was_round = false;
        for (index, &word) in parts.user.iter().enumerate() {
            let id = self.user_frame(space, (word.address(), word.is_return(), found_at(index, word)));
            let is_round = loops.get(index) == Some(&true) && !script.is_empty();
            // A stub that runs the function: it would have the same name as the script frame.
            if was_round && self.processes.spaces.is_anonymous(space, word.address()) {
                was_round = false;
                continue;
            }
            was_round = is_round;
            if !is_round {
                self.draft.leaf_first.push(id);
                continue;
            }
            let last = script.iter().position(|place| place.is_entry);
            let (round, rest) = script.split_at(last.map_or(script.len(), |last| last + 1));
            script = rest;
            let rest = last.is_none().then_some(if script_is_cut { Rest::TooMany } else { Rest::Unreadable });
            self.push_round(space, (id, word.address()), round, rest);
        }
        self.push_unplaced(space, script, script_is_cut.then_some(Rest::TooMany));
    }

    /// The script frames of a complete stack without the innermost eval frame, if that is not on the native stack: it has not begun, or has ended.
    fn without_idle_round<'s>(
        &self,
        space: SpaceId,
        script: &'s [ScriptPlace],
        loops: &[bool],
    ) -> &'s [ScriptPlace] {
        let rounds = || script.split_inclusive(|place| place.is_entry);
        let innermost = rounds().next().map_or(0, <[_]>::len);
        match self.has_idle_round(space, rounds().count(), loops) {
            true => script.get(innermost..).unwrap_or_default(),
            false => script,
        }
    }

    /// Whether the innermost of `rounds` eval frames is not on a native stack with these loops.
    pub(crate) fn has_idle_round(&self, space: SpaceId, rounds: usize, loops: &[bool]) -> bool {
        let lists = self.processes.spaces.frame_lists(space);
        let on_stack = loops.iter().filter(|&&is_loop| is_loop).count();
        let is_idle = on_stack > 0 && rounds == on_stack + 1;
        is_idle && lists.is_some_and(|lists| lists.calls_outlast_rounds())
    }

    /// The user frames that are eval frames with script frames: the marked ones; if script frames don't say where they
    /// run, none is marked, and as many frames are in the loop, or one more that has no script frame yet.
    fn loops_of_words(&self, space: SpaceId, parts: Parts<'_>) -> Vec<bool> {
        let loops: Vec<bool> = parts.user.iter().map(|word| word.is_loop()).collect();
        let lists = self.processes.spaces.frame_lists(space);
        if loops.contains(&true) || !lists.is_some_and(|lists| lists.rounds_are_counted()) {
            return loops;
        }
        let rounds = parts.script.split_inclusive(|place| place.is_entry).count();
        self.counted_loops(space, parts.user.iter().map(|word| word.call()), rounds)
    }

    /// Appends the frames that are new since the thread's last stack. Returns `false` and does nothing if the mapping of one
    /// of them is unknown.
    fn push_new_words(&mut self, space: SpaceId, user: &[FrameWord]) -> bool {
        let Some(thread) = self.processes.tasks.threads.get_mut(&self.tid) else { return false };
        let (profile, spaces) = (&mut self.out.profile, &mut self.processes.spaces);
        let kept = thread.stacks.last.kept_words(user, space, spaces.get(space).changes);
        for (index, &word) in user.iter().enumerate().take(user.len() - kept) {
            let frame @ (pc, is_return, found) = (word.address(), word.is_return(), found_at(index, word));
            let at = spaces.get(space);
            let id = match at.frames.get(&frame_key(pc, is_return, found as u8)) {
                Some(&id) => id,
                None if at.mappings.find(word.call()).is_some() => {
                    spaces.new_user_frame(profile, space, frame)
                }
                None => {
                    self.draft.leaf_first.truncate(self.draft.kernel_frames);
                    thread.stacks.last.forget();
                    return false;
                }
            };
            self.draft.leaf_first.push(id);
        }
        self.draft.kept = kept;
        true
    }

    /// Whether the mappings of all these frames are known. Those of reused frames are.
    fn knows_all(&self, space: SpaceId, user: &[FrameWord]) -> bool {
        let space = self.processes.spaces.get(space);
        user.iter().enumerate().all(|(index, &word)| {
            let key = frame_key(word.address(), word.is_return(), found_at(index, word) as u8);
            space.frames.contains_key(&key) || space.mappings.find(word.call()).is_some()
        })
    }
}

/// The method by which a frame of a stack unwound in the kernel was found.
fn found_at(index: usize, word: FrameWord) -> Found {
    match index {
        0 => Found::Sampled,
        _ if word.is_scanned() => Found::Scan,
        _ if word.is_assumed() => Found::FramePointer,
        _ => Found::Cfi,
    }
}

//! Stacks that were unwound in the kernel.

use linux_perf_event_reader::constants::PERF_CONTEXT_MAX;
use plumb_capture_api::{FrameWord, Parts};
use plumb_profile::{Found, Truncation};

use super::builder::StackBuilder;
use super::draft::Ending;
use super::on_stack;
use super::script::Rest;
use crate::spaces::{AddressSpaces, MAX_FRAMES, SpaceId, frame_key};

/// Appends the kernel frames of a stack unwound in the kernel. `before`: how many of these, innermost first, belong to the sampling itself.
pub(crate) fn push_kernel(
    stack: &mut StackBuilder<'_>,
    kernel: &[FrameWord],
    before: impl FnOnce(&mut dyn Iterator<Item = u64>) -> usize,
) {
    // Among the addresses, the kernel inserts markers for the context of those that follow.
    let addresses = || kernel.iter().map(|frame| frame.word()).filter(|&address| address < PERF_CONTEXT_MAX);
    let before = before(&mut addresses());
    let frames = addresses().enumerate().skip(before);
    stack.push_kernel(frames.map(|(index, address)| (address, index > 0)));
}

/// The user part of a stack unwound in the kernel, which is complete or has the maximum number of frames.
#[derive(Clone, Copy)]
pub(crate) struct WalkedUser<'p> {
    pub(crate) parts: Parts<'p>,
    /// Whether there were more script frames than are sent.
    pub(crate) script_is_cut: bool,
}

impl WalkedUser<'_> {
    /// Appends the user frames, reusing those of the thread's last stack.
    pub(crate) fn append_to(self, stack: &mut StackBuilder<'_>) -> Ending {
        let user = self.parts.user;
        let is_cut = user.len() >= MAX_FRAMES;
        let is_plain = self.parts.script.is_empty() && !is_cut;
        let mut space = stack.space();
        if is_plain && space.is_some_and(|space| push_new_words(stack, space, user)) {
            return Ending::Root;
        }
        if space.is_none_or(|space| !knows_all(&stack.processes.spaces, space, user)) {
            space = stack.refreshed_space().or(space);
        }
        let Some(space) = space else { return Ending::Truncation(Truncation::NotMapped, None) };
        self.push_words(stack, space);
        if is_cut { Ending::Truncation(Truncation::TooManyFrames, None) } else { Ending::Root }
    }

    /// Appends all frames, with the script frames where they run.
    fn push_words(self, stack: &mut StackBuilder<'_>, space: SpaceId) {
        let Self { parts, script_is_cut } = self;
        let loops = stack.loops(space).of_words(parts);
        let mut script = parts.script;
        if !script_is_cut {
            script = stack.loops(space).without_idle_round(script, &loops);
        }
        let has_stubs = stack.processes.spaces.frame_lists(space).is_some();
        let mut was_round = false;
        for (index, &word) in parts.user.iter().enumerate() {
            let (mut frames, draft) = stack.frames(space);
            let id = frames.at(word.address(), word.is_return(), found_at(index, word));
            let is_round = loops.get(index) == Some(&true) && !script.is_empty();
            // A stub that runs the function: it would have the same name as the script frame.
            if was_round && has_stubs && frames.is_anonymous(word.address()) {
                was_round = false;
                continue;
            }
            was_round = is_round;
            if !is_round {
                match has_stubs {
                    true => draft.leaf_first.push(id),
                    false => on_stack::push_without_place(stack, space, (id, word.call())),
                }
                continue;
            }
            let last = script.iter().position(|place| place.is_entry);
            let (round, rest) = script.split_at(last.map_or(script.len(), |last| last + 1));
            script = rest;
            let rest = last.is_none().then_some(if script_is_cut { Rest::TooMany } else { Rest::Unreadable });
            stack.scripts(space).push_round((id, word.call()), round, rest);
        }
        stack.scripts(space).push_unplaced(script, script_is_cut.then_some(Rest::TooMany));
    }
}

/// Appends the frames that are new since the thread's last stack. Returns `false` and does nothing if the mapping of one
/// of them is unknown.
fn push_new_words(stack: &mut StackBuilder<'_>, space: SpaceId, user: &[FrameWord]) -> bool {
    let Some(thread) = stack.processes.tasks.threads.get_mut(&stack.tid) else { return false };
    let (profile, spaces) = (&mut stack.out.profile, &mut stack.processes.spaces);
    let kept = thread.stacks.last.kept_words(user, space, spaces.get(space).changes);
    for (index, &word) in user.iter().enumerate().take(user.len() - kept) {
        let frame @ (pc, is_return, found) = (word.address(), word.is_return(), found_at(index, word));
        let at = spaces.get(space);
        let id = match at.frames.get(&frame_key(pc, is_return, found as u8)) {
            Some(&id) => id,
            None if at.mappings.find(word.call()).is_some() => spaces.new_user_frame(profile, space, frame),
            None => {
                stack.draft.leaf_first.truncate(stack.draft.kernel_frames);
                thread.stacks.last.forget();
                return false;
            }
        };
        stack.draft.leaf_first.push(id);
    }
    stack.draft.kept = kept;
    true
}

/// Whether the mappings of all these frames are known. Those of reused frames are.
fn knows_all(spaces: &AddressSpaces, space: SpaceId, user: &[FrameWord]) -> bool {
    let space = spaces.get(space);
    user.iter().enumerate().all(|(index, &word)| {
        let key = frame_key(word.address(), word.is_return(), found_at(index, word) as u8);
        space.frames.contains_key(&key) || space.mappings.find(word.call()).is_some()
    })
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

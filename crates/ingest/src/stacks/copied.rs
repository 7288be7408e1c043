//! Stacks that are unwound from registers and a copy of the stack: turns them into frames and the reason where they end.

use plumb_capture_api::{EvalLoopFrame, Script};
use plumb_profile::Truncation;
use plumb_unwind::{Architecture, End, RegisterSet, Walked};

use super::builder::StackBuilder;
use super::copy::StackCopy;
use super::draft::{Ending, cut_of};
use super::live;
use super::on_stack::{self, Read};
use super::script::Rest;
use super::stitch::{Beyond, Border};
use crate::memory::{CopiedMemory, MemoryNow};
use crate::spaces::SpaceId;

/// Returns a copy of the registers with another program counter.
pub(crate) fn at_ip<A: Architecture>(registers: &RegisterSet<A>, ip: u64) -> RegisterSet<A> {
    let mut moved = *registers;
    moved.set(A::PC, ip);
    moved
}

/// The mark for frames missing in an eval frame.
fn rest_of(round: &EvalLoopFrame, script: &Script) -> Option<Rest> {
    let is_whole = round.frames.last().is_some_and(|last| last.is_entry);
    let rest = if script.is_cut { Rest::TooMany } else { Rest::Unreadable };
    Some(rest).filter(|_| !is_whole)
}

/// A stack to unwind from a copy, and its frames so far.
pub(crate) struct CopiedStack<'s, A: Architecture> {
    registers: RegisterSet<A>,
    copy: StackCopy<'s>,
    /// The unwound frames, innermost first.
    walked: Vec<Walked>,
}

impl<'s, A: Architecture> CopiedStack<'s, A> {
    /// `room`: a buffer for its frames.
    pub(super) fn new(registers: RegisterSet<A>, copy: StackCopy<'s>, room: Vec<Walked>) -> Self {
        Self { registers, copy, walked: room }
    }

    /// The buffer, for the next stack.
    pub(super) fn into_walked(self) -> Vec<Walked> {
        self.walked
    }

    /// Unwinds by all available means the stack of a sample at this time, which was taken `in_kernel` or not. Also returns the space that
    /// the process has by then.
    pub(super) fn walk(
        &mut self,
        stack: &mut StackBuilder<'_>,
        mut space: SpaceId,
        (time_ns, in_kernel): (u64, bool),
    ) -> (SpaceId, End) {
        let mut end = self.walk_once(stack, space);
        if end == End::NotMapped
            && let Some(refreshed) = stack.refreshed_space()
        {
            space = refreshed;
            end = self.walk_once(stack, space);
        }
        if in_kernel && self.walked.len() == 1 && matches!(end, End::NoUnwindInfo | End::NotMapped) {
            // In a system call the program counter is past the `syscall`, which may end its function, as in
            // glibc's `__restore_rt`. No rule applies to that place in particular, so nothing is lost by looking before it.
            self.registers = at_ip(&self.registers, self.registers.ip().wrapping_sub(1));
            end = self.walk_once(stack, space);
        }
        let is_live = stack.processes.scope.is_live();
        if end == End::StackUnreadable && is_live {
            self.copy.touch_untouched();
        }
        if let Some((thread, _)) = stack.thread(space) {
            thread.stacks.begin_stitching(time_ns, end, is_live);
            if end == End::BeyondCopy
                && thread.stacks.is_cut_for_good(&self.walked)
                && is_live
                && !thread.exited
                && thread.stacks.may_read_live(time_ns)
                && self.learn_live(stack, space)
            {
                end = self.walk_once(stack, space);
            }
        }
        let of = (stack.pid, space);
        let Self { registers, copy, walked } = self;
        (space, stack.processes.spaces.scan(of, registers, copy, walked, end))
    }

    fn walk_once(&mut self, stack: &mut StackBuilder<'_>, space: SpaceId) -> End {
        stack.processes.spaces.walk(space, &self.registers, &mut self.copy, &mut self.walked)
    }

    /// Passes the stack, which was truncated at its copy's end, to the stitcher, read from the process itself. Returns whether that worked.
    fn learn_live(&mut self, stack: &mut StackBuilder<'_>, space: SpaceId) -> bool {
        let Some(mut memory) = live::extended(stack.pid, self.copy, &self.walked) else { return false };
        let end = stack.processes.spaces.walk(space, &self.registers, &mut memory, &mut self.walked);
        if end == End::Root {
            let index = stack.out.profile.samples.len();
            if let Some((thread, mut frames)) = stack.thread(space) {
                thread.stacks.stitch(&mut frames, index, &self.walked, Border::Root);
            }
        }
        end == End::Root
    }

    /// Appends the unwound frames, and stitched callers if they were truncated. `script`: the frames of an interpreted program.
    pub(super) fn append_to(
        &self,
        stack: &mut StackBuilder<'_>,
        space: SpaceId,
        end: End,
        script: Option<&Script>,
    ) -> Ending {
        let walked = &self.walked;
        let is_elsewhere = end == End::StackUnreadable && self.copy.missed_elsewhere();
        // Stitched callers come from earlier samples: a complete stack with script frames has its own.
        let is_on_stack = stack.processes.spaces.has_stack_frames(space);
        let has_all = (script.is_some() || is_on_stack) && end == End::Root;
        let beyond = stitch(stack, space, walked, end).filter(|_| !has_all);
        let (own, ending) = match (beyond, cut_of(end)) {
            (Some(beyond), _) => {
                stack.draft.base = beyond.stack;
                (walked.len().saturating_sub(beyond.included), Ending::Root)
            }
            // Frames of the last sample are native only.
            (None, None) if script.is_some() || is_on_stack => (walked.len(), Ending::Root),
            (None, None) => {
                let changes = stack.processes.spaces.get(space).changes;
                let kept =
                    stack.thread(space).map(|(thread, _)| thread.stacks.last.kept(walked, space, changes));
                stack.draft.kept = kept.unwrap_or(0);
                (walked.len() - stack.draft.kept, Ending::Root)
            }
            (None, Some(_)) if is_elsewhere => {
                (walked.len(), Ending::Truncation(Truncation::OtherStack, None))
            }
            (None, Some(cut)) => (walked.len(), stack.frames(space).0.blame(cut, walked.last())),
        };
        let base = self.copy.base();
        let memory =
            CopiedMemory { parts: &[(base, self.copy.bytes())], process: Some(MemoryNow::of(stack.pid)) };
        match script {
            None if on_stack::push(stack, space, (walked, own), (base, &memory, Read::Later)) => {}
            None => {
                let (mut frames, draft) = stack.frames(space);
                draft.leaf_first.extend(walked.iter().take(own).map(|frame| frames.walked(frame)));
            }
            Some(script) => push_with_script(stack, space, (walked, own), (base, script)),
        }
        ending
    }
}

/// Learns from the stack of a thread with a stitcher, which is created with the first stack that is too deep for its copy. Returns its known callers.
fn stitch(stack: &mut StackBuilder<'_>, space: SpaceId, walked: &[Walked], end: End) -> Option<Beyond> {
    let border = match end {
        End::Root => Border::Root,
        // A stack page that was never touched, or is being copied after a fork, ends the kernel's copy too.
        End::BeyondCopy | End::StackUnreadable => Border::Copy,
        _ => return None,
    };
    let is_cut = border == Border::Copy;
    stack.out.statistics.beyond_copy += u64::from(end == End::BeyondCopy);
    let index = stack.out.profile.samples.len();
    let (thread, mut frames) = stack.thread(space)?;
    if is_cut {
        thread.stacks.stitcher.get_or_insert_default();
    }
    let beyond = thread.stacks.stitch(&mut frames, index, walked, border);
    stack.out.statistics.stitched += u64::from(is_cut && beyond.is_some());
    beyond
}

/// Appends the first `own` unwound frames, with the script frames where they run.
pub(super) fn push_with_script(
    stack: &mut StackBuilder<'_>,
    space: SpaceId,
    (walked, own): (&[Walked], usize),
    (sp, script): (u64, &Script),
) {
    let loops = stack.loops(space).of_walked(script, walked);
    let mut sp = Some(sp);
    let idle = usize::from(stack.loops(space).has_idle_round(script.rounds.len(), &loops));
    let mut rounds = script.rounds.iter().skip(idle).peekable();
    let mut was_round = false;
    for (index, frame) in walked.iter().enumerate().take(own) {
        let begin = sp.take().unwrap_or(frame.slot.0.saturating_add(8));
        let end = walked.get(index + 1).map_or(u64::MAX, |caller| caller.slot.0.saturating_add(8));
        let spaces = &stack.processes.spaces;
        let runs = |round: &&EvalLoopFrame| match round.at {
            // The end of the last frame is not known, and it may not be the interpreter's.
            Some(at) => (begin..end).contains(&at) && spaces.has_interpreter(space, frame.pc.0),
            None => loops.get(index) == Some(&true),
        };
        let round = rounds.next_if(runs);
        // A stub that runs the function: it would have the same name as the script frame.
        if std::mem::replace(&mut was_round, round.is_some()) && spaces.is_anonymous(space, frame.pc.0) {
            continue;
        }
        let (mut frames, draft) = stack.frames(space);
        let id = frames.walked(frame);
        match round {
            Some(round) => {
                let rest = rest_of(round, script);
                stack.scripts(space).push_round((id, frame.pc.0), &round.frames, rest);
            }
            None => draft.leaf_first.push(id),
        }
    }
    // Stitched callers from earlier samples include them.
    if stack.draft.base.is_none() {
        let frames: Vec<_> = rounds.flat_map(|round| round.frames.iter().copied()).collect();
        stack.scripts(space).push_unplaced(&frames, script.is_cut.then_some(Rest::TooMany));
    }
}

//! Programs whose functions are native frames, such as those of a compiler at run time: finds the functions of unwound frames.
//!
//! The stack is as it was at the sample; other memory is read as it is now. A function that was moved or freed since is not found, or another one, which
//! the interpreter notices by the function's own words.

use plumb_interpreters::{Memory, NativeFrame, RuntimeProcess, ScriptPlace};
use plumb_profile::FrameId;
use plumb_unwind::{Method, Walked};

use super::builder::StackBuilder;
use crate::spaces::SpaceId;

/// The time at which the memory of a process is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// While the thread is where the stack says.
    Now,
    /// Later: code may have been replaced, so that it doesn't tell whose it was.
    Later,
}

/// The frames whose end is known, innermost first: all but the outermost. `sp`: the stack pointer in the innermost.
pub(crate) fn native_frames(sp: u64, walked: &[Walked]) -> impl Iterator<Item = NativeFrame> {
    let mut sp = sp;
    walked.iter().zip(walked.iter().skip(1)).map(move |(frame, caller)| {
        let cfa = caller.slot.0.saturating_add(8);
        let has_rules = !matches!(caller.found, Method::FramePointer | Method::Scan);
        NativeFrame { pc: frame.call().0, sp: std::mem::replace(&mut sp, cfa), cfa, has_rules }
    })
}

/// Appends the first `own` unwound frames, each as the functions that it runs, if it runs any. Returns `false` and does nothing in a process without
/// such an interpreter.
pub(crate) fn push(
    stack: &mut StackBuilder<'_>,
    space: SpaceId,
    (walked, own): (&[Walked], usize),
    (sp, memory, read): (u64, &dyn Memory, Read),
) -> bool {
    if !stack.processes.spaces.has_stack_frames(space) {
        return false;
    }
    let places = places(stack, space, native_frames(sp, walked).take(own), memory);
    let mut places = places.into_iter();
    for frame in walked.iter().take(own) {
        let id = stack.frames(space).0.walked(frame);
        let at = frame.call().0;
        match places.next().flatten() {
            Some(place) => stack.scripts(space).push_round((id, at), &[place], None),
            None if read == Read::Now => push_without_place(stack, space, (id, at)),
            None => stack.draft.leaf_first.push(id),
        }
    }
    true
}

/// The function that each native frame runs.
fn places(
    stack: &StackBuilder<'_>,
    space: SpaceId,
    natives: impl Iterator<Item = NativeFrame>,
    memory: &dyn Memory,
) -> Vec<Option<ScriptPlace>> {
    let spaces = &stack.processes.spaces;
    let Some((interpreter, bias)) = spaces.stack_frames(space) else { return Vec::new() };
    let mut state = spaces.get(space).runtime.borrow_mut();
    let mut process = RuntimeProcess { memory, bias, state: &mut state };
    natives.map(|native| interpreter.place(&mut process, native).ok()?).collect()
}

/// Appends a native frame for which no function was found: code that was compiled at run time tells its own.
pub(crate) fn push_without_place(stack: &mut StackBuilder<'_>, space: SpaceId, (id, at): (FrameId, u64)) {
    if stack.processes.spaces.is_anonymous(space, at) {
        stack.scripts(space).push_code(id, at);
    } else {
        stack.draft.leaf_first.push(id);
    }
}

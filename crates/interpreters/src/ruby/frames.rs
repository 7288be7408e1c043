//! Reads the frames of a stopped thread. The BPF programs read those of running threads in the same way (crates/capture-bpf/bpf/interpreters/ruby.h).

use super::functions;
use super::layout::{
    BODY_INSTRUCTIONS, CODE_BODY, CONTEXT_FRAME, CONTEXT_STACK, FRAME_CODE, FRAME_ENVIRONMENT,
    FRAME_INSTRUCTION, FRAME_IS_LAST, NO_POSITION, RubyLayout,
};
use crate::{EvalLoopFrame, Memory, ScriptPlace, Unreadable};

/// Most frames of a thread; Ruby's own limit is some 12,000.
const MAX_FRAMES: usize = 1 << 16;

/// Reads the frames of the execution context at an address, innermost first.
pub(super) fn read(
    memory: &dyn Memory,
    layout: &RubyLayout,
    context: u64,
) -> Result<Vec<EvalLoopFrame>, Unreadable> {
    let word = |at: u64, offset: u32| memory.word(at.wrapping_add(offset.into()));
    let none = || EvalLoopFrame { at: None, frames: Vec::new() };
    let mut rounds = vec![none()];
    let (stack, words) = (word(context, CONTEXT_STACK)?, word(context, CONTEXT_STACK + 8)?);
    // The outermost frame never runs.
    let end = stack.wrapping_add(words.wrapping_mul(8)).wrapping_sub(layout.frame_bytes.into());
    let mut at = word(context, CONTEXT_FRAME)?;
    for _ in 0..MAX_FRAMES {
        if at == 0 || at >= end {
            rounds.retain(|round| !round.frames.is_empty());
            return Ok(rounds);
        }
        if let Some(place) = place(memory, at)?
            && let Some(round) = rounds.last_mut()
        {
            round.frames.push(place);
            if place.is_entry {
                rounds.push(none());
            }
        }
        at = at.saturating_add(layout.frame_bytes.into());
    }
    Err(Unreadable(at))
}

/// Position of a frame in its code, or `None` if its function is written in C.
fn place(memory: &dyn Memory, at: u64) -> Result<Option<ScriptPlace>, Unreadable> {
    let word = |at: u64, offset: u32| memory.word(at.wrapping_add(offset.into()));
    let (instruction, code) = (word(at, FRAME_INSTRUCTION)?, word(at, FRAME_CODE)?);
    if instruction == 0 || code == 0 {
        return Ok(None);
    }
    let flags = word(word(at, FRAME_ENVIRONMENT)?, 0)?;
    let body = word(code, CODE_BODY)?;
    // The instruction is the one after that which runs.
    let position = instruction.wrapping_sub(word(body, BODY_INSTRUCTIONS)?) / 8;
    let offset = u32::try_from(position.wrapping_sub(1)).unwrap_or(u32::MAX).min(NO_POSITION);
    let code = functions::id(memory, body)?;
    Ok(Some(ScriptPlace { code, offset, is_entry: flags & FRAME_IS_LAST != 0, is_generator: false }))
}

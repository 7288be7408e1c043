//! Reads the calls of a stopped thread. The BPF programs read those of running threads in the same way (crates/capture-bpf/bpf/interpreters/php.h).

use super::functions;
use super::layout::{
    CALL_BYTES, CALL_CALLER, CALL_FUNCTION, CALL_INFO, CALL_INSTRUCTION, CALL_IS_TOP, INSTRUCTION_LINE,
    PhpLayout, SCRIPT_TYPES,
};
use crate::memory::{head, word_in};
use crate::{EvalLoopFrame, Memory, ScriptPlace, Unreadable};

/// Most calls of a thread.
const MAX_CALLS: usize = 1 << 16;

/// Reads the calls that have started, innermost first. `state`: address of the pointer to the innermost call.
pub(super) fn read(
    memory: &dyn Memory,
    layout: &PhpLayout,
    state: u64,
) -> Result<Vec<EvalLoopFrame>, Unreadable> {
    let none = || EvalLoopFrame { at: None, frames: Vec::new() };
    let mut rounds = vec![none()];
    let mut at = memory.word(state)?;
    for number in 0..MAX_CALLS {
        if at == 0 {
            rounds.retain(|round| !round.frames.is_empty());
            return Ok(rounds);
        }
        let call = Call::read(memory, at)?;
        at = call.caller;
        let Some(place) = call.place(memory, layout, number == 0)? else { continue };
        if let Some(round) = rounds.last_mut() {
            round.frames.push(place);
        }
        if place.is_entry {
            rounds.push(none());
        }
    }
    Err(Unreadable(at))
}

/// `zend_execute_data`
struct Call {
    function: u64,
    instruction: u64,
    caller: u64,
    is_top: bool,
}

impl Call {
    fn read(memory: &dyn Memory, at: u64) -> Result<Self, Unreadable> {
        let bytes: [u8; CALL_BYTES as usize] = head(memory, at)?;
        let word = |offset: u32| word_in(&bytes, offset);
        Ok(Self {
            function: word(CALL_FUNCTION),
            instruction: word(CALL_INSTRUCTION),
            caller: word(CALL_CALLER),
            is_top: bytes.get(CALL_INFO as usize).is_some_and(|info| info & CALL_IS_TOP != 0),
        })
    }

    /// Position of the call in its function, or `None` if the function is not written in PHP. The innermost call keeps its instruction in a register;
    /// the one in memory is stale.
    fn place(
        &self,
        memory: &dyn Memory,
        layout: &PhpLayout,
        is_innermost: bool,
    ) -> Result<Option<ScriptPlace>, Unreadable> {
        let mut kind = [0];
        if self.function == 0 || !memory.read(self.function, &mut kind) || !SCRIPT_TYPES.contains(&kind[0]) {
            return Ok(None);
        }
        let line = || memory.word(self.instruction.wrapping_add(INSTRUCTION_LINE.into()));
        let offset = if is_innermost { 0 } else { line().map_or(0, |line| line as u32) };
        let code = functions::id(memory, layout, self.function)?;
        Ok(Some(ScriptPlace { code, offset, is_entry: self.is_top, is_generator: false }))
    }
}

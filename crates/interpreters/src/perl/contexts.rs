//! Reads the calls of a stopped thread. The BPF programs read those of running threads in the same way (crates/capture-bpf/bpf/interpreters/perl.h).

use super::functions;
use super::layout::{
    CALL, CONTEXT_RETURN, CONTEXT_STATEMENT, EVAL, FORMAT, KIND, LIST_CONTEXTS, LIST_INNERMOST, LIST_OUTER,
    PerlLayout, RUNS, SORT, STATEMENT_FILE, STATEMENT_LINE, TRY,
};
use crate::memory::word_in;
use crate::{CodeId, EvalLoopFrame, Memory, ScriptPlace, Unreadable};

/// Most contexts of a thread.
const MAX_CONTEXTS: usize = 1 << 16;
/// Upper bound for the size of a context.
const MAX_CONTEXT_BYTES: usize = 128;

/// Reads the calls, innermost first. `interpreter`: address of the interpreter.
pub(super) fn read(
    memory: &dyn Memory,
    layout: &PerlLayout,
    interpreter: u64,
) -> Result<Vec<EvalLoopFrame>, Unreadable> {
    let statement = word(memory, interpreter, layout.statement)?;
    let (block, left) = (None, MAX_CONTEXTS);
    let mut reading =
        Reading { memory, layout, statement, has_contexts: false, block, left, rounds: vec![none()] };
    let mut list = word(memory, interpreter, layout.contexts)?;
    while list != 0 {
        list = reading.list(list)?;
    }
    // The main program has no eval frame while it is compiled, nor after its outermost block was left.
    if reading.has_contexts && half(memory, interpreter, layout.phase)? == RUNS {
        let code = reading.file()?;
        reading.push(code, true)?;
    }
    reading.rounds.retain(|round| !round.frames.is_empty());
    Ok(reading.rounds)
}

fn none() -> EvalLoopFrame {
    EvalLoopFrame { at: None, frames: Vec::new() }
}

fn word(memory: &dyn Memory, at: u64, offset: u32) -> Result<u64, Unreadable> {
    memory.word(at.wrapping_add(offset.into()))
}

fn half(memory: &dyn Memory, at: u64, offset: u32) -> Result<u32, Unreadable> {
    crate::memory::head(memory, at.wrapping_add(offset.into())).map(u32::from_le_bytes)
}

/// State of reading the calls.
struct Reading<'m> {
    memory: &'m dyn Memory,
    layout: &'m PerlLayout,
    /// The statement that runs in the next frame.
    statement: u64,
    /// Whether the last list had any contexts.
    has_contexts: bool,
    /// Line in a block with an eval frame of its own: it belongs to the function of the next frame.
    block: Option<u32>,
    /// Remaining number of lists and contexts to read.
    left: usize,
    rounds: Vec<EvalLoopFrame>,
}

impl Reading<'_> {
    /// Reads the contexts of a list. Returns the address of the next outer list, or 0 if there is none.
    fn list(&mut self, at: u64) -> Result<u64, Unreadable> {
        self.left = self.left.checked_sub(1).ok_or(Unreadable(at))?;
        let contexts = word(self.memory, at, LIST_CONTEXTS)?;
        let innermost = half(self.memory, at, LIST_INNERMOST)?.cast_signed();
        self.has_contexts = innermost >= 0;
        let (mut statement, mut call_began) = (self.statement, false);
        for index in (0..=i64::from(innermost)).rev() {
            self.left = self.left.checked_sub(1).ok_or(Unreadable(at))?;
            let place = contexts.wrapping_add_signed(index * i64::from(self.layout.context_bytes));
            let mut bytes = [0; MAX_CONTEXT_BYTES];
            let context = bytes.get_mut(..self.layout.context_bytes as usize).unwrap_or_default();
            if !self.memory.read(place, context) {
                return Err(Unreadable(place));
            }
            statement = word_in(&bytes, CONTEXT_STATEMENT);
            if let Some(code) = self.code(&bytes)? {
                call_began = word_in(&bytes, CONTEXT_RETURN) == 0;
                self.push(code, call_began)?;
                self.statement = statement;
            }
        }
        if half(self.memory, at, self.layout.purpose)? == SORT && !call_began {
            self.block = Some(self.line());
        }
        let outer = word(self.memory, at, LIST_OUTER)?;
        if outer != 0 {
            self.statement = statement;
        }
        Ok(outer)
    }

    /// The code of the call in a context, or `None` if the context is not a call.
    fn code(&self, context: &[u8; MAX_CONTEXT_BYTES]) -> Result<Option<CodeId>, Unreadable> {
        match context[0] & KIND {
            CALL | FORMAT => {
                let function = word_in(context, self.layout.context_code());
                functions::id(self.memory, self.memory.word(function)?).map(Some)
            }
            EVAL if context[0] & TRY == 0 => self.file().map(Some),
            _ => Ok(None),
        }
    }

    /// The code of the file that contains the statement.
    fn file(&self) -> Result<CodeId, Unreadable> {
        functions::file_id(self.memory, word(self.memory, self.statement, STATEMENT_FILE)?)
    }

    fn line(&self) -> u32 {
        half(self.memory, self.statement, STATEMENT_LINE).unwrap_or(0)
    }

    fn push(&mut self, code: CodeId, is_entry: bool) -> Result<(), Unreadable> {
        if let Some(line) = self.block.take() {
            self.frame(code, line, true);
        }
        self.frame(code, self.line(), is_entry);
        Ok(())
    }

    fn frame(&mut self, code: CodeId, line: u32, is_entry: bool) {
        if let Some(round) = self.rounds.last_mut() {
            round.frames.push(ScriptPlace { code, offset: line, is_entry, is_generator: false });
        }
        if is_entry {
            self.rounds.push(none());
        }
    }
}

//! The rounds of the interpreter's loop in a thread, and their frames, of a thread that does not run. Of those that run the kernel's
//! programs read the same (crates/capture-bpf/bpf/python.h).

use std::collections::HashMap;

use super::layout::{Chain, MAX_FRAME_BYTES, OWNED_BY_GENERATOR, OWNED_BY_LOOP, PythonLayout};
use super::objects;
use crate::memory::word_in;
use crate::{CodeId, EvalLoopFrame, Memory, ScriptPlace, Unreadable};

/// The most frames of a thread. Python's own limit is 1,000 unless a program raises it.
const MAX_FRAMES: usize = 1 << 16;

/// Reads the rounds of the thread whose state is at an address, innermost first.
pub(super) fn read(
    memory: &dyn Memory,
    layout: &PythonLayout,
    thread: u64,
) -> Result<Vec<EvalLoopFrame>, Unreadable> {
    let mut reader = Reader { memory, layout, codes: HashMap::new(), rounds: Vec::new(), outer: 0 };
    let mut at = reader.first(thread)?;
    for _ in 0..MAX_FRAMES {
        if at == 0 {
            reader.rounds.retain(|round| !round.frames.is_empty());
            return Ok(reader.rounds);
        }
        at = reader.add(at)?;
    }
    Err(Unreadable(at))
}

struct Reader<'a> {
    memory: &'a dyn Memory,
    layout: &'a PythonLayout,
    codes: HashMap<u64, CodeId>,
    /// The last one is not complete.
    rounds: Vec<EvalLoopFrame>,
    /// The `_PyCFrame` of the next round further out, where there are such.
    outer: u64,
}

impl Reader<'_> {
    fn word(&self, at: u64, offset: u32) -> Result<u64, Unreadable> {
        self.memory.word(at.wrapping_add(offset.into()))
    }

    /// Begins with the innermost round of a thread. Where its frame is; 0: there is none.
    fn first(&mut self, thread: u64) -> Result<u64, Unreadable> {
        let at = self.word(thread, self.layout.thread.frame)?;
        match self.layout.chain {
            Chain::CFrames { .. } if at != 0 => return self.enter(at),
            Chain::EntryFrames { cframe: Some(offset) } if at != 0 => {
                self.begin(None);
                return self.word(at, offset);
            }
            _ => {}
        }
        self.begin(None);
        Ok(at)
    }

    fn begin(&mut self, at: Option<u64>) {
        self.rounds.push(EvalLoopFrame { at, frames: Vec::new() });
    }

    /// Begins with the round that has its `_PyCFrame` at an address. Where its frame is.
    fn enter(&mut self, at: u64) -> Result<u64, Unreadable> {
        let Chain::CFrames { frame, previous } = self.layout.chain else { return Ok(0) };
        self.begin(Some(at));
        self.outer = self.word(at, previous)?;
        self.word(at, frame)
    }

    /// Adds the frame at an address. Where its caller's is; 0: it has none.
    fn add(&mut self, at: u64) -> Result<u64, Unreadable> {
        let layout = &self.layout.frame;
        let mut bytes = [0; MAX_FRAME_BYTES];
        let part = bytes.get_mut(..layout.size as usize).ok_or(Unreadable(at))?;
        if !self.memory.read(at, part) {
            return Err(Unreadable(at));
        }
        let word = |offset: u32| word_in(&bytes, offset);
        let byte = |offset: u32| bytes.get(offset as usize).copied().unwrap_or(0);
        let chain = self.layout.chain;
        let owner = if chain == Chain::Single { 0 } else { byte(layout.owner) };
        // References carry tags in their lowest bits since 3.14.
        let (code, caller) = (word(layout.code) & !7, word(layout.caller));
        if matches!(chain, Chain::EntryFrames { .. }) && owner >= OWNED_BY_LOOP {
            self.end_round(at);
            return Ok(caller);
        }
        let instruction = word(layout.instruction);
        let offset = match chain {
            Chain::Single => instruction as u32,
            _ => u32::try_from(instruction.saturating_sub(code)).unwrap_or(u32::MAX),
        };
        let is_entry = match chain {
            Chain::Single => true,
            Chain::CFrames { .. } => byte(layout.is_entry) != 0,
            Chain::EntryFrames { .. } => false,
        };
        let is_generator = owner == OWNED_BY_GENERATOR;
        let place = ScriptPlace { code: self.code(code)?, offset, is_entry, is_generator };
        if let Some(round) = self.rounds.last_mut() {
            round.frames.push(place);
        }
        match chain {
            Chain::Single => self.begin(None),
            // Each round begins where the one further in says that it was called from.
            Chain::CFrames { .. } if is_entry && caller != 0 && self.enter(self.outer)? != caller => {
                return Err(Unreadable(self.outer));
            }
            _ => {}
        }
        Ok(caller)
    }

    /// A frame that runs no code, in the native frame of its round, ends that.
    fn end_round(&mut self, at: u64) {
        let Some(round) = self.rounds.last_mut() else { return };
        if let Some(last) = round.frames.last_mut() {
            last.is_entry = true;
            round.at = Some(at);
            self.begin(None);
        }
    }

    fn code(&mut self, at: u64) -> Result<CodeId, Unreadable> {
        if let Some(known) = self.codes.get(&at) {
            return Ok(*known);
        }
        let id = objects::id(self.memory, self.layout, at)?;
        self.codes.insert(at, id);
        Ok(id)
    }
}

//! Reads the eval frames of a stopped thread and their script frames. The BPF programs read those of running threads in the same
//! way (crates/capture-bpf/bpf/interpreters/python.h).

use std::collections::HashMap;

use super::layout::{Chain, MAX_FRAME_BYTES, OWNED_BY_GENERATOR, OWNED_BY_LOOP, PythonLayout};
use super::objects;
use crate::memory::word_in;
use crate::{CodeId, EvalLoopFrame, Memory, ScriptPlace, Unreadable};

/// Most frames of a thread. Python's own limit is 1,000 unless a program raises it.
const MAX_FRAMES: usize = 1 << 16;

/// Reads the eval frames of the thread whose state is at an address, innermost first.
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
    /// The eval frames; the last one is incomplete.
    rounds: Vec<EvalLoopFrame>,
    /// The `_PyCFrame` of the next outer eval frame, in versions that have it.
    outer: u64,
}

impl Reader<'_> {
    fn word(&self, at: u64, offset: u32) -> Result<u64, Unreadable> {
        self.memory.word(at.wrapping_add(offset.into()))
    }

    /// Starts with the innermost eval frame of a thread. Returns the address of its frame, or 0 if there is none.
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

    /// Starts the eval frame with its `_PyCFrame` at an address. Returns the address of its frame.
    fn enter(&mut self, at: u64) -> Result<u64, Unreadable> {
        let Chain::CFrames { frame, previous } = self.layout.chain else { return Ok(0) };
        self.begin(Some(at));
        self.outer = self.word(at, previous)?;
        self.word(at, frame)
    }

    /// Adds the frame at an address. Returns the address of its caller, or 0 if it has none.
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
        // Since 3.14 references have tags in their lowest bits.
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
            // Each eval frame starts at the caller of the previous one.
            Chain::CFrames { .. } if is_entry && caller != 0 && self.enter(self.outer)? != caller => {
                return Err(Unreadable(self.outer));
            }
            _ => {}
        }
        Ok(caller)
    }

    /// Completes an eval frame at a frame that runs no code, which is located in it.
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

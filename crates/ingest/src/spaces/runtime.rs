//! Runtimes that describe the code that they make, such as Java's virtual machine: their rules for the unwinder.
//!
//! Elsewhere: the rules (crate `interpreters`), and what applies them.

use std::cell::RefCell;

use plumb_interpreters::{FrameSource, RuntimeProcess, RuntimeState, StackFrames};
use plumb_process::{AddressSpace as Mappings, Backing, FileId};
use plumb_unwind::{Avma, Memory, RuntimeFrame, RuntimeRule};

use super::code::Code;
use crate::memory::ProcessMemory;

/// The runtime of a process.
pub(super) struct Runtime<'a> {
    frames: &'a dyn StackFrames,
    memory: ProcessMemory,
    bias: u64,
    state: &'a RefCell<RuntimeState>,
}

impl<'a> Runtime<'a> {
    /// The runtime of a space with this interpreter, if that has rules for its code.
    pub(super) fn of(
        code: &'a Code,
        (mappings, interpreter, pid): (&Mappings, Option<FileId>, u32),
        state: &'a RefCell<RuntimeState>,
    ) -> Option<Runtime<'a>> {
        let file = interpreter?;
        let FrameSource::NativeStack(frames) = code.interpreter(file)?.source() else { return None };
        if !frames.has_rules() {
            return None;
        }
        let bias = bias(code, mappings, file)?;
        Some(Runtime { frames, memory: ProcessMemory(pid), bias, state })
    }

    /// The rule of a frame of code without a file.
    pub(super) fn rule<M: Memory>(&self, frame: &RuntimeFrame, memory: &mut M) -> RuntimeRule {
        let Ok(mut state) = self.state.try_borrow_mut() else { return RuntimeRule::None };
        let mut process = RuntimeProcess { memory: &self.memory, bias: self.bias, state: &mut state };
        let mut stack = |at| memory.read_u64(Avma(at)).ok();
        self.frames.rule(&mut process, *frame, &mut stack)
    }
}

/// The difference (wrapping) between addresses in a process that maps a file and those that the file states.
pub(super) fn bias(code: &Code, mappings: &Mappings, file: FileId) -> Option<u64> {
    let mapping = mappings.mappings().iter().find(|mapping| mapping.backing == Backing::File(file))?;
    let stated = code.with_elf(file, |elf| elf.stated(mapping.offset))??;
    Some(mapping.start.wrapping_sub(stated))
}

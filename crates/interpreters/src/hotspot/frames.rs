//! Rules for the callers of frames of HotSpot's code.
//!
//! Compiled code has frames of one size, which its blob states, and saves the frame pointer below the return address; in between it uses the register for
//! other things. The interpreter keeps a frame pointer. Assembly mostly does.
//!
//! A thread may be interrupted before the frame is set up or after it is gone. What the instructions there do is known for x86-64; on aarch64 the
//! unwinder follows them up to the return, so that it is enough to know that there is no frame.

use std::ops::Range;

use plumb_unwind::scan::calls::{CallTarget, LONGEST, before};
use plumb_unwind::{Avma, Isa, RuntimeCaller, RuntimeFrame, RuntimeRule, StackPointer};

use crate::runtime::RuntimeProcess;
use crate::{Memory, Unreadable};

use super::blob::{Blob, Kind};
use super::heap::CodeHeaps;
use super::layout::Layout;
use super::statements::text;
use super::{aarch64, x86_64};

/// Largest distance of a frame pointer from the stack pointer.
const MAX_DISTANCE: u64 = 1 << 20;
/// No code is below this address.
const MIN_CODE: u64 = 1 << 16;
/// Bits of an address of user memory.
const USER_BITS: u32 = if IS_AARCH64 { 52 } else { 47 };
/// Most words that compiled code pushes.
const MAX_PUSHED: u64 = 16;
/// Most bytes of instructions that set up a frame.
const MAX_PROLOGUE: u64 = 128;
/// Most bytes of a piece of the interpreter.
const MAX_CODELET: u64 = 1 << 16;
/// Most pieces of the interpreter.
const MAX_CODELETS: usize = 1 << 12;
/// Beginning of the description of a piece that is entered by calls.
const ENTRY: &str = "method entry point";
/// Offset from an interpreted frame's pointer of its caller's stack pointer (frame_x86.hpp, frame_aarch64.hpp).
const SENDER: u64 = 8;

/// Whether the processes are of aarch64, which are those of this machine.
const IS_AARCH64: bool = cfg!(target_arch = "aarch64");

/// The memory of a process, and its stack as it was.
struct Asked<'a, 'p> {
    layout: &'a Layout,
    heaps: &'a mut CodeHeaps,
    memory: &'p dyn Memory,
    bias: u64,
    frame: RuntimeFrame,
    stack: &'a mut dyn FnMut(u64) -> Option<u64>,
}

/// The rule for the caller of a frame. `stack` reads a word of the stack.
pub(super) fn rule(
    layout: &Layout,
    process: &mut RuntimeProcess<'_>,
    frame: RuntimeFrame,
    stack: &mut dyn FnMut(u64) -> Option<u64>,
) -> RuntimeRule {
    let (memory, bias) = (process.memory, process.bias);
    let heaps = process.state.get_or_insert::<CodeHeaps>();
    let at = frame.pc.0.wrapping_sub(frame.is_return.into());
    let blob = match heaps.blob(memory, (layout, bias), at) {
        Ok(Some(blob)) => blob.clone(),
        Ok(None) => return RuntimeRule::None,
        Err(_) => return RuntimeRule::Unknown,
    };
    let mut asked = Asked { layout, heaps, memory, bias, frame, stack };
    let rule = match blob.kind {
        Kind::Compiled | Kind::Framed => asked.framed(&blob),
        Kind::Interpreter => asked.interpreted(),
        Kind::Bare if frame.is_return => None,
        Kind::Bare => Some(asked.bare()),
        Kind::Stub => asked.stub(&blob),
    };
    rule.map_or(RuntimeRule::Unknown, RuntimeRule::Caller)
}

/// A rule for a caller whose stack pointer is known.
fn caller(slot: u64, sp: u64, fp: Option<u64>) -> RuntimeCaller {
    RuntimeCaller { slot: Avma(slot), sp: StackPointer::Is(sp), fp: fp.map(Avma) }
}

impl Asked<'_, '_> {
    /// The return address is on top of the stack.
    fn bare(&self) -> RuntimeCaller {
        let sp = self.frame.sp.0;
        caller(sp, sp.wrapping_add(8), None)
    }

    /// The frame pointer is on top of the stack, the return address above it.
    fn pushed(&self) -> RuntimeCaller {
        let sp = self.frame.sp.0;
        caller(sp.wrapping_add(8), sp.wrapping_add(16), Some(sp))
    }

    /// A frame of the size that its blob states.
    fn framed(&mut self, blob: &Blob) -> Option<RuntimeCaller> {
        if !self.frame.is_return
            && let Some(edge) = self.edge(blob)
        {
            return edge;
        }
        let end = self.frame.sp.0.checked_add(blob.frame)?;
        let end = if self.frame.is_return || IS_AARCH64 { end } else { self.end_above_pushed(end)? };
        Some(caller(end - 8, end, Some(end - 16)))
    }

    /// The end of an innermost frame that would end at `end`, had its code not pushed anything: some code for strings keeps registers on the stack for a while.
    /// All callers of compiled code are in the heaps.
    fn end_above_pushed(&mut self, end: u64) -> Option<u64> {
        let word = (self.stack)(end - 8);
        if word.is_none_or(|word| self.heaps.contain(word)) {
            return Some(end);
        }
        let ends = (1..=MAX_PUSHED).map(|words| end.saturating_add(8 * words));
        for end in ends {
            let word = (self.stack)(end - 8)?;
            if self.heaps.contain(word) && self.is_returned_to(word) {
                return Some(end);
            }
        }
        None
    }

    /// The rule where an innermost frame is not set up yet, or gone already. The inner `None`: it is not known.
    fn edge(&self, blob: &Blob) -> Option<Option<RuntimeCaller>> {
        let pc = self.frame.pc.0;
        if IS_AARCH64 {
            let mut code = [0; 4 * aarch64::MOST_LEAVING];
            let mut is_left = || self.memory.read(pc, &mut code) && aarch64::leaves(&code);
            return (pc < blob.frame_complete || is_left()).then_some(None);
        }
        if pc >= blob.frame_complete {
            let mut code = [0; 48];
            let length = blob.code.end.saturating_sub(pc).min(code.len() as u64) as usize;
            let code = code.get_mut(..length)?;
            return match self.memory.read(pc, code).then(|| x86_64::leaves(code))?? {
                x86_64::Left::Bare => Some(Some(self.bare())),
                x86_64::Left::Pushed => Some(Some(self.pushed())),
            };
        }
        let length = (blob.frame_complete - blob.code.start).min(MAX_PROLOGUE);
        let mut code = vec![0; length as usize];
        if !self.memory.read(blob.frame_complete - length, &mut code) {
            return Some(None);
        }
        let at = blob.frame_complete - length;
        let (make, is_pushed) = x86_64::makes_frame(&code, blob.frame)?;
        let make = at + make as u64;
        match pc.cmp(&make) {
            std::cmp::Ordering::Less => Some(Some(self.bare())),
            std::cmp::Ordering::Equal if is_pushed => Some(Some(self.pushed())),
            std::cmp::Ordering::Equal => Some(Some(self.bare())),
            // The frame pointer is saved by the next instruction.
            std::cmp::Ordering::Greater if !is_pushed => {
                let end = self.frame.sp.0.checked_add(blob.frame)?;
                Some(Some(caller(end - 8, end, None)))
            }
            std::cmp::Ordering::Greater => None,
        }
    }

    /// An interpreted frame, or one of the interpreter's calls into the virtual machine.
    fn interpreted(&mut self) -> Option<RuntimeCaller> {
        if !self.frame.is_return
            && let Some(edge) = self.interpreter_edge()
        {
            return edge;
        }
        let pointer = self.pointer(MAX_DISTANCE)?;
        let sp = StackPointer::At(Avma(pointer.wrapping_sub(SENDER)));
        Some(RuntimeCaller { slot: Avma(pointer + 8), sp, fp: Some(Avma(pointer)) })
    }

    /// The rule where code that is entered by calls has no frame of its own yet.
    fn interpreter_edge(&mut self) -> Option<Option<RuntimeCaller>> {
        let pc = self.frame.pc.0;
        if self.heaps.entries.is_none() {
            self.heaps.entries = entries(self.memory, self.layout, self.bias).ok();
        }
        let entry = self.heaps.entries.as_ref()?.iter().find(|entry| entry.contains(&pc))?.clone();
        let mut code = vec![0; (entry.end - entry.start).min(MAX_CODELET) as usize];
        if !self.memory.read(entry.start, &mut code) {
            return Some(None);
        }
        if IS_AARCH64 {
            let save = aarch64::saves_pointer(&code).map(|at| entry.start + at as u64);
            return save.is_none_or(|save| pc <= save.saturating_add(4)).then_some(None);
        }
        let push = x86_64::pushes_pointer(&code).map(|at| entry.start + at as u64);
        match push {
            Some(push) if pc > push + 1 => None,
            Some(push) if pc == push + 1 => Some(Some(self.pushed())),
            // Up to there the return address is on top of the stack, or for a few instructions in a register.
            _ => Some(
                (self.stack)(self.frame.sp.0).filter(|&word| self.is_returned_to(word)).map(|_| self.bare()),
            ),
        }
    }

    /// A frame of assembly.
    fn stub(&mut self, blob: &Blob) -> Option<RuntimeCaller> {
        if !self.frame.is_return {
            if IS_AARCH64 {
                return None;
            }
            let sp = self.frame.sp.0;
            for (slot, is_pushed) in [(sp, false), (sp.wrapping_add(8), true)] {
                let word = (self.stack)(slot);
                if word.is_some_and(|word| self.calls(word, &blob.code)) {
                    return Some(if is_pushed { self.pushed() } else { self.bare() });
                }
            }
        }
        if let Some(pointer) = self.pointer(MAX_DISTANCE) {
            // Some code pushes a word before the frame pointer.
            for slot in [pointer + 8, pointer + 16] {
                let word = (self.stack)(slot);
                if word.is_some_and(|word| self.may_return_to(word)) {
                    return Some(caller(slot, slot + 8, Some(pointer)));
                }
            }
        }
        let word = (self.stack)(self.frame.sp.0).filter(|_| !self.frame.is_return)?;
        self.is_returned_to(word).then(|| self.bare())
    }

    /// The frame pointer, if it is one.
    fn pointer(&self, most: u64) -> Option<u64> {
        let pointer = self.frame.fp.filter(|pointer| pointer % 8 == 0)?;
        let distance = pointer.checked_sub(self.frame.sp.0)?;
        (distance <= most && pointer <= u64::MAX - 32).then_some(pointer)
    }

    /// Whether the code before an address calls directly into a range.
    fn calls(&self, word: u64, range: &Range<u64>) -> bool {
        self.call_before(word)
            .any(|call| matches!(call, CallTarget::Direct(target) if range.contains(&target.0)))
    }

    /// The calls that code before an address may end with.
    fn call_before(&self, word: u64) -> impl Iterator<Item = CallTarget> + use<> {
        const ISA: Isa = if IS_AARCH64 { Isa::Aarch64 } else { Isa::X86_64 };
        let mut code = [0; if IS_AARCH64 { 4 } else { LONGEST }];
        let begin = word.checked_sub(code.len() as u64);
        let is_read = begin.is_some_and(|begin| self.memory.read(begin, &mut code));
        before(ISA, if is_read { &code } else { &[] }, Avma(word))
    }

    /// Whether a frame with a frame pointer may return to an address. After a call it has one, so that it returns to any code: the unwinder asks for that.
    fn may_return_to(&mut self, word: u64) -> bool {
        let may_be_code = word >= MIN_CODE && word >> USER_BITS == 0;
        may_be_code && (self.frame.is_return || self.is_returned_to(word))
    }

    /// Whether an address may be one that a call returns to. The interpreter pushes addresses in itself.
    fn is_returned_to(&mut self, word: u64) -> bool {
        let of = (self.layout, self.bias);
        if self.heaps.is_in(self.memory, of, word.wrapping_sub(1), Kind::Interpreter) {
            return true;
        }
        self.call_before(word).next().is_some()
    }
}

/// The pieces of the interpreter that are entered by calls.
fn entries(memory: &dyn Memory, layout: &Layout, bias: u64) -> Result<Vec<Range<u64>>, Unreadable> {
    let codelets = &layout.codelets;
    let queue = memory.word(layout.interpreter.wrapping_add(bias))?;
    let mut at = memory.word(queue.wrapping_add(codelets.buffer.into()))?;
    let length = memory.word(queue.wrapping_add(codelets.end.offset.into()))? as u32;
    let end = at.checked_add(length.into()).ok_or(Unreadable(queue))?;
    let mut entries = Vec::new();
    for _ in 0..MAX_CODELETS {
        if at >= end {
            break;
        }
        let size = memory.word(at.wrapping_add(codelets.size.offset.into()))? as u32;
        let next =
            at.checked_add(size.into()).filter(|&next| size >= 8 && next <= end).ok_or(Unreadable(at))?;
        let description = memory.word(at.wrapping_add(codelets.description.into()))?;
        if text(memory, description)?.starts_with(ENTRY) {
            entries.push(at..next);
        }
        at = next;
    }
    Ok(entries)
}

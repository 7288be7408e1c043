//! What to try where call-frame information is missing: conventions, each checked against what the stack holds.

use crate::address::Avma;
use crate::code::{CodeMap, Located};
use crate::memory::{Memory, ReadError};
use crate::walk::{End, Method, Walked, Walker};
use crate::x86_64::{RBP, RIP, RSP};

impl<C: CodeMap, M: Memory> Walker<'_, C, M> {
    /// The caller of a frame without rules. `here`: the file has rules for other code, so this is a stub or
    /// hand-written assembly, which rarely makes a frame; else it is JIT code or a program built without rules, which
    /// has frame pointers if anything.
    pub(crate) fn without_info(&mut self, is_return: bool, here: bool) -> Result<Walked, End> {
        // A caller has touched the stack: it has pushed the return address of its call at the least.
        if here && !is_return {
            self.by_stack_top().or_else(|_| self.by_frame_pointer())
        } else {
            self.by_frame_pointer()
                .or_else(|end| if is_return { Err(end) } else { self.by_stack_top().or(Err(end)) })
        }
    }

    /// The caller of a frame whose program counter is nowhere: a call through a bad pointer has just pushed its
    /// return address.
    pub(crate) fn after_bad_jump(&mut self) -> Result<Walked, End> {
        self.by_stack_top().or(Err(End::NotMapped))
    }

    /// `rbp` points at the saved `rbp`, above which is the return address. Believed if it points into the rest of the
    /// stack and the return address is code.
    fn by_frame_pointer(&mut self) -> Result<Walked, End> {
        let rbp = self.registers.get(RBP).ok_or(End::NoUnwindInfo)?;
        if rbp % 8 != 0 || rbp < self.registers.sp() {
            return Err(End::NoUnwindInfo);
        }
        let slot = Avma(rbp).offset(8);
        // That there is a frame pointer at all is a guess, so only a copy that is too short is a reason of its own.
        let read = |memory: &mut M, at: Avma| match memory.read_u64(at) {
            Ok(value) => Ok(value),
            Err(ReadError::BeyondCopy) => Err(End::BeyondCopy),
            Err(ReadError::Unreadable) => Err(End::NoUnwindInfo),
        };
        let saved = read(self.memory, Avma(rbp))?;
        let pc = read(self.memory, slot)?;
        if pc != 0 && !self.is_code(Avma(pc)) {
            return Err(End::NoUnwindInfo);
        }
        let sp = slot.offset(8).0;
        self.advance_to(sp, false)?;
        self.registers.set(RIP, pc);
        self.registers.set(RSP, sp);
        self.registers.set(RBP, saved);
        self.registers.forget_others();
        Ok(Walked { pc: Avma(pc), is_return: true, found: Method::FramePointer, slot })
    }

    /// The return address is on top of the stack. Believed if that is aligned as after a call, and the word is an
    /// address in code with rules, so that the guess is tested by the next frame.
    fn by_stack_top(&mut self) -> Result<Walked, End> {
        let slot = Avma(self.registers.sp());
        if slot.0 % 16 != 8 {
            return Err(End::NoUnwindInfo);
        }
        let pc = Avma(self.memory.read_u64(slot)?);
        if !self.has_rules(pc) {
            return Err(End::NoUnwindInfo);
        }
        self.registers.set(RIP, pc.0);
        self.registers.set(RSP, slot.offset(8).0);
        Ok(Walked { pc, is_return: true, found: Method::FramePointer, slot })
    }

    fn is_code(&self, return_address: Avma) -> bool {
        !matches!(self.code.locate(return_address.offset(-1)), Located::Unmapped)
    }

    fn has_rules(&mut self, return_address: Avma) -> bool {
        let call = return_address.offset(-1);
        match self.code.locate(call) {
            Located::Module { module, bias } => {
                matches!(module.row_with(call.to_svma(bias), &mut self.cache.scratch), Ok(Some(_)))
            }
            _ => false,
        }
    }
}

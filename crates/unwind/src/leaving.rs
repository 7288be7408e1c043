//! Frames that are being left for another stack frame than their caller's, on architectures that have a link register: by `longjmp`, and by an
//! unwinder for the handler of an exception. The registers, or the slots that rules name, then have in part what the code goes to.

use crate::address::Avma;
use crate::apply::Caller;
use crate::architecture::{Architecture, Landing, Origin};
use crate::code::{CodeMap, Located};
use crate::frame::{End, Walked};
use crate::memory::Memory;
use crate::module::Extent;
use crate::registers::RegisterSet;
use crate::row::{CfaRule, RegisterRule};
use crate::scan::{self, Called};
use crate::walker::{EnteredBy, Walker};

/// Maximum number of words of a frame that are examined: libgcc's unwinder has the largest, of 3.7 KiB.
const MAX_WORDS: usize = 1024;

impl<A: Architecture, C: CodeMap, M: Memory> Walker<'_, A, C, M> {
    /// The caller of an innermost frame whose instructions contradict its rule. `is_bare`: the rule is that of a function without frame; else it
    /// says where in it the return address is.
    #[inline]
    pub(crate) fn by_disagreement(&mut self, is_bare: bool) -> Option<Result<Walked, End>> {
        let pc = Avma(self.registers.ip());
        // Behind a call, the link register has the address of this instruction, which contradicts a rule without frame.
        let has_called = is_bare && A::LR.is_some_and(|link| self.registers.get(link) == Some(pc.0));
        if self.cache.is_agreed(pc) && !has_called {
            None
        } else {
            self.by_contradiction(is_bare, has_called)
        }
    }

    #[inline(never)]
    fn by_contradiction(&mut self, is_bare: bool, has_called: bool) -> Option<Result<Walked, End>> {
        let pc = Avma(self.registers.ip());
        let landing = if is_bare { A::landing(&self.registers, self.memory) } else { None };
        let found = landing.and_then(|landing| self.by_landing(landing));
        if found.is_some() {
            return found;
        }
        match A::correction(&self.registers, is_bare, self.memory) {
            Some(caller) => caller.and_then(|caller| self.by_restored(caller)).map(Ok),
            None => {
                if landing.is_none() && !has_called {
                    self.cache.note_agreed(pc);
                }
                None
            }
        }
    }

    /// The handler that code without a frame goes to.
    fn by_landing(&mut self, landing: Landing) -> Option<Result<Walked, End>> {
        match landing {
            Landing::Not => None,
            // The return address is overwritten.
            Landing::Ahead => Some(Err(End::RegisterUnknown)),
            // A large frame is removed by such an instruction, too.
            Landing::At(_) if !self.was_bare() => None,
            Landing::At(target) => {
                let mut registers = self.registers;
                registers.set(A::PC, target);
                Some(self.enter(Caller { registers, slot: Avma(0) }, EnteredBy::Landing))
            }
        }
    }

    /// Whether the function had no frame before the last instruction, by the rules for it.
    fn was_bare(&mut self) -> bool {
        let before = Avma(self.registers.ip()).offset(-4);
        match self.code.locate(before) {
            Located::Module { module, bias } => {
                let row = module.row_with(before.to_svma(bias), &mut self.cache.scratch);
                matches!(row, Ok(Some(row)) if row.is_bare::<A>())
            }
            _ => false,
        }
    }

    /// By the instructions from the beginning of the function on, for code whose rules are those of what it goes to.
    #[inline(never)]
    pub(crate) fn by_origin(&mut self, is_return: bool) -> Option<Result<Walked, End>> {
        let begin = self.begin(Avma(self.registers.ip()).offset(-i64::from(is_return)))?;
        let (registers, is_target) = match A::origin(begin, &self.registers, self.memory)? {
            Origin::Lost => return Some(Err(End::RegisterUnknown)),
            Origin::Target(_) if is_return => return None,
            Origin::Target(registers) => (registers, true),
            Origin::Caller(registers) => (registers, false),
        };
        let pc = Avma(self.code_address(registers.ip()));
        let follows_call = scan::may_follow_call::<A, M>(self.memory, pc);
        if !self.is_code(pc) || !is_target && !follows_call {
            return None;
        }
        let entered = if follows_call { EnteredBy::Call } else { EnteredBy::Landing };
        Some(self.enter(Caller { registers, slot: Avma(0) }, entered))
    }

    /// The beginning of the function with rules at an address.
    fn begin(&self, at: Avma) -> Option<Avma> {
        match self.code.locate(at) {
            Located::Module { module, bias } => match module.extent(at.to_svma(bias)) {
                Extent::Function(range) => Some(Avma(range.start.0.wrapping_add(bias))),
                Extent::Gap { .. } => None,
            },
            _ => None,
        }
    }

    /// The caller of a function that may leave for a handler. Before it does, it puts the handler's registers where it had saved its caller's. The
    /// return address is in its frame another time then, as the unwinding began with it; the call before it tells.
    pub(crate) fn or_first_caller(&mut self, caller: Caller<A>, is_return: bool) -> Caller<A> {
        let here = Avma(self.registers.ip()).offset(-i64::from(is_return));
        let said = Avma(self.code_address(caller.registers.ip()));
        let mut unsigned = caller.registers;
        unsigned.set(A::PC, said.0);
        let is_landing = !is_return && A::lands_soon(&self.registers, self.memory);
        let may_be = |walker: &mut Self| {
            walker.keeps_record(said, &unsigned) && walker.has_called(said, here, &unsigned)
        };
        if self.is_trial || !is_landing && may_be(self) {
            return caller;
        }
        let (sp, cfa) = (self.registers.sp(), caller.registers.sp());
        for slot in (sp..cfa).step_by(A::WORD as usize).take(MAX_WORDS) {
            let Ok(word) = A::read_word(self.memory, Avma(slot)) else { break };
            let pc = Avma(self.code_address(word));
            if pc == said && !is_landing && Avma(slot) != caller.slot {
                break;
            }
            if pc != said && self.is_code(pc) {
                let registers = RegisterSet::new(pc.0, cfa);
                if self.has_called(pc, here, &registers) {
                    return Caller { registers, slot: Avma(0) };
                }
            }
        }
        caller
    }

    /// Whether the frame pointer is the address of the frame record that a caller's rules name; true if they name none.
    fn keeps_record(&mut self, pc: Avma, caller: &RegisterSet<A>) -> bool {
        let call = pc.offset(-1);
        let Located::Module { module, bias } = self.code.locate(call) else { return true };
        let Ok(Some(row)) = module.row_with(call.to_svma(bias), &mut self.cache.scratch) else { return true };
        match (row.cfa, row.register(A::FP)) {
            (CfaRule::Register { register, offset }, RegisterRule::Offset(at)) if register == A::SP => {
                caller.get(A::FP) == Some(A::add(caller.sp(), offset.wrapping_add(at)))
            }
            _ => true,
        }
    }

    /// Whether the call before `pc` has led to the code at `here`: it names that function; or it may, and rules lead from there to the root. Where the
    /// caller's frame has the size of another, a wrong place leads to the same return address once more.
    fn has_called(&mut self, pc: Avma, here: Avma, caller: &RegisterSet<A>) -> bool {
        match scan::called::<A, C, M>(self.code, self.memory, pc, here) {
            None | Some(Called::Elsewhere) => false,
            Some(Called::Directly) => true,
            Some(Called::Perhaps) => {
                let next = self.trial(caller).by_row(pc, true);
                next.is_ok_and(|next| next.pc != pc) && scan::reaches_root(self, caller)
            }
        }
    }
}

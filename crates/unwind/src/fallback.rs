//! Fallbacks where call-frame information is missing: first the effect of the next instructions, then conventions, each
//! checked against the stack.

use crate::address::Avma;
use crate::apply::Caller;
use crate::architecture::{Architecture, Edge};
use crate::code::{CodeMap, Located};
use crate::frame::{End, Walked};
use crate::memory::{Memory, ReadError};
use crate::method::Method;
use crate::registers::RegisterSet;
use crate::row::{RegisterRule, Row};
use crate::rule::Rule;
use crate::runtime::{RuntimeCaller, RuntimeFrame, RuntimeRule, StackPointer};
use crate::scan::{self, Came};
use crate::walker::{EnteredBy, Walker};

/// More bytes than arguments and environment may have: a quarter of the largest usual stack limit (execve(2)).
const MAX_ARGUMENTS: u64 = 16 << 20;

/// No frame of code without rules is larger than this: the usual limit of a whole stack.
const MAX_FRAME: u64 = 8 << 20;

impl<A: Architecture, C: CodeMap, M: Memory> Walker<'_, A, C, M> {
    /// The caller of a frame without rules. `here`: the file has rules for other code, so this is a stub or
    /// hand-written assembly, which makes a frame of a word at most; else it is JIT code or a program built without
    /// rules, which has frame pointers if anything.
    #[inline(never)]
    pub(crate) fn without_info(&mut self, is_return: bool, here: bool) -> Result<Walked, End> {
        if is_return && A::is_probed_return(self.registers.ip()) {
            return Err(End::ProbedReturn);
        }
        let guessed_sp = self.guessed_sp;
        match self.by_signal_frame() {
            // The kernel's frame is located by the stack pointer, which is only a lower bound here. Its frame record does not help: that has the
            // link register of the interrupted code, which may be old.
            Some(_) if A::LR.is_some() && guessed_sp => return Err(End::NoUnwindInfo),
            Some(interrupted) => return Ok(interrupted),
            None => {}
        }
        if !here && let Some(found) = self.by_runtime(is_return) {
            return found;
        }
        if !is_return && let Some(found) = self.by_edge() {
            return Ok(found);
        }
        if is_return && let Some(found) = self.by_special_code(here) {
            return found;
        }
        if !guessed_sp && let Some(found) = self.by_code_ahead(is_return) {
            return Ok(found);
        }
        // If so, the last pushed word is the caller's frame pointer: the frame is being set up, or has the minimum size.
        let is_framed = self.registers.get(A::FP) == Some(self.registers.sp());
        let found = if here && !is_framed {
            self.by_last_call(is_return, here).or_else(|_| self.by_frame_pointer())
        } else if is_return {
            self.by_frame_pointer()
        } else {
            self.by_frame_pointer().or_else(|end| self.by_last_call(false, here).or(Err(end)))
        };
        match found {
            Err(_) if self.at_process_entry() => Err(End::Root),
            Err(_) if is_return && !here && self.ends_chain() => Err(End::Root),
            Err(_) if !is_return && self.has_probed_return() => Err(End::ProbedReturn),
            found => found,
        }
    }

    /// By the rule of the runtime that has made the code, if one has. Believed if the return address is code.
    fn by_runtime(&mut self, is_return: bool) -> Option<Result<Walked, End>> {
        let frame = RuntimeFrame {
            pc: Avma(self.registers.ip()),
            is_return,
            sp: Avma(self.registers.sp()),
            fp: self.registers.get(A::FP),
        };
        match self.code.runtime_rule(&frame, self.memory) {
            RuntimeRule::None => None,
            RuntimeRule::Unknown => {
                let found =
                    if is_return { None } else { self.by_edge().or_else(|| self.by_code_ahead(false)) };
                Some(found.ok_or(End::NoUnwindInfo))
            }
            RuntimeRule::Caller(caller) => Some(self.by_runtime_rule(caller)),
        }
    }

    fn by_runtime_rule(&mut self, RuntimeCaller { slot, sp, fp }: RuntimeCaller) -> Result<Walked, End> {
        let pc = A::read_word(self.memory, slot)?;
        let pc = Avma(self.code_address(pc));
        if !self.is_code(pc) {
            return Err(End::NoUnwindInfo);
        }
        let sp = match sp {
            StackPointer::Is(sp) => sp,
            StackPointer::At(at) => A::read_word(self.memory, at)?,
        };
        let fp = match fp {
            Some(at) => Some(A::read_word(self.memory, at)?),
            None => self.registers.get(A::FP),
        };
        self.advance_to(sp, false)?;
        self.registers.set(A::PC, pc.0);
        self.registers.set(A::SP, sp);
        fp.into_iter().for_each(|fp| self.registers.set(A::FP, fp));
        self.registers.forget_others();
        self.guessed_sp = false;
        Ok(Walked { pc, is_return: true, found: Method::Cfi, slot })
    }

    /// Whether a probe has replaced the return address on top of the stack, or a word below it, as where the kernel executes a copy of a function's
    /// first instruction.
    fn has_probed_return(&mut self) -> bool {
        let sp = Avma(self.registers.sp());
        let mut top = [sp, sp.offset(A::WORD as i64)].into_iter();
        top.any(|slot| A::read_word(self.memory, slot).is_ok_and(A::is_probed_return))
    }

    /// The caller of a frame whose program counter is nowhere: a call through a bad pointer has just left its return
    /// address, or the kernel's code to return from a signal begins its mapping.
    #[inline(never)]
    pub(crate) fn not_mapped(&mut self, is_return: bool) -> Result<Walked, End> {
        if is_return && A::is_probed_return(self.registers.ip()) {
            return Err(End::ProbedReturn);
        }
        if is_return {
            return self.by_signal_frame().ok_or(End::NotMapped);
        }
        match self.by_failed_call() {
            // A signal handler on a stack of its own has interrupted it.
            Err(end @ (End::StackUnreadable | End::BeyondCopy)) => Err(end),
            Err(_) => self.by_last_call(false, true).map_err(|_| match self.has_probed_return() {
                true => End::ProbedReturn,
                false => End::NotMapped,
            }),
            found => found,
        }
    }

    /// The caller of an address without code, where nothing has run since the call: its return address is on top of the stack, whether or not
    /// that is aligned as the ABI has it. After a jump there, that of the last call is.
    fn by_failed_call(&mut self) -> Result<Walked, End> {
        if A::LR.is_some() {
            return Err(End::NotMapped);
        }
        let slot = Avma(self.registers.sp());
        let pc = Avma(A::read_word(self.memory, slot)?);
        let sp = Avma(A::add(slot.0, A::WORD as i64));
        let believed = if self.has_rules(pc) { self.leads_on(pc, sp) } else { self.is_code(pc) };
        if !believed || !scan::may_follow_call::<A, M>(self.memory, pc) {
            return Err(End::NotMapped);
        }
        self.registers.set(A::PC, pc.0);
        self.registers.set(A::SP, sp.0);
        Ok(Walked { pc, is_return: true, found: Method::FramePointer, slot })
    }

    /// Returns the interrupted frame, if the signal handler has returned to the kernel's code.
    fn by_signal_frame(&mut self) -> Option<Walked> {
        let (registers, slot) = A::interrupted(&self.registers, self.memory)?;
        self.enter(Caller { registers, slot }, EnteredBy::Signal).ok()
    }

    /// Handles code of a known form at the return address: a start routine, a stub of `python -X perf`. Reading a process' code takes a system call,
    /// so addresses without such code are cached.
    fn by_special_code(&mut self, here: bool) -> Option<Result<Walked, End>> {
        let pc = Avma(self.registers.ip());
        if self.cache.is_ordinary(pc) {
            return None;
        }
        if A::ends_thread(pc, self.memory) {
            return Some(Err(End::Root));
        }
        if !here && A::trampoline(pc, self.memory).is_some() {
            return self.by_trampoline().map(Ok);
        }
        self.cache.note_ordinary(pc);
        None
    }

    /// Steps through a stub that reserves a word, calls and returns; `python -X perf` has one for each function. It is recognized by its bytes,
    /// and the return address has to be in code.
    fn by_trampoline(&mut self) -> Option<Walked> {
        let room = A::trampoline(Avma(self.registers.ip()), self.memory)?;
        let slot = Avma(A::add(self.registers.sp(), room));
        let pc = A::read_word(self.memory, slot).ok()?;
        let pc = Avma(self.code_address(pc));
        if !self.is_code(pc) {
            return None;
        }
        self.registers.set(A::PC, pc.0);
        self.registers.set(A::SP, A::add(slot.0, A::WORD as i64));
        Some(Walked { pc, is_return: true, found: Method::FramePointer, slot })
    }

    /// By what the code is about to do. Believed if the return address is code.
    pub(crate) fn by_edge(&mut self) -> Option<Walked> {
        let edge = A::edge(Avma(self.registers.ip()), self.memory)?;
        let sp = self.registers.sp();
        let slot = match edge {
            Edge::Bare => Avma(sp),
            Edge::Pushed => Avma(A::add(sp, A::WORD as i64)),
        };
        let pc = A::read_word(self.memory, slot).ok()?;
        let pc = Avma(self.code_address(pc));
        let fp = match edge {
            Edge::Bare => self.registers.get(A::FP),
            Edge::Pushed => A::read_word(self.memory, Avma(sp)).ok(),
        };
        if !self.is_code(pc) {
            return None;
        }
        self.registers.set(A::PC, pc.0);
        self.registers.set(A::SP, A::add(slot.0, A::WORD as i64));
        fp.into_iter().for_each(|fp| self.registers.set(A::FP, fp));
        (0..A::PC).filter(|&register| !A::is_preserved(register)).for_each(|register| {
            self.registers.forget(register);
        });
        Some(Walked { pc, is_return: true, found: Method::FramePointer, slot })
    }

    /// By what the code does until it returns. Believed if the return address follows a call.
    fn by_code_ahead(&mut self, is_return: bool) -> Option<Walked> {
        let caller = A::ahead(&self.registers, is_return, self.memory)?;
        self.by_restored(caller)
    }

    /// By what the code does until it returns, if a row is contradicted by that, or by the fact that the code has called.
    pub(crate) fn by_instructions(&mut self, row: &Row, is_return: bool) -> Option<Result<Walked, End>> {
        let is_bare = row.is_bare::<A>();
        let is_saved = matches!(row.register(A::PC), RegisterRule::Offset(..0));
        match A::LR {
            Some(_) if is_return && is_bare => self.by_code_ahead(true).map(Ok),
            Some(_) if !is_return && (is_bare || is_saved) => self.by_disagreement(is_bare),
            Some(_) if !is_return && row.register(A::PC) == RegisterRule::Undefined => {
                self.by_link_at_root().map(Ok)
            }
            Some(_) if row.is_elsewhere::<A>() => self.by_origin(is_return),
            _ => None,
        }
    }

    /// The caller of code that shares its rules with a start routine, which has none: what the code does until it returns keeps the link register and
    /// the stack pointer.
    #[inline(never)]
    pub(crate) fn by_link_at_root(&mut self) -> Option<Walked> {
        let (registers, slot) = A::ahead(&self.registers, false, self.memory)?;
        let is_bare = slot == Avma(0) && registers.sp() == self.registers.sp();
        if is_bare { self.by_restored((registers, slot)) } else { None }
    }

    pub(crate) fn by_restored(&mut self, (registers, slot): (RegisterSet<A>, Avma)) -> Option<Walked> {
        let pc = Avma(self.code_address(registers.ip()));
        if !self.is_code(pc) || !scan::may_follow_call::<A, M>(self.memory, pc) {
            return None;
        }
        let found = self.enter(Caller { registers, slot }, EnteredBy::Call).ok()?;
        Some(Walked { found: Method::FramePointer, ..found })
    }

    /// The frame pointer points at the saved one, above which is the return address. Believed if it points into the rest of the
    /// stack and the return address is code.
    pub(crate) fn by_frame_pointer(&mut self) -> Result<Walked, End> {
        let fp = self.registers.get(A::FP).ok_or(End::NoUnwindInfo)?;
        // A value that is not further up the stack by a plausible distance is not a frame pointer.
        let distance = fp.checked_sub(self.registers.sp());
        if fp % A::WORD != 0 || distance.is_none_or(|distance| distance > MAX_FRAME) {
            return Err(End::NoUnwindInfo);
        }
        let slot = Avma(A::add(fp, A::WORD as i64));
        // The frame pointer itself is a guess, so only a copy that is too short is reported as a reason of its own.
        let read = |memory: &mut M, at: Avma| match A::read_word(memory, at) {
            Ok(value) => Ok(value),
            Err(ReadError::BeyondCopy) => Err(End::BeyondCopy),
            Err(ReadError::Unreadable) => Err(End::NoUnwindInfo),
        };
        let saved = read(self.memory, Avma(fp))?;
        let pc = read(self.memory, slot)?;
        let pc = self.code_address(pc);
        // The outermost frame has zeros (System V ABI, AMD64 supplement, §3.4.1); a zero alone means nothing.
        let is_outermost = pc == 0 && saved == 0;
        let is_caller =
            is_outermost || self.may_be_returned_to(Avma(pc)) && self.came_from(Avma(pc)) != Came::Never;
        if !is_caller {
            return Err(End::NoUnwindInfo);
        }
        let sp = A::add(slot.0, A::WORD as i64);
        self.advance_to(sp, false)?;
        self.registers.set(A::PC, pc);
        self.registers.set(A::SP, sp);
        self.registers.set(A::FP, saved);
        self.registers.forget_others();
        self.outermost_sp = (saved == 0).then_some(sp);
        self.guessed_sp = A::LR.is_some();
        Ok(Walked { pc: Avma(pc), is_return: true, found: Method::FramePointer, slot })
    }

    /// The caller of a frame whose rule needs the stack pointer, which is not known: through the frame pointer. If the
    /// rule says that the frame pointer and the return address are saved side by side, as in frame records (AAPCS64
    /// §6.4.6), it also says where the frame ends.
    #[inline(never)]
    pub(crate) fn by_frame_record(&mut self, rule: Rule) -> Result<Walked, End> {
        let record = self.fp()?;
        let found = self.by_frame_pointer()?;
        let cfa = A::add(record, -i64::from(rule.fp) * A::WORD as i64);
        if rule.fp != 0 && rule.return_address() == i64::from(rule.fp) + 1 && cfa >= self.registers.sp() {
            self.registers.set(A::SP, cfa);
            self.guessed_sp = false;
        }
        Ok(found)
    }

    /// By where the last call left its return address: on the stack or in the link register.
    fn by_last_call(&mut self, is_return: bool, here: bool) -> Result<Walked, End> {
        match A::LR {
            None => self.by_stack_top(is_return, here),
            Some(link) if !is_return => self.by_link_register(link),
            Some(_) => Err(End::NoUnwindInfo),
        }
    }

    /// The return address is still in the link register. Believed if it is code.
    fn by_link_register(&mut self, link: u16) -> Result<Walked, End> {
        let value = self.registers.get(link).ok_or(End::NoUnwindInfo)?;
        let pc = Avma(self.code_address(value));
        if pc == Avma(self.registers.ip()) || !self.is_code(pc) {
            return Err(End::NoUnwindInfo);
        }
        self.registers.set(A::PC, pc.0);
        self.registers.forget(link);
        Ok(Walked { pc, is_return: true, found: Method::FramePointer, slot: Avma(0) })
    }

    /// The return address is on top of the stack, or a word below it (a pushed register, or what keeps the stack
    /// aligned for a call): in the first place that is aligned as return addresses are. Believed if it follows a call and is in code with
    /// rules that lead to code again: what was there before is often left where code without rules has room. If the call names another function
    /// that is not known to jump here, rules have to lead to the root; likewise for a word below the top of code that has no frame pointer and is
    /// in no file that has rules, as its frame may have any size.
    fn by_stack_top(&mut self, is_return: bool, here: bool) -> Result<Walked, End> {
        let sp = self.registers.sp();
        let slot = match sp % 16 {
            // A caller has a word of its own, or the stack was not aligned at its call.
            8 if !is_return => Avma(sp),
            0 => Avma(sp).offset(8),
            _ => return Err(End::NoUnwindInfo),
        };
        let pc = Avma(self.memory.read_u64(slot)?);
        let (is_below, sp) = (slot.0 != sp, slot.offset(8));
        let believed = match self.has_rules(pc) {
            true if here || !is_below => self.leads_on(pc, sp),
            true => !self.is_trial && self.leads_to_root(pc, sp),
            false => !is_below && self.is_code(pc),
        };
        if !believed || !scan::may_follow_call::<A, M>(self.memory, pc) {
            return Err(End::NoUnwindInfo);
        }
        let came = self.came_from(pc);
        if came != Came::Here && (self.is_trial || !self.leads_to_root(pc, sp)) {
            return Err(End::NoUnwindInfo);
        }
        self.registers.set(A::PC, pc.0);
        self.registers.set(A::SP, sp.0);
        Ok(Walked { pc, is_return: true, found: Method::FramePointer, slot })
    }

    /// Whether the stack is as the kernel hands it to a new program (System V ABI, AMD64 supplement, §3.4.1): the
    /// number of arguments (one at least), pointers to them further up, a zero, the environment. Then this is the program's or the
    /// loader's first function, which has no caller and often no rules.
    fn at_process_entry(&mut self) -> bool {
        let sp = self.registers.sp();
        self.begins_process(sp)
    }

    /// As `at_process_entry`, with the stack pointer at `sp`.
    pub(crate) fn begins_process(&mut self, sp: u64) -> bool {
        let mut word = |index: u64| A::read_word(self.memory, Avma(sp.wrapping_add(A::WORD * index))).ok();
        let is_above = |word: Option<u64>| word.is_some_and(|word| word > sp && word - sp < MAX_ARGUMENTS);
        let Some(count) = word(0)
            .filter(|&count| sp.is_multiple_of(2 * A::WORD) && (1..MAX_ARGUMENTS / A::WORD).contains(&count))
        else {
            return false;
        };
        let arguments = is_above(word(1)) && is_above(word(count));
        let environment = word(count + 2);
        arguments && word(count + 1) == Some(0) && (environment == Some(0) || is_above(environment))
    }

    /// Whether the chain of frame pointers that led here ends here: Erlang's processes return to code that has no caller.
    fn ends_chain(&self) -> bool {
        self.outermost_sp == Some(self.registers.sp()) && self.code.ends_chains_with_zero()
    }

    /// Whether the rules for a return address, with the stack pointer as it leaves it, lead to code again or to the root.
    fn leads_on(&mut self, pc: Avma, sp: Avma) -> bool {
        let mut caller = self.registers;
        caller.set(A::PC, pc.0);
        caller.set(A::SP, sp.0);
        let code = self.code;
        match self.trial(&caller).by_row(pc, true) {
            Ok(Walked { pc: Avma(0), .. }) | Err(End::Root) => true,
            Ok(next) => !matches!(code.locate(next.pc.offset(-i64::from(next.is_return))), Located::Unmapped),
            Err(_) => false,
        }
    }

    pub(crate) fn is_code(&self, return_address: Avma) -> bool {
        !matches!(self.code.locate(return_address.offset(-1)), Located::Unmapped)
    }

    /// Whether they lead to the root.
    fn leads_to_root(&mut self, pc: Avma, sp: Avma) -> bool {
        let mut caller = self.registers;
        caller.set(A::PC, pc.0);
        caller.set(A::SP, sp.0);
        scan::reaches_root(self, &caller)
    }

    /// Whether a word that a frame pointer leads to may be a return address. Code of a file is returned to behind a call, or ends its
    /// thread; where neither is there, the frame pointer was some other value, such as the frame of a compiler that keeps it elsewhere. An
    /// interpreter that makes its code pushes what it wants to be returned to.
    fn may_be_returned_to(&mut self, pc: Avma) -> bool {
        match self.code.locate(pc.offset(-1)) {
            Located::Unmapped => false,
            Located::Module { .. } => {
                scan::may_follow_call::<A, M>(self.memory, pc) || A::ends_thread(pc, self.memory)
            }
            Located::NoInfo | Located::Unreadable => true,
        }
    }

    /// Returns how the code at hand came to run after the call before `pc`, which may be of a caller further out, or of a call that has returned.
    fn came_from(&mut self, pc: Avma) -> Came {
        let (here, code) = (Avma(self.registers.ip()), self.code);
        let mut came = |here| scan::came_from::<A, C, M>(code, self.memory, pc, here);
        let before = if A::LR.is_some() { Came::Here } else { came(here.offset(-1)) };
        if before == Came::Here { before } else { before.max(came(here)) }
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

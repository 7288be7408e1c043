//! The walk, frame by frame: by cached rules, full rows, and (`fallback`) what is tried where there are none.
//!
//! Not here: who walks how, which is `walk`'s and, where words are at hand, `fast`'s.

use alloc::vec::Vec;

use crate::address::Avma;
use crate::apply::{Caller, Source, apply, is_in_link, is_popped_fp};
use crate::architecture::Architecture;
use crate::cache::{Cache, Key};
use crate::code::{CodeMap, Located};
use crate::frame::{End, Walked};
use crate::learn::learn;
use crate::memory::Memory;
use crate::method::Method;
use crate::registers::RegisterSet;
use crate::row::Row;
use crate::rule::{Kind, Rule};

/// Most restarts of a walk because a register turned out to be needed. Each restart gets further.
const MAX_RESTARTS: usize = 4;
/// Most times that a stack may go back to lower addresses: signal handlers on alternate stacks and code that switches
/// stacks do that, and damaged stacks.
const MAX_JUMPS: u32 = 16;

/// The way in which a frame's code was entered from its caller.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnteredBy {
    /// The caller called it, and has the return address as program counter.
    Call,
    /// A signal interrupted the caller.
    Signal,
    /// The code leaves for the handler of an exception, which counts as its caller.
    Landing,
}

impl EnteredBy {
    fn of<A: Architecture>(row: &Row) -> EnteredBy {
        match row.is_signal {
            true => EnteredBy::Signal,
            false if A::lands(row) => EnteredBy::Landing,
            false => EnteredBy::Call,
        }
    }
}

/// A walk under way.
#[derive(Debug)]
pub(crate) struct Walker<'w, A: Architecture, C, M> {
    pub(crate) code: &'w C,
    pub(crate) memory: &'w mut M,
    pub(crate) cache: &'w mut Cache,
    /// Registers of the last frame that was found.
    pub(crate) registers: RegisterSet<A>,
    /// Address of the saved frame pointer, if its value was not needed so far.
    pub(crate) saved_fp: Option<Avma>,
    /// Number of frames that are walked by full rows, because a later frame needs a register that compact rules drop.
    pub(crate) full_until: usize,
    /// Number of times that the stack pointer did not grow.
    jumps: u32,
    /// Registers were dropped since the start.
    pub(crate) lost: bool,
    /// The stack pointer is only a lower bound: a frame was found through the frame pointer, which on this
    /// architecture does not determine the end of its frame.
    pub(crate) guessed_sp: bool,
    /// The stack pointer of a frame whose own frame pointer was saved as zero, if a frame was found that way.
    pub(crate) outermost_sp: Option<u64>,
    /// The stack pointer of the first frame; everything below was popped.
    lowest: u64,
    /// This walk tests a guess, and makes no guesses that need a test: on a crafted stack, these would test each other for ever.
    pub(crate) is_trial: bool,
}

impl<'w, A: Architecture, C: CodeMap, M: Memory> Walker<'w, A, C, M> {
    #[inline]
    pub(crate) fn new(code: &'w C, memory: &'w mut M, cache: &'w mut Cache, start: &RegisterSet<A>) -> Self {
        Walker {
            code,
            memory,
            cache,
            registers: *start,
            saved_fp: None,
            full_until: 0,
            jumps: 0,
            lost: false,
            guessed_sp: false,
            outermost_sp: None,
            lowest: start.sp(),
            is_trial: false,
        }
    }

    /// A walk from `start` that tests whether it leads anywhere.
    pub(crate) fn trial(&mut self, start: &RegisterSet<A>) -> Walker<'_, A, C, M> {
        Walker { is_trial: true, ..Walker::new(self.code, &mut *self.memory, &mut *self.cache, start) }
    }

    /// Restarts the walk from `start` with all registers followed up to frame `count`, after a rule lacked one. False if no restart is left, or
    /// no register was lost.
    pub(crate) fn begin_again(&mut self, start: &RegisterSet<A>, count: usize, restarts: &mut usize) -> bool {
        if !self.lost || *restarts == MAX_RESTARTS {
            return false;
        }
        *restarts += 1;
        self.registers = *start;
        self.saved_fp = None;
        self.jumps = 0;
        self.lost = false;
        self.guessed_sp = false;
        // Compact rules had dropped the register; follow all registers up to the frame that needs it.
        self.full_until = if *restarts < MAX_RESTARTS { count } else { usize::MAX };
        true
    }

    /// Walks from `registers` to the end.
    pub(crate) fn run(&mut self, limit: usize, frames: &mut Vec<Walked>) -> End {
        frames.clear();
        let pc = Avma(self.registers.ip());
        let mut frame = Walked { pc, is_return: false, found: Method::Sampled, slot: Avma(0) };
        loop {
            if frames.len() >= limit {
                return End::TooManyFrames;
            }
            frames.push(frame);
            let full = frames.len() <= self.full_until;
            frame = match self.step_out(frame.pc, frame.is_return, full) {
                Ok(caller) => caller,
                Err(end) => return end,
            };
            if A::LR.is_some() && A::WORD == 8 && frame.is_return && frames.len() >= self.full_until {
                frame = self.by_linked_words(frame, limit, frames);
            }
        }
    }

    /// As [`Walker::caller`], where a return address of zero is the root.
    #[inline(always)]
    pub(crate) fn step_out(&mut self, pc: Avma, is_return: bool, full: bool) -> Result<Walked, End> {
        match self.caller(pc, is_return, full)? {
            Walked { pc: Avma(0), is_return: true, .. } => Err(End::Root),
            caller => Ok(caller),
        }
    }

    #[inline(always)]
    pub(crate) fn caller(&mut self, pc: Avma, is_return: bool, full: bool) -> Result<Walked, End> {
        if pc.0 >> 63 != 0 {
            return if is_return { None } else { self.by_edge() }.ok_or(End::NotMapped);
        }
        if full {
            return self.by_row(pc, is_return);
        }
        let key = Key { pc, is_return };
        let known = self.cache.packed(key).or_else(|| self.cache.recall(key));
        let rule = match known.and_then(|packed| self.cache.unpack(packed)) {
            Some(rule) => rule,
            None => match learn::<A, C>(self.code, self.cache, key) {
                Ok((rule, _)) => rule,
                Err(End::NotMapped) => return self.not_mapped(is_return),
                Err(end) => return Err(end),
            },
        };
        if A::LR.is_some() && !is_return && matches!(rule.kind, Kind::Sp | Kind::Fp) {
            let is_bare = rule.kind == Kind::Sp && rule.value == 0 && rule.ra == 0;
            if (is_bare || rule.ra != 0)
                && let Some(found) = self.by_disagreement(is_bare)
            {
                return found;
            }
        }
        match rule.kind {
            Kind::Sp if A::LR.is_some() && self.guessed_sp => self.by_frame_record(rule),
            Kind::Sp => self.compact(self.registers.sp(), rule),
            Kind::Fp => {
                let base = self.fp()?;
                self.compact(base, rule)
            }
            Kind::Odd => self.odd(rule, is_return),
            Kind::Root if A::LR.is_some() && !is_return => self.by_link_at_root().ok_or(End::Root),
            Kind::Root => Err(End::Root),
            Kind::Missing | Kind::MissingHere => {
                let _ = self.fp();
                self.without_info(is_return, rule.kind == Kind::MissingHere)
            }
            Kind::Bad => Err(End::BadUnwindInfo),
            Kind::Full => {
                let _ = self.fp();
                self.by_row(pc, is_return)
            }
        }
    }

    /// Applies a compact rule.
    #[inline(always)]
    fn compact(&mut self, base: u64, rule: Rule) -> Result<Walked, End> {
        let cfa = A::add(base, rule.value.into());
        let slot = |words: i64| Avma(A::add(cfa, words * A::WORD as i64));
        let (pc, at) = match A::LR {
            // Not saved, or popped again.
            Some(link) if rule.ra == 0 || is_in_link(slot(rule.return_address()), &self.registers) => {
                self.advance_to(cfa, true)?;
                (self.registers.get(link).ok_or(End::RegisterUnknown)?, Avma(0))
            }
            _ => {
                self.advance_to(cfa, false)?;
                let at = slot(if A::LR.is_none() { -1 } else { rule.return_address() });
                (A::read_word(self.memory, at)?, at)
            }
        };
        let pc = self.code_address(pc);
        if rule.fp != 0 {
            self.saved_fp = Some(slot(rule.fp.into()));
        }
        self.registers.set(A::PC, pc);
        self.registers.set(A::SP, cfa);
        self.registers.forget_others();
        self.lost = true;
        if A::LR.is_some() {
            self.guessed_sp = false;
        }
        Ok(Walked { pc: Avma(pc), is_return: true, found: Method::Cfi, slot: at })
    }

    /// Applies a row from the side table.
    #[inline(never)]
    fn odd(&mut self, rule: Rule, is_return: bool) -> Result<Walked, End> {
        let _ = self.fp();
        let odd = self.cache.odd(rule).ok_or(End::BadUnwindInfo)?;
        if A::LR.is_some() && self.guessed_sp && odd.row.is_on(A::SP) {
            return self.by_frame_pointer();
        }
        if A::LR.is_some()
            && odd.row.is_elsewhere::<A>()
            && let Some(found) = self.by_origin(is_return)
        {
            return found;
        }
        let odd = self.cache.odd(rule).ok_or(End::BadUnwindInfo)?;
        let entered = EnteredBy::of::<A>(&odd.row);
        let may_land = A::LR.is_some() && A::may_land(&odd.row);
        let source = Source { row: &odd.row, text: &odd.text, bias: odd.bias };
        let mut caller = caller_by(&source, &self.registers, self.memory)?;
        if may_land {
            caller = self.or_first_caller(caller, is_return);
        }
        self.enter(caller, entered)
    }

    /// Finds and applies a full row.
    #[inline(never)]
    pub(crate) fn by_row(&mut self, pc: Avma, is_return: bool) -> Result<Walked, End> {
        let lookup = pc.offset(-i64::from(is_return));
        let (caller, entered) = match self.code.locate(lookup) {
            Located::Unmapped => return self.not_mapped(is_return),
            Located::Unreadable => return Err(End::FileUnreadable),
            Located::NoInfo => return self.without_info(is_return, false),
            Located::Module { module, .. } if module.isa() != A::ISA => return Err(End::BadUnwindInfo),
            Located::Module { module, bias } => {
                match module.frame_row(lookup.to_svma(bias), &mut self.cache.scratch) {
                    Err(_) => return Err(End::BadUnwindInfo),
                    Ok(None) => return self.without_info(is_return, module.has_info()),
                    Ok(Some(row)) if A::LR.is_some() && self.guessed_sp && row.is_on(A::SP) => {
                        return self.by_frame_pointer();
                    }
                    Ok(Some(row)) => {
                        if let Some(found) = self.by_instructions(&row, is_return) {
                            return found;
                        }
                        let source = Source { row: &row, text: module.text(row.section), bias };
                        let mut caller = caller_by(&source, &self.registers, self.memory)?;
                        if A::LR.is_some() && A::may_land(&row) {
                            caller = self.or_first_caller(caller, is_return);
                        }
                        (caller, EnteredBy::of::<A>(&row))
                    }
                }
            }
        };
        self.enter(caller, entered)
    }

    /// Makes the caller the current frame.
    pub(crate) fn enter(&mut self, mut caller: Caller<A>, entered: EnteredBy) -> Result<Walked, End> {
        let pc = self.code_address(caller.registers.ip());
        caller.registers.set(A::PC, pc);
        // A frame that keeps its return address in a register may have an empty stack frame.
        let may_stay = caller.slot == Avma(0) && pc != self.registers.ip();
        self.advance_to(caller.registers.sp(), may_stay)?;
        self.registers = caller.registers;
        self.saved_fp = None;
        self.guessed_sp = false;
        let found = if entered == EnteredBy::Signal { Method::Signal } else { Method::Cfi };
        Ok(Walked { pc: Avma(pc), is_return: entered == EnteredBy::Call, found, slot: caller.slot })
    }

    /// Makes a caller that was found by no rule the current frame.
    pub(crate) fn restart(&mut self, registers: RegisterSet<A>) {
        self.registers = registers;
        self.saved_fp = None;
        self.guessed_sp = false;
    }

    /// Checks that the stack pointer moves on to `sp`. It may go back, or stay, a few times.
    #[inline]
    pub(crate) fn advance_to(&mut self, sp: u64, may_stay: bool) -> Result<(), End> {
        let old = self.registers.sp();
        if sp > old || (may_stay && sp == old) {
            return Ok(());
        }
        self.jumps += 1;
        if sp == old || self.jumps > MAX_JUMPS { Err(End::NotAdvancing) } else { Ok(()) }
    }

    /// The value of the frame pointer, read now if it was saved.
    pub(crate) fn fp(&mut self) -> Result<u64, End> {
        if let Some(slot) = self.saved_fp.take() {
            match A::read_word(self.memory, slot) {
                Ok(value) => self.registers.set(A::FP, value),
                // Popped, where the rule of the first frame still says that it is saved: it has its value.
                Err(_) if is_popped_fp::<A>(slot, self.lowest) => {}
                Err(error) => {
                    self.registers.forget(A::FP);
                    return Err(error.into());
                }
            }
        }
        self.registers.get(A::FP).ok_or(End::RegisterUnknown)
    }

    /// A return address as the address of code.
    #[inline(always)]
    pub(crate) fn code_address(&self, value: u64) -> u64 {
        A::code_address(value, self.code.address_bits())
    }
}

/// The caller by a row, or by what the architecture knows better.
fn caller_by<A: Architecture, M: Memory>(
    source: &Source<'_>,
    registers: &RegisterSet<A>,
    memory: &mut M,
) -> Result<Caller<A>, End> {
    match A::interrupted_by_row(source.row, registers, memory) {
        Some((registers, slot)) => Ok(Caller { registers, slot }),
        None => apply(source, registers, memory),
    }
}

//! Applies a full row to all registers of a frame, which yields the caller's registers.

use crate::address::Avma;
use crate::architecture::Architecture;
use crate::expression::{self, Context, Fault};
use crate::frame::End;
use crate::memory::Memory;
use crate::registers::RegisterSet;
use crate::row::{CfaRule, Expression, RegisterRule, Row};

/// Size in bytes of the largest set of registers that an epilogue can pop, on any architecture.
const POPPED: u64 = 512;

/// The caller of a frame.
pub(crate) struct Caller<A: Architecture> {
    pub(crate) registers: RegisterSet<A>,
    /// Address that the return address was read from; 0 if it was not in memory.
    pub(crate) slot: Avma,
}

/// A row and the context needed to evaluate it.
pub(crate) struct Source<'a> {
    pub(crate) row: &'a Row,
    /// Text that the row's expressions index into.
    pub(crate) text: &'a [u8],
    pub(crate) bias: u64,
}

/// Computes the caller's registers from the rules of a row. The program counter is the raw return address.
pub(crate) fn apply<A: Architecture, M: Memory>(
    source: &Source<'_>,
    registers: &RegisterSet<A>,
    memory: &mut M,
) -> Result<Caller<A>, End> {
    let row = source.row;
    if row.register(A::PC) == RegisterRule::Undefined {
        return Err(End::Root);
    }
    let cfa = cfa(source, registers, memory)?;
    let restored = A::has_restored(row, source.text, cfa, registers, memory);
    let lands = A::lands(row);
    let is_leaf =
        A::LR.is_some() && matches!(row.register(A::PC), RegisterRule::Unspecified | RegisterRule::SameValue);
    let mut caller = Caller { registers: *registers, slot: Avma(0) };
    caller.registers.set(A::SP, cfa);
    for register in 0..A::COUNT {
        let mut rule = row.register(register);
        if restored && A::is_restored(rule, source.text) {
            rule = RegisterRule::SameValue;
        }
        if lands && register != A::PC && matches!(rule, RegisterRule::Offset(_)) {
            rule = RegisterRule::SameValue;
        }
        if register == A::PC && is_in_slot::<A>(rule, cfa, |slot| is_in_link(slot, registers)) {
            rule = RegisterRule::SameValue;
        }
        match value(source, rule, cfa, registers, memory) {
            Ok(Found::Unsaid | Found::Same) if register == A::PC => {
                // The return address still is where the call left it.
                let link = A::LR.ok_or(End::BadUnwindInfo)?;
                let value = registers.get(link).ok_or(End::RegisterUnknown)?;
                caller.registers.set(A::PC, value);
            }
            // `caller.registers` began as a copy in which only the stack pointer was replaced.
            Ok(Found::Same) if register == A::SP => caller.registers.set(A::SP, registers.sp()),
            Ok(Found::Same) => {}
            // By default, the stack pointer is the CFA, and a register that calls do not preserve is lost.
            Ok(Found::Unsaid) if register == A::SP || A::is_preserved(register) => {}
            // Assembly that calls a function known to preserve more may keep its own return address in such a register.
            Ok(Found::Unsaid) if is_leaf && A::LR != Some(register) => {}
            Ok(Found::Unsaid | Found::Lost) => caller.registers.forget(register),
            Ok(Found::Value { value, slot }) => {
                caller.registers.set(register, value);
                if register == A::PC {
                    caller.slot = slot;
                }
            }
            Err(fault) if register == A::PC || register == A::SP => return Err(end(fault)),
            // Same case as in `Walker::fp`.
            Err(Fault::Memory(_)) if is_saved_below(register, rule, cfa, registers) => {}
            // Whether this register matters shows when it is needed.
            Err(_) => caller.registers.forget(register),
        }
    }
    if let Some(sp) = behind_return_address::<A>(row, cfa) {
        caller.registers.set(A::SP, sp);
    }
    Ok(caller)
}

/// Computes the CFA of a frame.
fn cfa<A: Architecture, M: Memory>(
    source: &Source<'_>,
    registers: &RegisterSet<A>,
    memory: &mut M,
) -> Result<u64, End> {
    match source.row.cfa {
        CfaRule::Undefined => Err(End::BadUnwindInfo),
        CfaRule::Register { register, offset } => {
            Ok(A::add(registers.get(register).ok_or(End::RegisterUnknown)?, offset))
        }
        CfaRule::Expression(expression) => {
            let mut context = Context { registers, memory, bias: source.bias };
            expression::evaluate(expression.bytes(source.text), None, &mut context).map_err(end)
        }
    }
}

/// Returns whether an epilogue has popped the return address into the link register, although its rule places it in this slot.
#[inline(always)]
pub(crate) fn is_in_link<A: Architecture>(slot: Avma, registers: &RegisterSet<A>) -> bool {
    is_popped(slot, registers.sp()) && A::LR.is_some_and(|link| registers.get(link).is_some())
}

/// Returns the end of a frame that has its return address above the CFA: a stub has pushed that, together with a word below, before it jumped
/// to code whose rules begin with the pushed words as if they were the caller's.
fn behind_return_address<A: Architecture>(row: &Row, cfa: u64) -> Option<u64> {
    match (A::LR, row.cfa, row.register(A::PC)) {
        (Some(_), CfaRule::Register { register, .. }, RegisterRule::Offset(offset @ 0..))
            if register == A::SP && !row.is_signal =>
        {
            Some(A::add(cfa, offset + A::WORD as i64))
        }
        _ => None,
    }
}

/// Returns whether a rule places a register in a slot that an epilogue has already popped.
fn is_saved_below<A: Architecture>(
    register: u16,
    rule: RegisterRule,
    cfa: u64,
    registers: &RegisterSet<A>,
) -> bool {
    let is_popped = if register == A::FP { is_popped_fp::<A> } else { is_popped };
    is_in_slot::<A>(rule, cfa, |slot| is_popped(slot, registers.sp()))
}

/// Returns whether the frame pointer's slot is popped. With a link register, the word above it has the return address and is popped along
/// with it: Go keeps that word on top of the stack, and the frame pointer below.
pub(crate) fn is_popped_fp<A: Architecture>(slot: Avma, sp: u64) -> bool {
    is_popped(if A::LR.is_some() { slot.offset(A::WORD as i64) } else { slot }, sp)
}

/// Returns whether a rule places a register in a slot of this kind.
fn is_in_slot<A: Architecture>(rule: RegisterRule, cfa: u64, is_kind: impl Fn(Avma) -> bool) -> bool {
    matches!(rule, RegisterRule::Offset(offset) if is_kind(Avma(A::add(cfa, offset))))
}

/// Returns whether a slot is below the stack pointer by at most [`POPPED`] bytes. An epilogue has then popped its
/// value, although the frame's rule still says that it is there, as GCC leaves it. The kernel copies no stack below
/// the stack pointer.
fn is_popped(slot: Avma, sp: u64) -> bool {
    (1..=POPPED).contains(&sp.wrapping_sub(slot.0))
}

/// Result of evaluating a register rule.
enum Found {
    /// Unspecified: the ABI's default applies.
    Unsaid,
    /// Unchanged.
    Same,
    /// Lost.
    Lost,
    /// The value, and the address it was read from, or 0.
    Value { value: u64, slot: Avma },
}

fn value<A: Architecture, M: Memory>(
    source: &Source<'_>,
    rule: RegisterRule,
    cfa: u64,
    registers: &RegisterSet<A>,
    memory: &mut M,
) -> Result<Found, Fault> {
    let computed = |value| Found::Value { value, slot: Avma(0) };
    let evaluate = |expression: Expression, memory: &mut M| {
        let mut context = Context { registers, memory, bias: source.bias };
        expression::evaluate(expression.bytes(source.text), Some(cfa), &mut context)
    };
    let load = |slot: Avma, memory: &mut M| {
        let value = A::read_word(memory, slot).map_err(Fault::Memory)?;
        Ok(Found::Value { value, slot })
    };
    match rule {
        RegisterRule::Unspecified => Ok(Found::Unsaid),
        RegisterRule::Undefined => Ok(Found::Lost),
        RegisterRule::SameValue => Ok(Found::Same),
        RegisterRule::Offset(offset) => load(Avma(A::add(cfa, offset)), memory),
        RegisterRule::ValOffset(offset) => Ok(computed(A::add(cfa, offset))),
        RegisterRule::Register(other) => Ok(computed(registers.get(other).ok_or(Fault::Register)?)),
        RegisterRule::Expression(expression) => {
            let slot = Avma(evaluate(expression, memory)?);
            load(slot, memory)
        }
        RegisterRule::ValExpression(expression) => Ok(computed(evaluate(expression, memory)?)),
    }
}

fn end(fault: Fault) -> End {
    match fault {
        Fault::Bad => End::BadUnwindInfo,
        Fault::Register => End::RegisterUnknown,
        Fault::Memory(error) => error.into(),
    }
}

//! Evaluates DWARF expressions (DWARF 5 §2.5) as they appear in call-frame information.
//!
//! Work is bounded: at most [`MAX_STEPS`] operations on a stack of [`STACK`] values. Operations that need more than
//! registers and memory (types, threads, other frames) are rejected.

use crate::address::Avma;
use crate::architecture::Architecture;
use crate::cfi::{CfiError, Reader, SectionKind};
use crate::memory::{Memory, ReadError};
use crate::registers::RegisterSet;

/// Maximum depth of the stack. Real expressions need four or five values.
const STACK: usize = 32;
/// Maximum number of operations. Real expressions have about ten.
const MAX_STEPS: usize = 512;

/// Reason why an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The expression is damaged or uses an unknown operation.
    Bad,
    /// A register that it uses is unknown.
    Register,
    /// Memory that it reads is not readable.
    Memory(ReadError),
}

impl From<CfiError> for Fault {
    fn from(_: CfiError) -> Fault {
        Fault::Bad
    }
}

/// Inputs of an expression.
pub(crate) struct Context<'a, A: Architecture, M> {
    pub(crate) registers: &'a RegisterSet<A>,
    pub(crate) memory: &'a mut M,
    /// Load bias of the module, added to the operand of `DW_OP_addr`.
    pub(crate) bias: u64,
}

struct Stack {
    values: [u64; STACK],
    depth: usize,
}

impl Stack {
    fn push(&mut self, value: u64) -> Result<(), Fault> {
        *self.values.get_mut(self.depth).ok_or(Fault::Bad)? = value;
        self.depth += 1;
        Ok(())
    }

    fn pop(&mut self) -> Result<u64, Fault> {
        self.depth = self.depth.checked_sub(1).ok_or(Fault::Bad)?;
        self.values.get(self.depth).copied().ok_or(Fault::Bad)
    }

    /// Returns the value `index` below the top.
    fn pick(&self, index: usize) -> Result<u64, Fault> {
        let at = self.depth.checked_sub(index + 1).ok_or(Fault::Bad)?;
        self.values.get(at).copied().ok_or(Fault::Bad)
    }
}

/// Evaluates the expression `text`. `initial` is the initial stack content (the CFA, for register rules).
pub(crate) fn evaluate<A: Architecture, M: Memory>(
    text: &[u8],
    initial: Option<u64>,
    context: &mut Context<'_, A, M>,
) -> Result<u64, Fault> {
    let mut reader = Reader::new(text, 0, SectionKind::EhFrame);
    let mut stack = Stack { values: [0; STACK], depth: 0 };
    if let Some(initial) = initial {
        stack.push(initial)?;
    }
    for _ in 0..MAX_STEPS {
        if reader.at_end() {
            return stack.pop();
        }
        let op = reader.u8()?;
        match op {
            // bra, skip
            0x28 | 0x2f => {
                let offset = reader.u16()? as i16;
                if op == 0x2f || stack.pop()? != 0 {
                    let target = reader.position().checked_add_signed(offset.into());
                    let target = target.filter(|&target| target <= text.len()).ok_or(Fault::Bad)?;
                    reader = Reader::new(text, target, SectionKind::EhFrame);
                }
            }
            0x03 | 0x08..=0x11 | 0x30..=0x4f => {
                let value = constant::<A>(op, &mut reader, context.bias)?;
                stack.push(value)?;
            }
            0x50..=0x8f | 0x90 | 0x92 => {
                let value = register(op, &mut reader, context.registers)?;
                stack.push(value)?;
            }
            0x06 | 0x94 => {
                let size = if op == 0x06 { A::ISA.word() } else { reader.u8()? };
                let value = read::<A, M>(context.memory, stack.pop()?, size)?;
                stack.push(value)?;
            }
            0x12..=0x17 => shuffle(op, &mut reader, &mut stack)?,
            0x19 | 0x1f | 0x20 | 0x23 => unary::<A>(op, &mut reader, &mut stack)?,
            0x1a..=0x27 | 0x29..=0x2e => binary::<A>(op, &mut stack)?,
            // nop
            0x96 => {}
            _ => return Err(Fault::Bad),
        }
    }
    Err(Fault::Bad)
}

/// Evaluates addr, const1u..consts, lit0..lit31.
fn constant<A: Architecture>(op: u8, reader: &mut Reader<'_>, bias: u64) -> Result<u64, Fault> {
    let value = match op {
        0x03 if A::WORD == 4 => u64::from(reader.u32()?).wrapping_add(bias),
        0x03 => reader.u64()?.wrapping_add(bias),
        0x08 => reader.u8()?.into(),
        0x09 => i64::from(reader.u8()? as i8) as u64,
        0x0a => reader.u16()?.into(),
        0x0b => i64::from(reader.u16()? as i16) as u64,
        0x0c => reader.u32()?.into(),
        0x0d => i64::from(reader.u32()? as i32) as u64,
        0x0e | 0x0f => reader.u64()?,
        0x10 => reader.uleb()?,
        0x11 => reader.sleb()? as u64,
        _ => u64::from(op - 0x30),
    };
    Ok(value & A::ADDRESS)
}

/// Evaluates reg0..reg31 (in GCC's sense for call-frame information: the register's value), breg0..breg31, regx,
/// bregx.
fn register<A: Architecture>(
    op: u8,
    reader: &mut Reader<'_>,
    registers: &RegisterSet<A>,
) -> Result<u64, Fault> {
    let number = match op {
        0x50..=0x6f => u64::from(op - 0x50),
        0x70..=0x8f => u64::from(op - 0x70),
        _ => reader.uleb()?,
    };
    let offset = if matches!(op, 0x70..=0x8f | 0x92) { reader.sleb()? } else { 0 };
    let number = u16::try_from(number).map_err(|_| Fault::Register)?;
    Ok(A::add(registers.get(number).ok_or(Fault::Register)?, offset))
}

/// Runs dup, drop, over, pick, swap, rot.
fn shuffle(op: u8, reader: &mut Reader<'_>, stack: &mut Stack) -> Result<(), Fault> {
    match op {
        0x12 => stack.push(stack.pick(0)?),
        0x13 => stack.pop().map(|_| ()),
        0x14 => stack.push(stack.pick(1)?),
        0x15 => {
            let index = reader.u8()?;
            stack.push(stack.pick(index.into())?)
        }
        0x16 => {
            let (top, second) = (stack.pop()?, stack.pop()?);
            stack.push(top)?;
            stack.push(second)
        }
        _ => {
            let (top, second, third) = (stack.pop()?, stack.pop()?, stack.pop()?);
            stack.push(top)?;
            stack.push(third)?;
            stack.push(second)
        }
    }
}

/// Runs abs, neg, not, plus_uconst.
fn unary<A: Architecture>(op: u8, reader: &mut Reader<'_>, stack: &mut Stack) -> Result<(), Fault> {
    let value = stack.pop()?;
    let result = match op {
        0x19 => signed::<A>(value).unsigned_abs(),
        0x1f => value.wrapping_neg(),
        0x20 => !value,
        _ => value.wrapping_add(reader.uleb()?),
    };
    stack.push(result & A::ADDRESS)
}

/// Sign-extends a value of the generic type, which has the size of a word.
fn signed<A: Architecture>(value: u64) -> i64 {
    if A::WORD == 4 { i64::from(value as i32) } else { value as i64 }
}

/// Runs arithmetic, logic and comparisons; the top of the stack is the second operand.
fn binary<A: Architecture>(op: u8, stack: &mut Stack) -> Result<(), Fault> {
    let right = stack.pop()?;
    let left = stack.pop()?;
    let (signed_left, signed_right) = (signed::<A>(left), signed::<A>(right));
    let result = match op {
        0x1a => left & right,
        0x1b if right == 0 => return Err(Fault::Bad),
        0x1b => signed_left.wrapping_div(signed_right) as u64,
        0x1c => left.wrapping_sub(right),
        0x1d => left.checked_rem(right).ok_or(Fault::Bad)?,
        0x1e => left.wrapping_mul(right),
        0x21 => left | right,
        0x22 => left.wrapping_add(right),
        0x24 => u32::try_from(right).ok().and_then(|by| left.checked_shl(by)).unwrap_or(0),
        0x25 => u32::try_from(right).ok().and_then(|by| left.checked_shr(by)).unwrap_or(0),
        0x26 => (signed_left >> right.min(63)) as u64,
        0x27 => left ^ right,
        0x29 => u64::from(left == right),
        0x2a => u64::from(signed_left >= signed_right),
        0x2b => u64::from(signed_left > signed_right),
        0x2c => u64::from(signed_left <= signed_right),
        0x2d => u64::from(signed_left < signed_right),
        0x2e => u64::from(left != right),
        _ => return Err(Fault::Bad),
    };
    stack.push(result & A::ADDRESS)
}

/// Reads `size` bytes. Smaller reads use aligned words, so they do not touch memory outside of the requested words.
fn read<A: Architecture, M: Memory>(memory: &mut M, at: u64, size: u8) -> Result<u64, Fault> {
    let mut word = |at: u64| memory.read_u64(Avma(at)).map_err(Fault::Memory);
    if size == 8 {
        return word(at);
    }
    if size == 4 && A::WORD == 4 {
        return memory.read_u32(Avma(at)).map(u64::from).map_err(Fault::Memory);
    }
    if !matches!(size, 1..=7) {
        return Err(Fault::Bad);
    }
    let shift = 8 * (at % 8) as u32;
    let aligned = at - at % 8;
    let mut value = word(aligned)? >> shift;
    if at % 8 + u64::from(size) > 8 {
        value |= word(aligned.wrapping_add(8))? << (64 - shift);
    }
    Ok(value & ((1 << (8 * u32::from(size))) - 1))
}

#[cfg(test)]
mod tests;

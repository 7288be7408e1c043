//! Converts the unwind instructions of the exception handling ABI (IHI 0038 §10.3) to a row of rules.
//!
//! Instructions move a virtual stack pointer (vsp) and load registers from where it points. Everything that compilers
//! emit can be expressed as offsets from the initial value of the stack pointer or of one other register. So the
//! instructions run here once per function, without registers or memory, and the rows are cached as for other
//! architectures. Anything else is an error: loads from two bases, or a move of vsp after vsp itself was loaded.

use super::{LR, PC, SP};
use crate::cfi::{CfiError, CfiErrorKind, Reader, SectionKind};
use crate::row::{CfaRule, RegisterRule, Row};

/// Number of general registers.
const REGISTERS: usize = 16;

/// The state while instructions run.
struct State {
    /// Register that vsp is relative to.
    base: u16,
    /// vsp minus the base, in bytes.
    offset: i64,
    /// Offset from the base at which each register was loaded.
    loaded: [Option<i64>; REGISTERS],
    /// Offset from the base at which vsp was loaded; after that it cannot move any more.
    stack_loaded: Option<i64>,
}

/// Converts `instructions` of `section` to a row. `at` is their offset, for errors.
pub(super) fn row(instructions: &[u8], section: SectionKind, at: usize) -> Result<Row, CfiError> {
    let mut state = State { base: SP, offset: 0, loaded: [None; REGISTERS], stack_loaded: None };
    let mut reader = Reader::new(instructions, 0, section);
    while !reader.at_end() {
        let op = reader.u8()?;
        if op == 0xb0 {
            break;
        }
        state.step(op, &mut reader).map_err(|failure| {
            let kind = match failure {
                Failure::Cfi(error) => error.kind,
                Failure::Unknown => CfiErrorKind::UnknownInstruction(op),
                Failure::Misplaced => CfiErrorKind::MisplacedInstruction(op),
            };
            CfiError { section, offset: at, kind }
        })?;
    }
    Ok(state.into_row(section))
}

/// Reason why an instruction could not run.
enum Failure {
    /// The instruction is truncated, or its number is too large.
    Cfi(CfiError),
    /// The opcode is spare, reserved or a refusal to unwind.
    Unknown,
    /// The effect cannot be expressed as a row.
    Misplaced,
}

impl From<CfiError> for Failure {
    fn from(error: CfiError) -> Failure {
        Failure::Cfi(error)
    }
}

impl State {
    fn step(&mut self, op: u8, reader: &mut Reader<'_>) -> Result<(), Failure> {
        let low = u16::from(op & 7);
        match op {
            // vsp plus or minus 4 to 256
            0x00..=0x3f => self.advance(i64::from(op & 0x3f) * 4 + 4),
            0x40..=0x7f => self.advance(-(i64::from(op & 0x3f) * 4 + 4)),
            // r4..r15 by mask; an empty mask is a refusal to unwind
            0x80..=0x8f => {
                let mask = u16::from(op & 0xf) << 8 | u16::from(reader.u8()?);
                if mask == 0 {
                    return Err(Failure::Unknown);
                }
                self.load(u32::from(mask) << 4)
            }
            // vsp from a register; 13 and 15 are reserved
            0x9d | 0x9f => Err(Failure::Unknown),
            0x90..=0x9e => self.rebase(u16::from(op & 0xf)),
            // r4 up to r4..r11, in the second arm also lr
            0xa0..=0xa7 => self.load(((2 << low) - 1) << 4),
            0xa8..=0xaf => self.load(((2 << low) - 1) << 4 | 1 << LR),
            // r0..r3 by mask
            0xb1 => match reader.u8()? {
                mask @ 0x01..=0x0f => self.load(mask.into()),
                _ => Err(Failure::Unknown),
            },
            // vsp plus 0x204 and more
            0xb2 => {
                let words = i64::try_from(reader.uleb()?).ok().filter(|&words| words < 1 << 30);
                self.advance(0x204 + 4 * words.ok_or(Failure::Misplaced)?)
            }
            _ => self.step_over(op, reader),
        }
    }

    /// Skips registers that are not tracked: only their size matters.
    fn step_over(&mut self, op: u8, reader: &mut Reader<'_>) -> Result<(), Failure> {
        let low = i64::from(op & 7);
        let count = |reader: &mut Reader<'_>| reader.u8().map(|operand| i64::from(operand & 0xf) + 1);
        let bytes = match op {
            // VFP registers by number and count, then from d8 on, with the pad word of FSTMX
            0xb3 => 8 * count(reader)? + 4,
            0xb8..=0xbf => 8 * (low + 1) + 4,
            // the code that authenticates the return address, and its modifier (editions from 2022 on)
            0xb4 => 4,
            0xb5 => 0,
            // iWMMXt data registers from wR10 on, by number and count, and control registers by mask
            0xc0..=0xc5 => 8 * (low + 1),
            0xc6 => 8 * count(reader)?,
            0xc7 => match reader.u8()? {
                mask @ 0x01..=0x0f => 4 * i64::from(mask.count_ones()),
                _ => return Err(Failure::Unknown),
            },
            // VFP registers by number (from 16, from 0) and count, then from d8 on
            0xc8 | 0xc9 => 8 * count(reader)?,
            0xd0..=0xd7 => 8 * (low + 1),
            _ => return Err(Failure::Unknown),
        };
        self.advance(bytes)
    }

    fn advance(&mut self, bytes: i64) -> Result<(), Failure> {
        if self.stack_loaded.is_some() {
            return Err(Failure::Misplaced);
        }
        // At most a few hundred steps of 4 GiB: no overflow.
        self.offset += bytes;
        Ok(())
    }

    /// Loads the registers in `mask` from vsp, the lowest first, and moves vsp past them.
    fn load(&mut self, mask: u32) -> Result<(), Failure> {
        for (register, slot) in (0u16..).zip(&mut self.loaded) {
            if mask >> register & 1 == 1 {
                if self.stack_loaded.is_some() {
                    return Err(Failure::Misplaced);
                }
                *slot = Some(self.offset);
                self.offset += 4;
            }
        }
        if mask >> SP & 1 == 1 {
            self.stack_loaded = self.loaded.get(usize::from(SP)).copied().flatten();
        }
        Ok(())
    }

    /// Sets vsp from a register.
    fn rebase(&mut self, register: u16) -> Result<(), Failure> {
        if self.stack_loaded.is_some() {
            return Err(Failure::Misplaced);
        }
        let loaded = self.loaded.get(usize::from(register)).copied().flatten();
        if loaded.is_some() {
            self.stack_loaded = loaded;
        } else if self.loaded.iter().all(Option::is_none) {
            self.base = register;
            self.offset = 0;
        } else {
            return Err(Failure::Misplaced);
        }
        Ok(())
    }

    fn into_row(self, section: SectionKind) -> Row {
        // Only a frame interrupted by a signal has a separate program counter.
        let loads_pc = self.loaded.get(usize::from(PC)).is_some_and(Option::is_some);
        let mut row = Row::empty(section, loads_pc);
        row.cfa = CfaRule::Register { register: self.base, offset: self.offset };
        let relative = |at: i64| RegisterRule::Offset(at - self.offset);
        for (register, slot) in (0u16..).zip(&self.loaded) {
            let Some(at) = *slot else { continue };
            let column = if register == LR && !loads_pc { PC } else { register };
            if let Some(rule) = row.registers.get_mut(usize::from(column)) {
                *rule = relative(at);
            }
        }
        if let (Some(at), Some(rule)) = (self.stack_loaded, row.registers.get_mut(usize::from(SP))) {
            *rule = relative(at);
        }
        row
    }
}

//! Runs call-frame instructions up to an address and yields the row that applies there.

use alloc::vec::Vec;
use core::ops::Range;

use super::entry::{Fde, Frames};
use super::error::{CfiError, CfiErrorKind};
use super::ops;
use super::reader::Reader;
use crate::address::Svma;
use crate::isa::COLUMNS;
use crate::row::{CfaRule, Expression, RegisterRule, Row};

/// Maximum depth of `DW_CFA_remember_state`. Compilers use one or two.
const MAX_REMEMBERED: usize = 32;

/// Buffers reused from one row to the next, so that decoding does not allocate.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    remembered: Vec<Row>,
}

impl Scratch {
    /// Preallocates all the memory that decoding can ever need.
    pub(crate) fn full() -> Scratch {
        Scratch { remembered: Vec::with_capacity(MAX_REMEMBERED) }
    }
}

/// The state while instructions run.
pub(super) struct Machine<'a, 's> {
    pub(super) reader: Reader<'a>,
    pub(super) fde: &'a Fde,
    pub(super) frames: &'a Frames<'a>,
    pub(super) row: Row,
    /// Register rules after the CIE's instructions, for `DW_CFA_restore`.
    initial: Option<[RegisterRule; COLUMNS]>,
    remembered: &'s mut Vec<Row>,
    pub(super) location: u64,
}

/// Computes the row of `fde` for `pc`, which must be in its range.
pub(crate) fn row_at(
    frames: &Frames<'_>,
    fde: &Fde,
    pc: u64,
    scratch: &mut Scratch,
) -> Result<Row, CfiError> {
    let mut machine = Machine::begin(frames, fde, scratch)?;
    let mut start = fde.range.start;
    let mut end = fde.range.end;
    while !machine.reader.at_end() {
        // An instruction moves the location or changes the row, never both, so here the row still starts at `start`.
        ops::step(&mut machine)?;
        if machine.location > pc {
            end = end.min(machine.location);
            break;
        }
        start = machine.location;
    }
    machine.row.range = Svma(start)..Svma(end);
    Ok(machine.row)
}

/// Calls `visit` with each row of `fde` in order, and its address range. Rows visited before an error are valid.
pub(crate) fn each_row(
    frames: &Frames<'_>,
    fde: &Fde,
    scratch: &mut Scratch,
    mut visit: impl FnMut(Range<u64>, &Row),
) -> Result<(), CfiError> {
    let mut machine = Machine::begin(frames, fde, scratch)?;
    let (mut start, end) = (fde.range.start, fde.range.end);
    while !machine.reader.at_end() && start < end {
        ops::step(&mut machine)?;
        if machine.location > start {
            visit(start..machine.location.min(end), &machine.row);
            start = machine.location;
        }
    }
    if start < end {
        visit(start..end, &machine.row);
    }
    Ok(())
}

impl<'a, 's> Machine<'a, 's> {
    /// Runs the CIE's instructions and stops before those of `fde`.
    fn begin(frames: &'a Frames<'a>, fde: &'a Fde, scratch: &'s mut Scratch) -> Result<Self, CfiError> {
        scratch.remembered.clear();
        let section =
            |range: &Range<usize>| Reader::new(frames.bytes, range.start, frames.kind).up_to(range.end);
        let mut machine = Machine {
            reader: section(&fde.cie.instructions),
            fde,
            frames,
            row: Row::empty(frames.kind, fde.cie.is_signal),
            initial: None,
            remembered: &mut scratch.remembered,
            location: fde.range.start,
        };
        while !machine.reader.at_end() {
            ops::step(&mut machine)?;
        }
        machine.location = fde.range.start;
        machine.initial = Some(machine.row.registers);
        machine.reader = section(&fde.instructions);
        Ok(machine)
    }
}

impl Machine<'_, '_> {
    /// Advances the location by `delta` units of code alignment.
    pub(super) fn advance(&mut self, delta: u64) -> Result<(), CfiError> {
        let bytes = delta.checked_mul(self.fde.cie.code_alignment);
        let location = bytes.and_then(|bytes| self.location.checked_add(bytes));
        self.location = location.ok_or_else(|| self.reader.error(CfiErrorKind::TooLarge))?;
        Ok(())
    }

    /// Sets the location, which must not move back.
    pub(super) fn move_to(&mut self, location: u64, op: u8) -> Result<(), CfiError> {
        if location < self.location {
            return Err(self.reader.error(CfiErrorKind::MisplacedInstruction(op)));
        }
        self.location = location;
        Ok(())
    }

    /// Converts `offset` from units of data alignment to bytes.
    pub(super) fn factored(&self, offset: i64) -> i64 {
        offset.wrapping_mul(self.fde.cie.data_alignment)
    }

    /// Sets the rule of a register. The return address may use any column in the file, but goes to that of the
    /// program counter.
    pub(super) fn set(&mut self, register: u64, rule: RegisterRule) {
        if let Some(slot) = self.column(register).and_then(|column| self.row.registers.get_mut(column)) {
            *slot = rule;
        }
    }

    fn column(&self, register: u64) -> Option<usize> {
        if register == self.fde.cie.return_register {
            return Some(self.frames.isa.return_column().into());
        }
        usize::try_from(register).ok().filter(|&column| column < usize::from(self.frames.isa.columns()))
    }

    pub(super) fn restore(&mut self, register: u64, op: u8) -> Result<(), CfiError> {
        let initial =
            self.initial.ok_or_else(|| self.reader.error(CfiErrorKind::MisplacedInstruction(op)))?;
        if let Some(rule) = self.column(register).and_then(|column| initial.get(column)) {
            self.set(register, *rule);
        }
        Ok(())
    }

    pub(super) fn remember(&mut self) -> Result<(), CfiError> {
        if self.remembered.len() >= MAX_REMEMBERED {
            return Err(self.reader.error(CfiErrorKind::UnbalancedState));
        }
        self.remembered.push(self.row.clone());
        Ok(())
    }

    pub(super) fn restore_state(&mut self) -> Result<(), CfiError> {
        self.row = self.remembered.pop().ok_or_else(|| self.reader.error(CfiErrorKind::UnbalancedState))?;
        Ok(())
    }

    pub(super) fn set_cfa_register(&mut self, new: u64, op: u8) -> Result<(), CfiError> {
        match self.row.cfa {
            CfaRule::Register { offset, .. } => self.set_cfa(new, offset),
            _ => Err(self.reader.error(CfiErrorKind::MisplacedInstruction(op))),
        }
    }

    pub(super) fn set_cfa_offset(&mut self, offset: i64, op: u8) -> Result<(), CfiError> {
        match &mut self.row.cfa {
            CfaRule::Register { offset: old, .. } => {
                *old = offset;
                Ok(())
            }
            _ => Err(self.reader.error(CfiErrorKind::MisplacedInstruction(op))),
        }
    }

    pub(super) fn set_cfa(&mut self, register: u64, offset: i64) -> Result<(), CfiError> {
        let register = u16::try_from(register).map_err(|_| self.reader.error(CfiErrorKind::TooLarge))?;
        self.row.cfa = CfaRule::Register { register, offset };
        Ok(())
    }

    /// Reads the expression operand at the current position.
    pub(super) fn expression(&mut self) -> Result<Expression, CfiError> {
        let length = self.reader.uleb()?;
        let offset = self.reader.position();
        self.reader.skip(length)?;
        Ok(Expression { offset, length: self.reader.position() - offset })
    }
}

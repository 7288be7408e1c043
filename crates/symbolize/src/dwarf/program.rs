//! A line number program, run step by step (DWARF 5, 6.2; versions 2 to 5).
//!
//! Covers only addresses, files and lines: columns, statements, blocks and discriminators are skipped.

use std::num::Wrapping;

use gimli::{DwLne, DwLns, LineProgramHeader};

use crate::dwarf::bytes::Bytes;
use crate::dwarf::cursor::Cursor;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A row.
    Row,
    /// The end of a sequence, whose address is one past its code. The registers are reset afterwards.
    End,
    /// The end of a sequence without code, because the linker dropped it.
    Dropped,
}

/// A program and the registers of its state machine.
pub(crate) struct Program<'a> {
    cursor: Cursor<'a>,
    /// Number of arguments per opcode, from opcode 1 on.
    arguments: &'a [u8],
    opcode_base: u8,
    line_base: i64,
    line_range: u8,
    instruction_length: Wrapping<u64>,
    /// Operations per instruction, 1 except on VLIW machines.
    operations: Wrapping<u64>,
    address_size: u8,
    /// The current registers; after a row, that row's.
    pub registers: Registers,
}

/// The registers between two steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    /// Address of the row.
    pub address: u64,
    /// File number of the row.
    pub file: u64,
    /// Line of the row.
    pub line: u64,
    operation: Wrapping<u64>,
    is_dropped: bool,
    is_over: bool,
}

impl Default for Registers {
    fn default() -> Self {
        let operation = Wrapping(0);
        Self { address: 0, file: 1, line: 1, operation, is_dropped: false, is_over: false }
    }
}

impl<'a> Program<'a> {
    /// Creates the program of `header`, resuming at the offset `begin`.
    pub fn new(header: &LineProgramHeader<Bytes<'a>>, begin: usize, registers: Registers) -> Self {
        let program: Bytes<'a> = header.raw_program_buf();
        let arguments: &Bytes<'a> = header.standard_opcode_lengths();
        let mut cursor = Cursor::new(program.slice());
        cursor.go(begin);
        Self {
            cursor,
            arguments: arguments.slice(),
            opcode_base: header.opcode_base().max(1),
            line_base: header.line_base().into(),
            line_range: header.line_range().max(1),
            instruction_length: Wrapping(header.minimum_instruction_length().into()),
            operations: Wrapping(u64::from(header.maximum_operations_per_instruction()).max(1)),
            address_size: header.address_size(),
            registers,
        }
    }

    /// Returns the number of program bytes run so far.
    pub fn at(&self) -> usize {
        self.cursor.at()
    }

    /// Runs to the next row or end. `None` at the end of the program, or if it is damaged.
    #[inline]
    pub fn next(&mut self) -> Option<Step> {
        if self.registers.is_over {
            self.registers = Registers::default();
        }
        loop {
            if self.cursor.is_at_end() {
                return None;
            }
            let opcode = self.cursor.u8()?;
            if opcode >= self.opcode_base {
                let adjusted = opcode - self.opcode_base;
                self.line(self.line_base + i64::from(adjusted % self.line_range));
                self.advance((adjusted / self.line_range).into())?;
                if !self.registers.is_dropped {
                    return Some(Step::Row);
                }
            } else if opcode == 0 {
                if let Some(step) = self.extended()? {
                    return Some(step);
                }
            } else if self.standard(opcode)? && !self.registers.is_dropped {
                return Some(Step::Row);
            }
        }
    }

    /// Executes a standard opcode; returns whether it appends a row.
    #[inline]
    fn standard(&mut self, opcode: u8) -> Option<bool> {
        match DwLns(opcode) {
            gimli::DW_LNS_copy => return Some(true),
            gimli::DW_LNS_advance_pc => {
                let operations = self.cursor.uleb()?;
                self.advance(operations)?;
            }
            gimli::DW_LNS_advance_line => {
                let lines = self.cursor.sleb()?;
                self.line(lines);
            }
            gimli::DW_LNS_set_file => self.registers.file = self.cursor.uleb()?,
            gimli::DW_LNS_set_column | gimli::DW_LNS_set_isa => self.cursor.skip_leb()?,
            gimli::DW_LNS_const_add_pc => {
                self.advance(((255 - self.opcode_base) / self.line_range).into())?;
            }
            gimli::DW_LNS_fixed_advance_pc => {
                let bytes = self.cursor.number(2)?;
                if !self.registers.is_dropped {
                    self.registers.address = self.sized(self.registers.address.checked_add(bytes)?)?;
                    self.registers.operation = Wrapping(0);
                }
            }
            gimli::DW_LNS_negate_stmt
            | gimli::DW_LNS_set_basic_block
            | gimli::DW_LNS_set_prologue_end
            | gimli::DW_LNS_set_epilogue_begin => {}
            _ => {
                for _ in 0..*self.arguments.get(usize::from(opcode) - 1)? {
                    self.cursor.skip_leb()?;
                }
            }
        }
        Some(false)
    }

    /// Executes an extended opcode.
    fn extended(&mut self) -> Option<Option<Step>> {
        let length = usize::try_from(self.cursor.uleb()?).ok()?;
        let end = self.cursor.at().checked_add(length).filter(|_| length > 0)?;
        let mut step = None;
        match DwLne(self.cursor.u8()?) {
            gimli::DW_LNE_end_sequence => {
                step = Some(if self.registers.is_dropped { Step::Dropped } else { Step::End });
                self.registers.is_over = true;
            }
            gimli::DW_LNE_set_address => {
                let address = self.cursor.number(self.address_size.into())?;
                // Linkers give dropped code the highest address or the one before; gold and old linkers 0 or a little
                // more. Addresses never decrease within a sequence.
                let highest = u64::MAX >> (64 - 8 * u32::from(self.address_size.clamp(1, 8)));
                self.registers.is_dropped = address < self.registers.address || address >= highest - 1;
                if !self.registers.is_dropped {
                    self.registers.address = address;
                    self.registers.operation = Wrapping(0);
                }
            }
            _ => {}
        }
        self.cursor.go(end);
        Some(step)
    }

    fn line(&mut self, lines: i64) {
        let lines_back = lines.unsigned_abs();
        self.registers.line = if lines < 0 {
            self.registers.line.saturating_sub(lines_back)
        } else {
            self.registers.line.wrapping_add(lines_back)
        };
    }

    #[inline]
    fn advance(&mut self, operations: u64) -> Option<()> {
        if self.registers.is_dropped {
            return Some(());
        }
        let mut instructions = Wrapping(operations);
        if self.operations.0 != 1 {
            let sum = self.registers.operation + Wrapping(operations);
            self.registers.operation = sum % self.operations;
            instructions = sum / self.operations;
        }
        let bytes = self.instruction_length * instructions;
        self.registers.address = self.sized(self.registers.address.checked_add(bytes.0)?)?;
        Some(())
    }

    /// Returns an address, if it fits the address size.
    #[inline]
    fn sized(&self, address: u64) -> Option<u64> {
        (self.address_size >= 8 || address >> (8 * self.address_size) == 0).then_some(address)
    }
}

//! Source files and lines of addresses, from a unit's line program.
//!
//! A first pass over the program finds the address range of each stretch of rows. Stretches with wanted
//! addresses are run again, and their rows are compared with the addresses as they come: a large unit has a million rows,
//! and none is kept.

use std::collections::BTreeSet;

use gimli::{LineProgramHeader, UnitRef};

use crate::boundaries::Boundaries;
use crate::dwarf::budget::Budget;
use crate::dwarf::bytes::Bytes;
use crate::dwarf::program::{Program, Registers, Step};
use crate::dwarf::spans::Spans;

/// Most rows per stretch: longer ones would cost more work per address, shorter ones more memory.
const ROWS: usize = 64;

/// A row that covers a wanted address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// Number of the file in the unit's line table.
    pub file: u64,
    /// Line counted from 1, 0 for code that belongs to no line.
    pub line: u32,
}

/// The address ranges in a unit's line program, computed on first use.
#[derive(Default)]
pub(crate) struct Lines {
    stretches: Option<Stretches>,
}

/// Parts of a line program that can be run by themselves.
struct Stretches {
    /// The address range of each.
    spans: Spans,
    begins: Vec<Begin>,
}

/// The start of a stretch.
#[derive(Clone, Copy, Debug, Default)]
struct Begin {
    /// Offset in the program.
    at: usize,
    registers: Registers,
    /// Whether the registers are those of a row, which extends into the stretch.
    is_row: bool,
}

impl Lines {
    /// Returns, for each of the `wanted` addresses (sorted), the row that covers it. Rows below `lowest`, where the file has no
    /// code, belong to functions that the linker dropped.
    pub fn rows(
        &mut self,
        unit: UnitRef<'_, Bytes<'_>>,
        wanted: &[u64],
        lowest: u64,
        budget: &Budget,
    ) -> Vec<Option<Row>> {
        let mut rows = Rows { wanted, found: vec![None; wanted.len()], lowest, last: None, next: 0 };
        let Some(header) = unit.line_program.as_ref().map(|program| program.header()) else {
            return rows.found;
        };
        let stretches = self.stretches.get_or_insert_with(|| Stretches::find(header, budget));
        let asked = wanted.iter().flat_map(|&address| stretches.spans.at(address, budget));
        let asked: BTreeSet<usize> = asked.map(|(number, _)| number).collect();
        for number in asked {
            rows.take(header, stretches.begins[number], budget);
        }
        rows.found
    }
}

/// Adds the addresses where the line or the file may change.
pub(crate) fn boundaries(
    header: &LineProgramHeader<Bytes<'_>>,
    budget: &Budget,
    boundaries: &mut Boundaries,
) {
    let mut program = Program::new(header, 0, Registers::default());
    let mut last = None;
    while let Some(step) = program.next().filter(|_| budget.pay(1) && !boundaries.is_full()) {
        let Registers { address, file, line, .. } = program.registers;
        let here = (step == Step::Row).then_some((file, line));
        if here.is_none() || here != last {
            boundaries.push(address);
        }
        last = here;
    }
}

impl Stretches {
    fn find(header: &LineProgramHeader<Bytes<'_>>, budget: &Budget) -> Self {
        let (mut begins, mut ranges) = (Vec::new(), Vec::new());
        if !budget.pay(header.raw_program_buf().len() as u64) {
            return Self { spans: Spans::default(), begins };
        }
        let mut begin = Begin::default();
        let mut program = Program::new(header, begin.at, begin.registers);
        let (mut lowest, mut highest, mut rows) = (u64::MAX, 0, 0);
        loop {
            let step = program.next();
            let address = program.registers.address;
            if matches!(step, Some(Step::Row | Step::End)) {
                lowest = lowest.min(address);
                highest = highest.max(address);
                rows += 1;
            }
            if step == Some(Step::Row) && rows < ROWS {
                continue;
            }
            if lowest < highest {
                if !budget.pay_for_kept(1) {
                    break;
                }
                begins.push(begin);
                ranges.push(lowest..highest);
            }
            // A program without an end is damaged, but its rows are used.
            let Some(step) = step else { break };
            let is_row = step == Step::Row;
            begin = Begin { at: program.at(), registers: program.registers, is_row };
            (lowest, highest) = if is_row { (address, address) } else { (u64::MAX, 0) };
            rows = 0;
        }
        Self { spans: Spans::new(ranges.into_iter()), begins }
    }
}

/// Matches rows with the wanted addresses.
struct Rows<'w> {
    wanted: &'w [u64],
    found: Vec<Option<Row>>,
    lowest: u64,
    last: Option<(u64, Row)>,
    /// Index of the first wanted address not below the last row's.
    next: usize,
}

impl Rows<'_> {
    /// Takes the rows of a stretch.
    fn take(&mut self, header: &LineProgramHeader<Bytes<'_>>, begin: Begin, budget: &Budget) {
        self.last = None;
        self.next = 0;
        if begin.is_row {
            self.row(&begin.registers);
        }
        let mut program = Program::new(header, begin.at, begin.registers);
        for _ in 0..ROWS {
            let Some(step) = program.next().filter(|_| budget.pay(1)) else { break };
            if step != Step::Dropped {
                self.row(&program.registers);
            }
            if step != Step::Row {
                break;
            }
        }
    }

    fn row(&mut self, &Registers { address, file, line, .. }: &Registers) {
        let wanted = self.wanted;
        match self.last {
            Some((from, covering)) if from < address && from >= self.lowest => {
                if wanted.get(self.next).is_some_and(|&wanted| wanted < from) {
                    self.next = wanted.partition_point(|&wanted| wanted < from);
                }
                while let Some(&hit) = wanted.get(self.next).filter(|&&wanted| wanted < address) {
                    debug_assert!(hit >= from);
                    self.found[self.next].get_or_insert(covering);
                    self.next += 1;
                }
            }
            Some(_) => {}
            None => self.next = wanted.partition_point(|&wanted| wanted < address),
        }
        self.last = Some((address, Row { file, line: u32::try_from(line).unwrap_or(0) }));
    }
}

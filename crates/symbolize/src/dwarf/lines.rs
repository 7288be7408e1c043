//! Source files and lines of addresses, from a unit's line program.
//!
//! Rows are compared with the wanted addresses as they come and never stored: a large unit has a million of them.

use gimli::{CompleteLineProgram, LineProgram, LineRow, LineSequence, UnitRef};

use crate::dwarf::budget::Budget;
use crate::dwarf::ranges::within;
use crate::dwarf::store::Bytes;

/// A row that covers a wanted address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// Number of the file in the unit's line table.
    pub file: u64,
    /// Line counted from 1, 0 for code that belongs to no line.
    pub line: u32,
}

/// The line program of a unit: passed over as a whole for the first addresses, and from then on only where more of
/// them are.
#[derive(Default)]
pub(crate) struct Lines<'a> {
    passes: u32,
    sequences: Option<Sequences<'a>>,
}

/// Stretches of a line program that can be run by themselves.
type Sequences<'a> = (CompleteLineProgram<Bytes<'a>>, Vec<LineSequence<Bytes<'a>>>);

impl<'a> Lines<'a> {
    /// For each of the `wanted` addresses (in order) the row that covers it. Sequences that begin below `lowest`,
    /// where the file has no code, belong to functions that the linker dropped.
    pub fn rows(
        &mut self,
        unit: UnitRef<'_, Bytes<'a>>,
        wanted: &[u64],
        lowest: u64,
        budget: &Budget,
    ) -> Vec<Option<Row>> {
        let mut rows = Rows { wanted, found: vec![None; wanted.len()], lowest, last: None, next: 0 };
        let Some(program) = unit.line_program.clone() else { return rows.found };
        self.passes += 1;
        if self.passes == 2 && budget.pay(program.header().raw_program_buf().len() as u64) {
            self.sequences = program.clone().sequences().ok();
        }
        match &self.sequences {
            None => rows.take(program.rows(), budget),
            Some((program, sequences)) => {
                for sequence in sequences.iter().filter(|s| !within(wanted, &(s.start..s.end)).is_empty()) {
                    rows.take(program.resume_from(sequence), budget);
                }
            }
        }
        rows.found
    }
}

/// Rows on their way past the wanted addresses.
struct Rows<'w> {
    wanted: &'w [u64],
    found: Vec<Option<Row>>,
    lowest: u64,
    last: Option<(u64, Row)>,
    /// The first wanted address that isn't below the last row's.
    next: usize,
}

impl Rows<'_> {
    fn take<'a, P: LineProgram<Bytes<'a>>>(
        &mut self,
        mut rows: gimli::LineRows<Bytes<'a>, P, usize>,
        budget: &Budget,
    ) {
        self.last = None;
        while let Ok(Some((_, row))) = rows.next_row() {
            if !budget.pay(1) {
                break;
            }
            self.row(row);
        }
    }

    fn row(&mut self, row: &LineRow) {
        let wanted = self.wanted;
        let address = row.address();
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
            _ => {}
        }
        if row.end_sequence() {
            self.last = None;
            self.next = 0;
            return;
        }
        if self.last.is_none() {
            self.next = wanted.partition_point(|&wanted| wanted < address);
        }
        let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
        self.last = Some((address, Row { file: row.file_index(), line }));
    }
}

//! Source files and lines of addresses, from a unit's line program.
//!
//! The program is passed over once, which tells where its sequences are. Those that hold wanted addresses are run
//! again, and their rows compared with the addresses as they come: a large unit has a million rows, and none is kept.

use std::collections::BTreeSet;

use gimli::{LineProgramHeader, UnitRef};

use crate::dwarf::budget::Budget;
use crate::dwarf::program::{Program, Step};
use crate::dwarf::spans::Spans;
use crate::dwarf::store::Bytes;

/// A row that covers a wanted address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// Number of the file in the unit's line table.
    pub file: u64,
    /// Line counted from 1, 0 for code that belongs to no line.
    pub line: u32,
}

/// Where the sequences of a unit's line program are, found out when first asked.
#[derive(Default)]
pub(crate) struct Lines {
    sequences: Option<Sequences>,
}

struct Sequences {
    /// The addresses of each.
    spans: Spans,
    /// Where each begins in the program.
    begins: Vec<usize>,
}

impl Lines {
    /// For each of the `wanted` addresses (in order) the row that covers it. Rows below `lowest`, where the file has no
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
        let sequences = self.sequences.get_or_insert_with(|| Sequences::find(header, budget));
        let asked = wanted.iter().flat_map(|&address| sequences.spans.at(address, budget));
        let asked: BTreeSet<usize> = asked.map(|(number, _)| number).collect();
        for number in asked {
            rows.take(Program::new(header, sequences.begins[number]), budget);
        }
        rows.found
    }
}

impl Sequences {
    fn find(header: &LineProgramHeader<Bytes<'_>>, budget: &Budget) -> Self {
        let (mut begins, mut ranges) = (Vec::new(), Vec::new());
        if budget.pay(header.raw_program_buf().len() as u64) {
            let mut program = Program::new(header, 0);
            let mut begin = 0;
            let (mut lowest, mut highest) = (u64::MAX, 0);
            while let Some(step) = program.next() {
                if step != Step::Dropped {
                    lowest = lowest.min(program.address);
                    highest = highest.max(program.address);
                }
                if step == Step::Row {
                    continue;
                }
                if lowest < highest {
                    if !budget.pay_for_kept(1) {
                        break;
                    }
                    begins.push(begin);
                    ranges.push(lowest..highest);
                }
                begin = program.at();
                (lowest, highest) = (u64::MAX, 0);
            }
            // One that has no end is damaged, but its rows are used.
            if lowest < highest {
                begins.push(begin);
                ranges.push(lowest..highest);
            }
        }
        Self { spans: Spans::new(ranges.into_iter()), begins }
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
    /// Takes the rows of a sequence.
    fn take(&mut self, mut program: Program<'_>, budget: &Budget) {
        self.last = None;
        self.next = 0;
        while let Some(step) = program.next().filter(|_| budget.pay(1)) {
            if step != Step::Dropped {
                self.row(program.address, program.file, program.line);
            }
            if step != Step::Row {
                break;
            }
        }
    }

    fn row(&mut self, address: u64, file: u64, line: u64) {
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

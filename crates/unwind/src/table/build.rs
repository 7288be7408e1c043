//! Goes through the functions of a file in order and collects the rows that are kept.
//!
//! The order is that of `.eh_frame_hdr`; nothing is sorted if the file has one. Where functions overlap or something
//! is damaged, the table refers to the call-frame information, so that a table never differs from a lookup there. One
//! exception: a damaged function does not affect the gaps after it.

use core::ops::Range;

use super::calls::{ByCalls, Text};
use super::functions::Functions;
use super::heads::{Head, Heads};
use super::keep::{self, Keep};
use super::layout::bits;
use super::machine::{Function, LAST_ADDRESS, Machine};
use super::open::{Around, Rows};
use super::others;
use super::rows::Collected;
use super::{Content, Table, TableError};
use crate::cfi::{Scratch, each_row};
use crate::isa::Isa;
use crate::module::Module;
use crate::rule::{Kind, Rule};

impl Table {
    /// Builds a table of all rows, for comparisons and for lookups of any address.
    pub fn of_all<B: AsRef<[u8]>>(module: &Module<B>) -> Result<Table, TableError> {
        build(module, Content::All, keep::All)
    }

    /// Builds a table of the rows that are long enough to hold a call, from the call-frame information alone.
    pub fn by_length<B: AsRef<[u8]>>(module: &Module<B>) -> Result<Table, TableError> {
        build(module, Content::ByLength, keep::ByLength)
    }

    /// Builds a table of the rows in which a call ends, according to the code. Lookups of an address after a call
    /// give the same results as with all rows.
    pub fn of_calls<B, T>(module: &Module<B>, text: &mut T) -> Result<Table, TableError>
    where
        B: AsRef<[u8]>,
        T: Text + ?Sized,
    {
        build(module, Content::Calls, ByCalls::new(text))
    }
}

/// Builds a table of the rows that `keep` selects.
fn build<B: AsRef<[u8]>, K: Keep>(
    module: &Module<B>,
    content: Content,
    keep: K,
) -> Result<Table, TableError> {
    if let Some(table) = others::of_exidx(module, content) {
        return table;
    }
    let functions = module.functions().ok_or(TableError::NoFrames)?;
    let gap = match module.has_one_section() && module.sections().exidx.is_none() {
        true => Kind::MissingHere,
        false => Kind::Odd,
    };
    let entry = module.entry().map_or(0..0, |entry| entry.start.0..entry.end.0);
    let (isa, gap) = (module.isa(), bits(Rule::only(gap)));
    let output = Output { isa, collected: Collected::default(), keep, gap, entry };
    let mut builder = Builder {
        functions,
        output,
        machine: Machine::new(),
        heads: Heads::default(),
        scratch: Scratch::default(),
    };
    let end = builder.run()?;
    let collected = builder.output.collected;
    collected.check()?;
    Ok(others::table(module.isa(), content, end, collected))
}

struct Builder<'a, K> {
    functions: Functions<'a>,
    output: Output<K>,
    machine: Machine,
    heads: Heads,
    /// Buffers for decoding rows of other architectures.
    scratch: Scratch,
}

struct Output<K> {
    collected: Collected,
    keep: K,
    isa: Isa,
    /// Rule for code between functions.
    gap: u64,
    /// Range of the start routine; empty if the file has none.
    entry: Range<u64>,
}

impl<K: Keep> Rows for Output<K> {
    const SHORTEST: u64 = K::SHORTEST;

    #[inline(always)]
    fn row(&mut self, range: Range<u64>, states: Around) {
        let start = range.start;
        if K::IS_EASY {
            if self.keep.row(range, states) {
                self.collected.push(start, states.here.rule());
            }
            return;
        }
        let rule = states.here.rule();
        // A row with the same rule as the row before it is redundant.
        if !self.collected.says(rule) && self.keep.row(range, states) {
            self.collected.push(start, rule);
        }
    }
}

impl<K: Keep> Output<K> {
    /// Adds a row of another architecture.
    fn other(&mut self, range: Range<u64>, rule: u64) {
        let start = range.start;
        if !self.collected.says(rule) && self.keep.other(self.isa, range) {
            self.collected.push(start, rule);
        }
    }

    fn odd(&mut self, start: u64, end: u64) {
        if start < end {
            self.collected.push(start, bits(Rule::only(Kind::Odd)));
        }
    }

    #[inline(always)]
    fn gap(&mut self, start: u64, end: u64) {
        if self.entry.start < end && start < self.entry.end {
            return self.gap_with_entry(start, end);
        }
        self.plain_gap(start, end);
    }

    /// Adds a gap that holds the start routine.
    #[cold]
    fn gap_with_entry(&mut self, start: u64, end: u64) {
        let (first, last) = (self.entry.start.max(start), self.entry.end.min(end));
        self.plain_gap(start, first);
        let root = bits(Rule::only(Kind::Root));
        if first < last && !self.collected.says(root) {
            self.collected.push(first, root);
        }
        self.plain_gap(last, end);
    }

    #[inline(always)]
    fn plain_gap(&mut self, start: u64, end: u64) {
        let is_kept = |keep: &mut K| match self.isa {
            Isa::X86_64 => keep.gap(start..end),
            isa => keep.other(isa, start..end),
        };
        if start < end && !self.collected.says(self.gap) && is_kept(&mut self.keep) {
            self.collected.push(start, self.gap);
        }
    }
}

impl<K: Keep> Builder<'_, K> {
    /// Collects all rows. Returns the end of the last function.
    fn run(&mut self) -> Result<u64, TableError> {
        // Highest end of the functions so far.
        let mut reach = 0;
        let mut index = 0;
        while let Some((start, offset)) = self.functions.get(index) {
            index += 1;
            let next = self.functions.get(index);
            let until = next.map_or(u64::MAX, |(start, _)| start);
            if until < start {
                return Err(TableError::Unsorted);
            }
            let end = match offset.and_then(|offset| self.function(start, offset, until)) {
                Some(end) => end,
                // The extent of the damage is unknown.
                None if next.is_none() => {
                    self.output.odd(start, start.saturating_add(1));
                    return Ok(reach.max(start.saturating_add(1)));
                }
                None => {
                    self.output.odd(start, until);
                    reach = reach.max(self.extent(offset));
                    continue;
                }
            };
            // An earlier function may continue after this one ends.
            let odd_until = reach.clamp(end, until.max(end));
            self.output.odd(end, odd_until);
            if next.is_some() {
                self.output.gap(odd_until, until);
            }
            reach = reach.max(end);
        }
        self.output.collected.check()?;
        Ok(reach.min(LAST_ADDRESS))
    }

    /// Returns the end of a function whose entry is damaged or unusual: the function may cover code between later
    /// ones.
    #[cold]
    fn extent(&self, offset: Option<usize>) -> u64 {
        let fde = offset.and_then(|offset| self.functions.frames.fde(offset).ok()?);
        fde.map_or(0, |fde| fde.range.end)
    }

    /// Adds the rows of the function that begins at `start`, up to `until`. Returns the end of the function.
    #[inline(always)]
    fn function(&mut self, start: u64, offset: usize, until: u64) -> Option<u64> {
        if self.functions.frames.isa != Isa::X86_64 {
            return self.by_rows(start, offset, until);
        }
        let Head { begin, end, code } = self.heads.head(&self.functions.frames, 0, offset)?;
        if begin != start || end > LAST_ADDRESS {
            self.output.odd(start, until);
            // The function may cover code between later ones, but code before those must not get a second row.
            return Some(end.max(if until == u64::MAX { start.saturating_add(1) } else { until }));
        }
        let range = start..end.min(until);
        if self.heads.cie().is_signal {
            self.output.odd(range.start, range.end);
            return Some(end);
        }
        let function = Function { frames: &self.functions.frames, range: range.clone(), code };
        if !range.is_empty() {
            let done = self.machine.run(&function, &self.heads.cie().common, &mut self.output);
            self.output.odd(done, range.end);
        }
        Some(end)
    }

    /// Adds the rows of such a function of another architecture.
    #[inline(never)]
    fn by_rows(&mut self, start: u64, offset: usize, until: u64) -> Option<u64> {
        let frames = self.functions.frames;
        let fde = frames.fde(offset).ok()??;
        let (begin, end) = (fde.range.start, fde.range.end);
        if begin != start || end > LAST_ADDRESS {
            self.output.odd(start, until);
            return Some(end.max(if until == u64::MAX { start.saturating_add(1) } else { until }));
        }
        let last = end.min(until);
        let mut done = start;
        if !fde.cie.is_signal {
            // On an error, the rows before it are valid.
            let _ = each_row(&frames, &fde, &mut self.scratch, |range, row| {
                let range = range.start..range.end.min(last);
                done = done.max(range.end);
                if !range.is_empty() {
                    self.output.other(range, others::rule(frames.isa, row));
                }
            });
        }
        self.output.odd(done, last);
        Some(end)
    }
}

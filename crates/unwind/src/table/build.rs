//! Goes through the functions of a file in order and collects the rows that are kept.
//!
//! The order is that of `.eh_frame_hdr`; nothing is sorted where that is there. Where functions overlap, and where
//! something is damaged, the table says that the call-frame information is to be asked, so that a table never says
//! anything else than a lookup there does.

use super::functions::Functions;
use super::keep::Keep;
use super::machine::{Common, Function, Machine, Rows};
use super::rows::Collected;
use super::state::State;
use super::{Content, Table, TableError};
use crate::architecture::Isa;
use crate::module::Module;
use crate::rule::{Kind, Rule};

/// CIEs that are remembered. Most files have one or two; those of an object file follow each other.
const COMMON: usize = 16;
/// Code advances in larger units nowhere.
const MAX_ALIGNMENT: u64 = 1 << 16;

/// Makes a table of the rows that `keep` wants.
pub(super) fn build<B: AsRef<[u8]>, K: Keep>(
    module: &Module<B>,
    content: Content,
    keep: K,
) -> Result<Table, TableError> {
    if module.isa() != Isa::X86_64 {
        return Err(TableError::OtherArchitecture);
    }
    let functions = module.functions().ok_or(TableError::NoFrames)?;
    let gap = match module.has_one_section() {
        true => Kind::MissingHere,
        false => Kind::Odd,
    };
    let output = Output { collected: Collected::default(), keep, gap: Rule::only(gap) };
    let mut builder = Builder { functions, output, machine: Machine::new(), commons: Default::default() };
    let end = builder.run()?;
    let collected = builder.output.collected;
    collected.check()?;
    Ok(Table {
        content,
        build_id: [0; 20],
        base: collected.base,
        end,
        pages: collected.pages.into(),
        rows: collected.rows.into(),
        rules: collected.rules.list.into(),
    })
}

struct Builder<'a, K> {
    functions: Functions<'a>,
    output: Output<K>,
    machine: Machine,
    /// What CIEs say, by offset; `None` for what can't be used.
    commons: [Option<(usize, Option<Cie>)>; COMMON],
}

#[derive(Clone, Copy)]
struct Cie {
    common: Common,
    has_augmentation_data: bool,
    is_signal: bool,
}

struct Output<K> {
    collected: Collected,
    keep: K,
    /// What holds between functions.
    gap: Rule,
}

impl<K: Keep> Rows for Output<K> {
    #[inline(always)]
    fn row(&mut self, start: u64, end: u64, before: State, state: State, after: Option<State>) {
        if self.keep.row(start, end, before, state, after) {
            self.collected.push(start, state.rule());
        }
    }
}

impl<K: Keep> Output<K> {
    fn odd(&mut self, start: u64, end: u64) {
        if start < end {
            self.collected.push(start, Rule::only(Kind::Odd));
        }
    }

    fn gap(&mut self, start: u64, end: u64) {
        if start < end && self.keep.gap(start, end) {
            self.collected.push(start, self.gap);
        }
    }
}

impl<K: Keep> Builder<'_, K> {
    /// What is returned is where the last function ends.
    fn run(&mut self) -> Result<u64, TableError> {
        // Where the functions so far end, at the most.
        let mut reach = 0;
        let mut next = self.functions.get(0);
        let mut index = 0;
        while let Some((start, offset)) = next {
            index += 1;
            next = self.functions.get(index);
            let until = next.map_or(u64::MAX, |(start, _)| start);
            if until < start {
                return Err(TableError::Unsorted);
            }
            let end = match offset.and_then(|offset| self.function(start, offset, until)) {
                Some(end) => end,
                // How far it would go is not known.
                None if next.is_none() => {
                    self.output.odd(start, start.saturating_add(1));
                    return Ok(reach.max(start.saturating_add(1)));
                }
                None => {
                    self.output.odd(start, until);
                    continue;
                }
            };
            if next.is_some() {
                let odd_until = reach.clamp(end, until.max(end));
                self.output.odd(end, odd_until);
                self.output.gap(odd_until, until);
            }
            reach = reach.max(end);
        }
        self.output.collected.check()?;
        Ok(reach)
    }

    /// The rows of the function that begins at `start`, up to `until`. What is returned is where it ends.
    #[inline(always)]
    fn function(&mut self, start: u64, offset: usize, until: u64) -> Option<u64> {
        let frames = self.functions.frames;
        let entry = frames.entry(offset).ok()??;
        let cie = self.common(entry.cie?)?;
        let mut body = entry.body;
        let begin = cie.common.encoding.read(&mut body, &frames.bases).ok()?;
        let length = cie.common.encoding.format_only().read(&mut body, &frames.bases).ok()?;
        if cie.has_augmentation_data {
            let length = body.uleb().ok()?;
            body.skip(length).ok()?;
        }
        let end = begin.saturating_add(length);
        if begin != start {
            return None;
        }
        let range = start..end.min(until);
        if cie.is_signal {
            self.output.odd(range.start, range.end);
            return Some(end);
        }
        let function = Function { frames, range: range.clone(), code: body.position()..body.end() };
        if !range.is_empty() {
            let done = self.machine.run(&function, &cie.common, &mut self.output);
            self.output.odd(done, range.end);
        }
        Some(end)
    }

    #[inline(always)]
    fn common(&mut self, offset: usize) -> Option<Cie> {
        match self.commons.get(slot(offset)) {
            Some(Some((at, cie))) if *at == offset => *cie,
            _ => self.read_common(offset),
        }
    }

    #[inline(never)]
    fn read_common(&mut self, offset: usize) -> Option<Cie> {
        let cie = self.decode_common(offset);
        if let Some(slot) = self.commons.get_mut(slot(offset)) {
            *slot = Some((offset, cie));
        }
        cie
    }

    fn decode_common(&mut self, offset: usize) -> Option<Cie> {
        let frames = self.functions.frames;
        let cie = frames.cie(offset).ok()?;
        if cie.return_register != u64::from(crate::x86_64::RIP) || cie.code_alignment > MAX_ALIGNMENT {
            return None;
        }
        let mut common = Common {
            code_alignment: cie.code_alignment,
            data_alignment: cie.data_alignment,
            encoding: cie.fde_encoding,
            initial: State::NOTHING,
        };
        let function = Function { frames, range: 0..u64::MAX, code: cie.instructions };
        common.initial = self.machine.initial(&function, &common)?;
        Some(Cie { common, has_augmentation_data: cie.has_augmentation_data, is_signal: cie.is_signal })
    }
}

fn slot(offset: usize) -> usize {
    offset / 8 % COMMON
}

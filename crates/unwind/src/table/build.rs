//! Goes through the functions of a file in order and collects the rows that are kept.
//!
//! The order is that of `.eh_frame_hdr`; nothing is sorted where that is there. Where functions overlap, and where
//! something is damaged, the table says that the call-frame information is to be asked, so that a table never says
//! anything else than a lookup there does. (But between functions it does not mind that one before is damaged.)

use core::ops::Range;

use super::functions::Functions;
use super::keep::Keep;
use super::layout::{bits, rule_of};
use super::machine::{Around, Common, Function, LAST_ADDRESS, MAX_ALIGNMENT, Machine, Rows};
use super::rows::Collected;
use super::state::State;
use super::{Content, Table, TableError};
use crate::architecture::Isa;
use crate::cfi::{Encoding, SectionKind};
use crate::module::Module;
use crate::rule::{Kind, Rule};

/// CIEs that are remembered. Most files have one or two; those of an object file follow each other.
const COMMON: usize = 16;

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
    let output = Output { collected: Collected::default(), keep, gap: bits(Rule::only(gap)) };
    let mut builder = Builder {
        functions,
        output,
        machine: Machine::new(),
        current: (usize::MAX, Cie::NONE),
        commons: Default::default(),
    };
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
        rules: collected.rules.list.iter().filter_map(|&rule| rule_of(rule)).collect(),
    })
}

struct Builder<'a, K> {
    functions: Functions<'a>,
    output: Output<K>,
    machine: Machine,
    /// The CIE of the function at hand, and its offset.
    current: (usize, Cie),
    /// What CIEs say, by offset; `None` for what can't be used.
    commons: [Option<(usize, Option<Cie>)>; COMMON],
}

#[derive(Clone, Copy)]
struct Cie {
    common: Common,
    has_augmentation_data: bool,
    is_signal: bool,
}

impl Cie {
    const NONE: Cie = Cie {
        common: Common {
            code_alignment: 0,
            data_alignment: 0,
            encoding: Encoding::OMIT,
            initial: State::NOTHING,
        },
        has_augmentation_data: false,
        is_signal: false,
    };
}

/// The head of a function's entry, whose CIE is the current one.
struct Head {
    begin: u64,
    end: u64,
    /// Where its instructions are.
    code: Range<usize>,
}

struct Output<K> {
    collected: Collected,
    keep: K,
    /// What holds between functions.
    gap: u64,
}

impl<K: Keep> Rows for Output<K> {
    const SHORTEST: u64 = K::SHORTEST;

    #[inline(always)]
    fn row(&mut self, range: Range<u64>, states: Around) {
        let start = range.start;
        if K::IS_EASY && !self.keep.row(range.clone(), states) {
            return;
        }
        let rule = states.here.rule();
        // What the row before says as well needs no other row.
        if !self.collected.says(rule) && (K::IS_EASY || self.keep.row(range, states)) {
            self.collected.push(start, rule);
        }
    }
}

impl<K: Keep> Output<K> {
    fn odd(&mut self, start: u64, end: u64) {
        if start < end {
            self.collected.push(start, bits(Rule::only(Kind::Odd)));
        }
    }

    fn gap(&mut self, start: u64, end: u64) {
        if start < end && !self.collected.says(self.gap) && self.keep.gap(start..end) {
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
            // A function before it may go on where it has ended.
            let odd_until = reach.clamp(end, until.max(end));
            self.output.odd(end, odd_until);
            if next.is_some() {
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
        let Head { begin, end, code } = match self.usual_head(offset) {
            Some(head) => head,
            None => self.head(offset)?,
        };
        if begin != start || end > LAST_ADDRESS {
            return None;
        }
        let range = start..end.min(until);
        if self.current.1.is_signal {
            self.output.odd(range.start, range.end);
            return Some(end);
        }
        let function = Function { frames: &self.functions.frames, range: range.clone(), code };
        if !range.is_empty() {
            let done = self.machine.run(&function, &self.current.1.common, &mut self.output);
            self.output.odd(done, range.end);
        }
        Some(end)
    }

    /// The head of an entry as compilers write nearly all: 32 bits long, its address relative to itself.
    #[inline(always)]
    fn usual_head(&mut self, offset: usize) -> Option<Head> {
        let frames = &self.functions.frames;
        let bytes = frames.bytes.get(offset..)?;
        let (head, _) = bytes.split_first_chunk::<17>()?;
        let &[l0, l1, l2, l3, i0, i1, i2, i3, b0, b1, b2, b3, r0, r1, r2, r3, augmentation] = head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let id = u32::from_le_bytes([i0, i1, i2, i3]) as usize;
        // A length of all ones says that the length has 64 bits; an id of 0 that this is a CIE.
        let code = 17 + usize::from(augmentation)..4 + length;
        let is_usual = frames.kind == SectionKind::EhFrame && id != 0 && augmentation < 0x80;
        if !is_usual || code.start > code.end || code.end > bytes.len() {
            return None;
        }
        let begin = frames.bases.section.wrapping_add(offset as u64 + 8);
        let begin = begin.wrapping_add_signed(i32::from_le_bytes([b0, b1, b2, b3]).into());
        let cie = (offset + 4).checked_sub(id)?;
        if self.current.0 != cie {
            self.enter(cie)?;
        }
        let cie = &self.current.1;
        let size = i32::from_le_bytes([r0, r1, r2, r3]);
        if cie.common.encoding != Encoding::PC_REL_SDATA4 || !cie.has_augmentation_data || size < 0 {
            return None;
        }
        let end = begin.saturating_add(size as u64);
        Some(Head { begin, end, code: offset + code.start..offset + code.end })
    }

    /// The head of any entry.
    #[inline(never)]
    fn head(&mut self, offset: usize) -> Option<Head> {
        let frames = self.functions.frames;
        let entry = frames.entry(offset).ok()??;
        self.enter(entry.cie?)?;
        let cie = &self.current.1;
        let mut body = entry.body;
        let begin = cie.common.encoding.read(&mut body, &frames.bases).ok()?;
        let length = cie.common.encoding.format_only().read(&mut body, &frames.bases).ok()?;
        if cie.has_augmentation_data {
            let length = body.uleb().ok()?;
            body.skip(length).ok()?;
        }
        Some(Head { begin, end: begin.saturating_add(length), code: body.position()..body.end() })
    }

    /// Makes the CIE at `offset` the current one; `None` if it can't be used.
    #[inline(never)]
    fn enter(&mut self, offset: usize) -> Option<()> {
        let cie = match self.commons.get(slot(offset)) {
            Some(Some((at, cie))) if *at == offset => *cie,
            _ => {
                let cie = self.decode_common(offset);
                if let Some(slot) = self.commons.get_mut(slot(offset)) {
                    *slot = Some((offset, cie));
                }
                cie
            }
        };
        self.current = (offset, cie?);
        Some(())
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
        let function = Function { frames: &frames, range: 0..u64::MAX, code: cie.instructions };
        common.initial = self.machine.initial(&function, &common)?;
        Some(Cie { common, has_augmentation_data: cie.has_augmentation_data, is_signal: cie.is_signal })
    }
}

fn slot(offset: usize) -> usize {
    offset / 8 % COMMON
}

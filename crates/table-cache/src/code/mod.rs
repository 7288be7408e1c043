//! Rules for code that its file has no call-frame information about, made of its instructions: where the stack pointer is, since a function's
//! begin, and where the caller's frame pointer was put.
//!
//! What comes out is more of `.eh_frame`, so that everything that asks for rules has these as well. Invariant: they hold on all ways through
//! the code that lead to an instruction from where functions begin; where ways do not agree, or where one does something to the stack pointer
//! that is not known here, there are none.
//!
//! Not here: what instructions do (`effect`), where functions begin (`begins`), the ways (`flow`, `ways`, `pieces`), what has no
//! caller (`roots`), how rules are written (`frames`). For x86_64 alone.

mod begins;
mod effect;
mod flow;
mod frames;
mod pieces;
mod probes;
mod roots;
mod ways;

use std::ops::Range;

pub(crate) use frames::with_entries;
use plumb_process::{Section, SectionReader};
use plumb_unwind::{Isa, Module, Svma};

use self::flow::Flow;
use self::pieces::Pieces;

/// Gaps between functions that are only aligned are smaller.
const SMALLEST_GAP: u64 = 16;
/// So much code without rules is looked at, of one file.
const MOST_CODE: u64 = 1 << 20;
/// Files with so much of call-frame information have rules for what matters in them, and take long to look through.
const MOST_FRAMES: usize = 8 << 20;
/// What every program has of it from the C runtime: less. Whoever looks at that for each file that is met comes late to what happens meanwhile.
const RUNTIME: u64 = 208;
/// Of larger files gaps that are there for alignment are not looked at.
const MOST_LOOKED_AT: u64 = 4 << 20;
/// Less than such a part of all code does not pay for the search of that for calls.
const PART: u64 = 1024;

/// Entries of call-frame information for code that a file with this one has none for; empty: there are none.
pub(crate) fn entries(module: &Module<Vec<u8>>, code: &SectionReader) -> Vec<u8> {
    let all = gaps(module, code);
    let gaps: Vec<_> = all.iter().filter(|gap| gap.end - gap.start >= SMALLEST_GAP).cloned().collect();
    let size: u64 = gaps.iter().map(|gap| gap.end - gap.start).sum();
    if size > MOST_CODE {
        return Vec::new();
    }
    let roots = roots::roots(code, if code.size() <= MOST_LOOKED_AT { &all } else { &gaps });
    let mut functions = Vec::new();
    if module.sections().eh_frame.is_none() || size >= RUNTIME.max(code.size() / PART) {
        let begins = begins::called(code, &gaps);
        let pieces = Pieces::new(gaps.iter().filter_map(|gap| read(code, gap)));
        functions = Flow::new(&pieces, &begins).functions();
        // What calls one is no function that a compiler has made.
        functions.retain(|function| !roots.iter().any(|&root| function.range.contains(&(root - 1))));
    }
    frames::entries(&functions, &roots)
}

/// Whether entries are to be made for a file with this call-frame information.
pub(crate) fn are_wanted(module: &Module<Vec<u8>>) -> bool {
    let sections = module.sections();
    let frames = [&sections.eh_frame, &sections.debug_frame].into_iter().flatten();
    let frames = frames.map(|section| section.bytes.len()).max().unwrap_or(0);
    sections.isa == Isa::X86_64 && frames <= MOST_FRAMES
}

/// The code of a file that has no rules.
fn gaps(module: &Module<Vec<u8>>, code: &SectionReader) -> Vec<Range<u64>> {
    let all = Svma(code.address)..Svma(code.address.saturating_add(code.size()));
    module.gaps(all).into_iter().map(|gap| gap.start.0..gap.end.0).collect()
}

/// What of a range of the code can be read.
fn read(code: &SectionReader, range: &Range<u64>) -> Option<Section> {
    let mut bytes = vec![0; usize::try_from(range.end.checked_sub(range.start)?).ok()?];
    let read = code.read_at(range.start.checked_sub(code.address)?, &mut bytes);
    bytes.truncate(read);
    Some(Section { address: range.start, bytes })
}

#[cfg(test)]
mod tests;

//! Derives rules for code without call-frame information from its instructions: the distance of the stack pointer
//! from its value at the function's start, and the location of the caller's frame pointer.
//!
//! The result is appended to `.eh_frame`, so that every user of rules sees it. Invariant: the rules hold on all paths
//! through the code that lead from the starts of functions to an instruction. Where paths disagree, or one changes
//! the stack pointer in an unknown way, there are no rules.
//!
//! Elsewhere: effects of instructions (`effect`), starts of functions (`begins`), paths (`flow`, `ways`, `pieces`),
//! code without a caller (`roots`), encoding of rules (`frames`). Supports only x86_64.

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

/// Minimum size of a gap in bytes. Smaller ones are padding between functions.
const SMALLEST_GAP: u64 = 16;
/// Maximum number of bytes of code without rules that are examined in one file.
const MOST_CODE: u64 = 1 << 20;
/// Maximum size of call-frame information, in bytes. Larger files have rules for the code that matters, and take long
/// to search.
const MOST_FRAMES: usize = 8 << 20;
/// Minimum number of bytes without rules. Every program has less than that from the C runtime. Examining it in each
/// new file would delay the processing of other events.
const RUNTIME: u64 = 208;
/// Maximum size of code for which padding gaps are examined too.
const MOST_LOOKED_AT: u64 = 4 << 20;
/// Minimum part of the code without rules, as a divisor. A smaller part is not worth the search of all code for
/// calls.
const PART: u64 = 1024;

/// Creates entries of call-frame information for the code of a file that its module has no rules for; empty if there
/// are none.
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
        // Compilers do not generate code that calls such a root from within a function.
        functions.retain(|function| !roots.iter().any(|&root| function.range.contains(&(root - 1))));
    }
    frames::entries(&functions, &roots)
}

/// Returns whether to create entries for a file with this call-frame information.
pub(crate) fn are_wanted(module: &Module<Vec<u8>>) -> bool {
    let sections = module.sections();
    let frames = [&sections.eh_frame, &sections.debug_frame].into_iter().flatten();
    let frames = frames.map(|section| section.bytes.len()).max().unwrap_or(0);
    sections.isa == Isa::X86_64 && frames <= MOST_FRAMES
}

/// Returns the code of a file that has no rules.
fn gaps(module: &Module<Vec<u8>>, code: &SectionReader) -> Vec<Range<u64>> {
    let all = Svma(code.address)..Svma(code.address.saturating_add(code.size()));
    module.gaps(all).into_iter().map(|gap| gap.start.0..gap.end.0).collect()
}

/// Reads a range of the code, as far as that is possible.
fn read(code: &SectionReader, range: &Range<u64>) -> Option<Section> {
    let mut bytes = vec![0; usize::try_from(range.end.checked_sub(range.start)?).ok()?];
    let read = code.read_at(range.start.checked_sub(code.address)?, &mut bytes);
    bytes.truncate(read);
    Some(Section { address: range.start, bytes })
}

#[cfg(test)]
mod tests;

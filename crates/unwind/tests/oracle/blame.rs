//! Proves that a stack that the unwinder missed cannot be unwound from the information in its files.
//!
//! gimli evaluates the rules of all registers, frame by frame, as long as that finds the true callers. At the first
//! frame where it does not, *every* entry of the file's `.eh_frame` and `.debug_frame` that covers the address (all
//! entries are examined, not only those in the linker's table) must give a wrong caller or a wrong location of its
//! return address, or there must be no such entry. This is checked twice: with registers without a rule lost, as in
//! the ABI, and with them kept, as in libgcc. Any unwinder that follows those rules is then wrong in this frame.
//!
//! The frame must not be a later one than the first that the unwinder got wrong: up to there the files are right.

use std::collections::HashMap;
use std::rc::Rc;

use gimli::UnwindSection;
use plumb_unwind::{Memory, Registers};

use super::maps::{Image, Maps};
use super::shadow::Entry;
use crate::gimli_rows::{self, Slice};
use crate::reference::{self, Caller, Unsaid};

/// Reason why no unwinder that follows the files can be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// All entries for a frame give a wrong caller.
    WrongRules,
    /// No entry covers a frame's address.
    NoRules,
}

/// A proof that the files are wrong.
pub struct Proof {
    pub fault: Fault,
    /// Program counter of the frame whose rules are wrong. For a return address, that of its call.
    pub at: u64,
    /// Caller by the rules, and the true caller.
    pub evidence: String,
}

/// Result of applying an entry to a frame.
enum Verdict {
    Right(Caller),
    /// Correctly identified as the outermost frame.
    RightEnd,
    Wrong(String),
}

/// Whether an entry is in `.debug_frame` (otherwise `.eh_frame`), and its offset there.
type Place = (bool, usize);

/// Finds proofs. Caches which entries cover an address.
#[derive(Default)]
pub struct Blame {
    covering: HashMap<(*const Image, u64), Vec<Place>>,
}

impl Blame {
    /// Proves that the files are wrong about the stack of `start`, whose first `right` callers were found. Returns
    /// the reason if that cannot be proven.
    pub fn prove<M: Memory>(
        &mut self,
        maps: &Maps,
        memory: &mut M,
        start: &Registers,
        truth: &[Entry],
        right: usize,
    ) -> Result<Proof, String> {
        let proof = self.wrong_frame(maps, memory, start, truth, right, Unsaid::Lost)?;
        self.wrong_frame(maps, memory, start, truth, right, Unsaid::Kept)?;
        Ok(proof)
    }

    /// Finds the first frame for which the files do not give the true caller.
    fn wrong_frame<M: Memory>(
        &mut self,
        maps: &Maps,
        memory: &mut M,
        start: &Registers,
        truth: &[Entry],
        right: usize,
        unsaid: Unsaid,
    ) -> Result<Proof, String> {
        let mut registers = *start;
        let mut is_return = false;
        for depth in 0..=right {
            let at = registers.ip().wrapping_sub(is_return.into());
            let mut wrong = Vec::new();
            let mut next = None;
            for verdict in self.verdicts(maps, memory, &registers, at, truth.get(depth), unsaid) {
                match verdict {
                    Verdict::Right(caller) => next = next.or(Some(caller)),
                    Verdict::RightEnd => return Err(format!("the files have all {depth} callers right")),
                    Verdict::Wrong(what) => wrong.push(what),
                }
            }
            let Some(caller) = next else {
                let fault = if wrong.is_empty() { Fault::NoRules } else { Fault::WrongRules };
                let truth = truth.get(depth).map_or("no caller".to_owned(), |entry| {
                    format!("{:#x} in {:#x}..{:#x}", entry.address, entry.slot, entry.end)
                });
                let evidence = format!("caller {depth}: rules say {}, true is {truth}", wrong.join(", "));
                return Ok(Proof { fault, at, evidence });
            };
            registers = caller.registers;
            is_return = !caller.is_signal;
        }
        Err(format!("the files have caller {right} right, {unsaid:?}"))
    }

    /// Compares the result of each entry for an address with the true caller.
    fn verdicts<M: Memory>(
        &mut self,
        maps: &Maps,
        memory: &mut M,
        registers: &Registers,
        at: u64,
        truth: Option<&Entry>,
        unsaid: Unsaid,
    ) -> Vec<Verdict> {
        let Some(mapping) = maps.at(at) else { return Vec::new() };
        let Some(image) = &mapping.image else { return Vec::new() };
        let stated = at.wrapping_sub(mapping.bias);
        let places =
            self.covering.entry((Rc::as_ptr(image), stated)).or_insert_with(|| covering(image, stated));
        let sections = image.module.sections();
        let bases = gimli_rows::bases(sections);
        let mut verdicts = Vec::new();
        for &(is_debug, offset) in places.iter() {
            let section = if is_debug { &sections.debug_frame } else { &sections.eh_frame };
            let Some(section) = section else { continue };
            let stepped = if is_debug {
                let frames = gimli_rows::debug_frame(section.bytes.as_ref());
                let fde = frames.fde_from_offset(&bases, offset.into(), gimli::DebugFrame::cie_from_offset);
                fde.and_then(|fde| {
                    reference::by_fde(&frames, &bases, &fde, stated, memory, registers, unsaid)
                })
            } else {
                let frames = gimli_rows::eh_frame(section.bytes.as_ref());
                let fde = frames.fde_from_offset(&bases, offset.into(), gimli::EhFrame::cie_from_offset);
                fde.and_then(|fde| {
                    reference::by_fde(&frames, &bases, &fde, stated, memory, registers, unsaid)
                })
            };
            verdicts.push(match stepped {
                Ok(stepped) => judge(stepped, truth),
                Err(error) => Verdict::Wrong(format!("an error: {error}")),
            });
        }
        verdicts
    }
}

fn judge(stepped: reference::Stepped, truth: Option<&Entry>) -> Verdict {
    let said = match stepped {
        Ok(caller) if caller.registers.ip() == 0 => Err(reference::End::Root),
        said => said,
    };
    match (said, truth) {
        (Ok(caller), Some(entry))
            if caller.registers.ip() == entry.address
                && caller.is_signal == entry.is_signal
                && caller.slot.is_none_or(|slot| entry.may_be_at(slot)) =>
        {
            Verdict::Right(caller)
        }
        (Err(reference::End::Root), None) => Verdict::RightEnd,
        (Ok(caller), _) => {
            let slot = caller.slot.map_or("a register".to_owned(), |slot| format!("{slot:#x}"));
            Verdict::Wrong(format!("{:#x} at {slot}", caller.registers.ip()))
        }
        (Err(end), _) => Verdict::Wrong(format!("{end:?}")),
    }
}

/// Returns the entries of both sections that cover an address.
fn covering(image: &Image, stated: u64) -> Vec<Place> {
    let sections = image.module.sections();
    let bases = gimli_rows::bases(sections);
    let mut places = Vec::new();
    if let Some(section) = &sections.eh_frame {
        let frames = gimli_rows::eh_frame(section.bytes.as_ref());
        gimli_rows::each_fde(&frames, &bases, |fde| add(&mut places, false, fde, stated));
    }
    if let Some(section) = &sections.debug_frame {
        let frames = gimli_rows::debug_frame(section.bytes.as_ref());
        gimli_rows::each_fde(&frames, &bases, |fde| add(&mut places, true, fde, stated));
    }
    places
}

fn add(places: &mut Vec<Place>, is_debug: bool, fde: &gimli::FrameDescriptionEntry<Slice<'_>>, stated: u64) {
    if fde.contains(stated) {
        places.push((is_debug, fde.offset()));
    }
}

//! The part of a walk that needs only words and rules in the cache, on architectures that have a link register.
//!
//! A return address is anywhere in its frame there, so that the loop for pushed ones (`course`) does not serve. Frames are the same as those of the
//! walker alone; the loop leaves to it whatever is not a frame of the usual kind.

use alloc::vec::Vec;

use crate::address::Avma;
use crate::architecture::Architecture;
use crate::cache::OFFSETS;
use crate::code::CodeMap;
use crate::frame::Walked;
use crate::memory::Memory;
use crate::method::Method;
use crate::rule::{Kind, Rule};
use crate::walker::Walker;

/// Index of no word, which no word of a frame can have: the frame pointer is not saved in a word.
const NOWHERE: usize = 1 << (usize::BITS - 2);

/// Position of the walk: indexes of words. They wrap where they leave the window, and then name no word.
#[derive(Clone, Copy)]
struct Place {
    pc: u64,
    sp: usize,
    /// Word in which the frame pointer is saved, or [`NOWHERE`]; then `fp` is its value.
    saved: usize,
    fp: u64,
}

impl<A: Architecture, C: CodeMap, M: Memory> Walker<'_, A, C, M> {
    /// Adds `frame`, the current one, and its callers to `frames`, but for the last that is found, which becomes the current one and is returned.
    #[inline(never)]
    pub(crate) fn by_linked_words(
        &mut self,
        frame: Walked,
        limit: usize,
        frames: &mut Vec<Walked>,
    ) -> Walked {
        let has_link = A::LR.is_some_and(|link| self.registers.get(link).is_some());
        let (Some(window), false) = (self.memory.window(), self.guessed_sp || has_link) else { return frame };
        let Some(sp) = window.index(Avma(self.registers.sp())) else { return frame };
        let (saved, fp) = match self.saved_fp {
            Some(slot) => match window.index(slot) {
                Some(index) => (index, 0),
                None => return frame,
            },
            // A rule that needs an unknown one finds no word there.
            None => (NOWHERE, self.registers.get(A::FP).unwrap_or(window.base.0.wrapping_sub(1))),
        };
        let mut at = Place { pc: frame.pc.0, sp, saved, fp };
        let has_fp = self.saved_fp.is_some() || self.registers.get(A::FP).is_some();
        let (base, words) = (window.base.0, window.words);
        let bits = self.code.address_bits();
        frames.push(frame);
        let before = frames.len();
        let (callers, list) = (self.cache.callers(), self.cache.list());
        let entries = callers.entries();
        let mask = entries.len().wrapping_sub(1);
        while frames.len() < limit {
            let Some(entry) = entries.get(at.pc as usize & mask) else { break };
            let packed = entry ^ at.pc;
            let rule = match list.get(packed.wrapping_sub(OFFSETS) as usize) {
                Some(&rule) => rule,
                None if packed < OFFSETS => usual(packed, callers.fp(at.pc)),
                None => break,
            };
            let Some(cfa) = at.cfa(rule, base, words) else { break };
            let slot = cfa.wrapping_add_signed(rule.return_address() as isize);
            let Some(&word) = words.get(slot) else { break };
            let pc = A::code_address(word, bits);
            if pc.wrapping_sub(1).cast_signed() < 0 {
                break;
            }
            let slot = Avma(base.wrapping_add(8 * slot as u64));
            frames.push(Walked { pc: Avma(pc), is_return: true, found: Method::Cfi, slot });
            (at.pc, at.sp) = (pc, cfa);
            if rule.fp != 0 {
                at.saved = cfa.wrapping_add_signed(rule.fp.into());
            }
        }
        if frames.len() > before {
            self.go_to(at, base, has_fp);
        }
        frames.pop().unwrap_or(frame)
    }

    /// Makes the last frame of a walk over words from `base` on the current one. `has_fp`: the frame pointer was known where it began.
    fn go_to(&mut self, at: Place, base: u64, has_fp: bool) {
        let address = |index: usize| base.wrapping_add((index as u64).wrapping_mul(8));
        self.registers.set(A::PC, at.pc);
        self.registers.set(A::SP, address(at.sp));
        self.registers.forget_others();
        self.saved_fp = None;
        match at.saved {
            NOWHERE if has_fp => self.registers.set(A::FP, at.fp),
            NOWHERE => self.registers.forget(A::FP),
            saved => self.saved_fp = Some(Avma(address(saved))),
        }
        self.lost = true;
    }
}

/// Returns the rule that a packed offset represents.
fn usual(packed: u64, fp: u8) -> Rule {
    Rule { kind: Kind::Sp, ra: -1, fp: -i16::from(fp), value: 8 * packed as i32 }
}

impl Place {
    /// Returns the index of the CFA, if the rule is of a frame that holds its return address and is further up the stack. Reads the frame pointer if
    /// the rule needs that.
    #[inline(always)]
    fn cfa(&mut self, rule: Rule, base: u64, words: &[u64]) -> Option<usize> {
        let from = match rule.kind {
            Kind::Sp => self.sp,
            Kind::Fp => self.frame_pointer(base, words)?,
            _ => return None,
        };
        let cfa = from.wrapping_add_signed(rule.value as isize >> 3);
        (rule.value & 7 == 0 && rule.ra != 0 && cfa > self.sp).then_some(cfa)
    }

    /// Returns the index of the word that the frame pointer points at.
    #[inline(always)]
    fn frame_pointer(&mut self, base: u64, words: &[u64]) -> Option<usize> {
        if self.saved != NOWHERE {
            self.fp = *words.get(self.saved)?;
            self.saved = NOWHERE;
        }
        let distance = self.fp.wrapping_sub(base);
        (distance & 7 == 0 && distance / 8 < words.len() as u64).then_some((distance / 8) as usize)
    }
}

//! Stubs of the procedure linkage table in aarch64 files.
//!
//! `adrp x16, page; ldr x17, [x16, #offset]; add x16, x16, #offset; br x17`, with `bti c` before them and `autia1716` before the branch where
//! code is protected so. A stub has 16 or 24 bytes; the first one, which calls the dynamic linker, 32 (binutils: bfd/elfnn-aarch64.c; lld:
//! ELF/Arch/AArch64.cpp).

/// Bytes of an instruction, of the longest stub, and of the first one.
const WORD: u64 = 4;
pub(super) const LONGEST: u64 = 24;
pub(super) const FIRST: u64 = 32;

const BTI_C: u32 = 0xd503_245f;
const AUTIA1716: u32 = 0xd503_219f;
const NOP: u32 = 0xd503_201f;
const BR_X17: u32 = 0xd61f_0220;

/// A stub.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stub {
    pub start: u64,
    pub end: u64,
    /// Address of the slot that it jumps through.
    pub slot: u64,
}

/// Returns the stub that contains `address`; `code` is that around it, beginning at `base`, of one section.
pub(super) fn find(code: &[u8], base: u64, address: u64) -> Option<Stub> {
    let words: Vec<u32> = code.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let at = usize::try_from(address.checked_sub(base)? / WORD).ok()?;
    let first = at.saturating_sub((LONGEST / WORD) as usize - 1);
    // The latest beginning: `bti c` is the first word of a stub, and not a stub before it.
    let stubs = (first..=at).rev().filter_map(|from| read(&words, base, from));
    stubs.into_iter().find(|stub| (stub.start..stub.end).contains(&address))
}

/// Reads the stub that begins at a word, or at the one before it if that is `bti c`.
fn read(words: &[u32], base: u64, from: usize) -> Option<Stub> {
    let is_protected = words.get(from) == Some(&BTI_C);
    let begin = from + usize::from(is_protected);
    let &[page, load, add, ..] = words.get(begin..)? else { return None };
    let slot = slot(base.checked_add(begin as u64 * WORD)?, page, load, add)?;
    let mut end = begin + 3;
    end += usize::from(words.get(end) == Some(&AUTIA1716));
    if words.get(end) != Some(&BR_X17) {
        return None;
    }
    end += 1;
    while words.get(end) == Some(&NOP) && ((end - from) as u64) < LONGEST / WORD {
        end += 1;
    }
    let has_mark = !is_protected && from > 0 && words[from - 1] == BTI_C;
    let start = from - usize::from(has_mark);
    Some(Stub { start: base + start as u64 * WORD, end: base + end as u64 * WORD, slot })
}

/// Returns the slot that `adrp x16`, `ldr x17` and `add x16` address.
fn slot(address: u64, page: u32, load: u32, add: u32) -> Option<u64> {
    let is_page = page & 0x9f00_001f == 0x9000_0010;
    let is_load = load & 0xffc0_03ff == 0xf940_0211;
    let is_add = add & 0xffc0_03ff == 0x9100_0210;
    if !(is_page && is_load && is_add) {
        return None;
    }
    // 21 signed bits, of which the lowest two are apart.
    let pages = (page >> 5 & 0x7_ffff) << 2 | page >> 29 & 3;
    let pages = i64::from((pages << 11).cast_signed() >> 11);
    let offset = u64::from(load >> 10 & 0xfff) * 8;
    Some((address & !0xfff).wrapping_add_signed(pages << 12).wrapping_add(offset))
}

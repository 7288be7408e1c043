//! The runtime's lists in a program without symbols, found by what they hold: a list of goroutines consists of pointers to what names itself,
//! and the reasons for waiting begin with known texts.

use std::ops::Range;

use crate::Memory;

use super::{MAX_GOROUTINES, layout, text};

/// Limit on the bytes of variables that are searched.
const MAX_VARIABLES: u64 = 64 << 20;
/// Bytes that are read at once.
const CHUNK: u64 = 1 << 20;
/// Bytes of a chunk that the next one repeats, so that no list lies across two.
const OVERLAP: u64 = 8 * 8;
/// The fewest goroutines of a program: its runtime starts some before `main`.
const FEWEST: u64 = 3;
/// Entries of a list that are looked at.
const LOOKED_AT: u64 = 16;
/// First entries of `runtime.waitReasonStrings` (src/runtime/runtime2.go), the same since Go 1.14.
const REASONS: [&str; 3] = ["", "GC assist marking", "IO wait"];

/// Addresses in a process.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lists {
    /// Address and length of the longest list of goroutines: the runtime's own has all of them.
    pub(super) all: Option<(u64, u64)>,
    /// Address of the reasons for waiting.
    pub(super) reasons: Option<u64>,
}

/// Searches a process' variables, which are at these addresses.
pub(super) fn search(memory: &dyn Memory, variables: &[Range<u64>]) -> Lists {
    let mut lists = Lists::default();
    let mut left = MAX_VARIABLES;
    for range in variables {
        let mut at = range.start & !7;
        while at < range.end && left > 0 {
            let mut bytes = vec![0; (range.end - at).min(CHUNK) as usize];
            if memory.read(at, &mut bytes) {
                let (words, _) = bytes.as_chunks();
                let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
                lists.look(memory, at, &words);
            }
            left = left.saturating_sub(bytes.len() as u64);
            // The file may state any addresses.
            at = at.saturating_add(CHUNK - OVERLAP);
        }
    }
    lists
}

impl Lists {
    fn look(&mut self, memory: &dyn Memory, start: u64, words: &[u64]) {
        for (index, window) in words.windows(6).enumerate() {
            let at = start + 8 * index as u64;
            let &[pointer, length, capacity, second, _, third] = window else { continue };
            let longest = self.all.map_or(FEWEST - 1, |(_, length)| length);
            if (longest + 1..=MAX_GOROUTINES).contains(&length)
                && (length..=2 * MAX_GOROUTINES).contains(&capacity)
                && holds_goroutines(memory, pointer, length)
            {
                self.all = Some((at, length));
            }
            // Lengths of the first texts; their addresses are between.
            if [length, second, third].iter().eq(&REASONS.map(|text| text.len() as u64))
                && self.reasons.is_none()
                && has_reasons(memory, at)
            {
                self.reasons = Some(at);
            }
        }
    }
}

fn holds_goroutines(memory: &dyn Memory, pointer: u64, length: u64) -> bool {
    let entry = |index: u64| memory.word(pointer.wrapping_add(8 * index)).ok();
    (0..length.min(LOOKED_AT))
        .chain([length - 1])
        .all(|index| entry(index).is_some_and(|at| layout::names_itself(memory, at)))
}

fn has_reasons(memory: &dyn Memory, at: u64) -> bool {
    let mut texts = REASONS.iter().zip((0..).map(|index| at.wrapping_add(16 * index)));
    texts.all(|(known, at)| text(memory, at).is_ok_and(|found| found == *known))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A process with these bytes; others cannot be read.
    #[derive(Default)]
    struct Bytes(BTreeMap<u64, u8>);

    impl Bytes {
        fn put(&mut self, at: u64, bytes: &[u8]) {
            self.0.extend((at..).zip(bytes.iter().copied()));
        }

        fn words(&mut self, at: u64, words: &[u64]) {
            words.iter().zip((at..).step_by(8)).for_each(|(word, at)| self.put(at, &word.to_le_bytes()));
        }
    }

    impl Memory for Bytes {
        fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
            let mut places = bytes.iter_mut().zip(at..);
            places.all(|(byte, at)| self.0.get(&at).map(|known| *byte = *known).is_some())
        }
    }

    #[test]
    fn lists_are_found_by_what_they_hold() {
        let mut memory = Bytes::default();
        memory.words(0x1000, &[0; 40]);
        for at in [0x4000, 0x5000, 0x6000, 0x7000] {
            memory.words(at + 72, &[at]);
        }
        // Not its own address.
        memory.words(0x8000 + 72, &[0x8008]);
        memory.words(0x2000, &[0x4000, 0x5000, 0x6000, 0x7000]);
        memory.words(0x2100, &[0x4000, 0x5000, 0x6000, 0x7000, 0x8000]);
        memory.words(0x1008, &[0x2000, 3, 4]);
        memory.words(0x1028, &[0x2000, 4, 4]);
        memory.words(0x1048, &[0x2100, 5, 8]);
        memory.words(0x1068, &[0x2000, 4, 2]);
        memory.put(0x3000, b"GC assist markingIO wait");
        memory.words(0x1088, &[0, 0, 0x3001, 17, 0x3011, 7]);
        memory.words(0x10b8, &[0, 0, 0x3000, 17, 0x3011, 7]);
        let found = search(&memory, &[0x1000..0x1080, 0x1080..0x1100]);
        assert_eq!(found, Lists { all: Some((0x1028, 4)), reasons: Some(0x10b8) });
    }
}

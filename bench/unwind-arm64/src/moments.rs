//! Snapshots as depths.c writes them.

use plumb_unwind::RegisterSet;
use plumb_unwind::aarch64::{Aarch64, SP};

const MAGIC: u64 = 0x6465_7074;

/// One stack.
pub struct Moment {
    /// By DWARF number.
    pub registers: Vec<u64>,
    /// The same, as plumb has them.
    pub start: RegisterSet<Aarch64>,
    /// Program counters found by the program's own unwinder.
    pub pcs: Vec<u64>,
    /// Address of the stack, and its words.
    pub base: u64,
    pub words: Vec<u64>,
}

/// Decodes snapshots. Of those on several stacks, the one of the stack pointer is kept.
pub fn moments(bytes: &[u8]) -> Vec<Moment> {
    let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let mut all = Vec::new();
    while let Some(magic) = words.next() {
        assert_eq!(magic, MAGIC);
        let mut list = |count: u64| words.by_ref().take(count as usize).collect::<Vec<u64>>();
        let count = list(1)[0];
        let registers = list(count);
        let count = list(1)[0];
        let mut pcs = list(count);
        pcs.retain(|&pc| pc != 0);
        let pieces = list(1)[0];
        let mut piece = || {
            let head = list(2);
            (head[0], list(head[1]))
        };
        let pieces: Vec<_> = (0..pieces).map(|_| piece()).collect();
        let has_sp = |(base, words): &(u64, Vec<u64>)| {
            (*base..*base + 8 * words.len() as u64).contains(&registers[usize::from(SP)])
        };
        if let Some((base, words)) = pieces.into_iter().find(has_sp) {
            let mut start = RegisterSet::<Aarch64>::new(0, 0);
            (0..).zip(&registers).for_each(|(number, &value)| start.set(number, value));
            all.push(Moment { registers, start, pcs, base, words });
        }
    }
    all
}

//! Exclusive loads and stores. Every stop between them has the store fail, so that a program that is stepped there tries
//! for ever: it has to run from the load to the end of the sequence.

use super::instruction::{Exclusive, Kind, branch, exclusive};

/// Number of instructions that a sequence may have. Compilers emit four or five.
const LONGEST: u64 = 16;

/// Returns where to stop next if the instruction at `pc` begins such a sequence: behind its store, and where its branches
/// lead out of it. Empty if it can be stepped.
pub fn sequence_ends(kind: Kind, pc: u64, read: impl Fn(u64) -> Option<u64>) -> Vec<u64> {
    let mut ends = Vec::new();
    if kind != Kind::Exclusive {
        return ends;
    }
    for at in (0..LONGEST).map(|index| pc + 4 * index) {
        let Some(word) = read(at).map(|word| word as u32) else { break };
        if exclusive(word) == Some(Exclusive::Store) {
            ends.push(at + 4);
            ends.retain(|end| !(pc..=at).contains(end));
            return ends;
        }
        ends.extend(branch(word, at));
    }
    Vec::new()
}

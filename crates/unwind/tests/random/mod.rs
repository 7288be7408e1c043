//! Random numbers for tests, the same every time (xorshift64*; Vigna, "An experimental exploration of Marsaglia's xorshift
//! generators, scrambled", 2016).

#![allow(dead_code, reason = "each user takes what it needs")]

use std::vec::Vec;

/// The state, which must not be 0.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit
    }

    /// Fewer than `most` bytes.
    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most)).map(|_| (self.next() >> 24) as u8).collect()
    }
}

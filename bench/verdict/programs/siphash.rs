//! Counts by number in a HashMap with its default hash, made against attackers; the fix multiplies.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

#[derive(Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

#[cfg(after)]
type Counts = HashMap<u64, u64, BuildHasherDefault<Multiply>>;
#[cfg(not(after))]
type Counts = HashMap<u64, u64>;

#[inline(never)]
fn count(counts: &mut Counts, keys: u64) {
    let mut seed = 1u32;
    for _ in 0..keys {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *counts.entry(u64::from(seed >> 20)).or_insert(0) += 1; // SLOW
    }
}

fn main() {
    let _ = BuildHasherDefault::<Multiply>::default();
    let mut counts = Counts::default();
    count(&mut counts, 90_000_000);
    eprintln!("{}", counts.len());
}

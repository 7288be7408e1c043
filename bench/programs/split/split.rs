//! Likewise, by closures and trait objects.
use std::hint::black_box;
use std::time::{Duration, Instant};

const UNIT: u32 = 2_000_000;

#[inline(never)]
fn sixty(x: u32) -> u32 {
    (0..6 * UNIT).fold(x, |x, _| black_box(x).wrapping_mul(1664525).wrapping_add(1013904223))
}

#[inline(never)]
fn thirty(x: u32) -> u32 {
    (0..3 * UNIT).fold(x, |x, _| black_box(x).wrapping_mul(1664525).wrapping_add(1013904223)) + 1
}

#[inline(never)]
fn ten(x: u32) -> u32 {
    (0..UNIT).fold(x, |x, _| black_box(x).wrapping_mul(1664525).wrapping_add(1013904223)).wrapping_add(2)
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(3);
    let end = Instant::now() + Duration::from_secs(seconds);
    let all: [Box<dyn Fn(u32) -> u32>; 3] = [Box::new(sixty), Box::new(|x| thirty(x & 0xffff)), Box::new(ten)];
    let mut x = 1;
    while Instant::now() < end {
        x = all.iter().fold(x, |x, work| black_box(work(x)));
    }
    black_box(x);
}

//! Counts and adds up what is above a threshold in random numbers, by a branch; the fix sorts the numbers once.
use std::hint::black_box;

#[inline(never)]
fn above(numbers: &[u32], threshold: u32) -> (u64, u64) {
    let (mut count, mut sum) = (0, 0);
    for &number in numbers {
        if number > threshold { // SLOW
            count = black_box(count + 1);
            sum += u64::from(number);
        }
    }
    (count, sum)
}

fn main() {
    let mut state = 1u32;
    let mut numbers: Vec<u32> = (0..1_500_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        })
        .collect();
    if cfg!(after) {
        numbers.sort_unstable();
    }
    let mut total = 0;
    for round in 0..150 {
        let (count, sum) = above(&numbers, 8_388_608 + round);
        total += count ^ sum;
    }
    eprintln!("{total}");
}

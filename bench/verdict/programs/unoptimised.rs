//! Built without -O; the fix is -O.

#[inline(never)]
fn smooth(levels: &mut [u32], rounds: usize) -> u64 {
    for _ in 0..rounds {
        for i in 1..levels.len() - 1 {
            levels[i] = (levels[i - 1] + levels[i] * 2 + levels[i + 1]) / 4; // SLOW
        }
    }
    levels.iter().map(|&level| u64::from(level)).sum()
}

fn main() {
    let mut levels: Vec<u32> = (0..20_000u32).map(|i| i * 7919 % 10_007).collect();
    eprintln!("{}", smooth(&mut levels, 5000));
}

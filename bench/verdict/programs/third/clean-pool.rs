//! Four workers take chunks of a range and look for long Collatz chains: well made, nothing to mend.
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

fn steps(mut n: u64) -> u32 {
    let mut count = 0;
    while n != 1 {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        count += 1;
    }
    count
}

fn main() {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    const END: u64 = 12_000_000;
    let workers: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(|| {
                let mut best = (0, 0);
                loop {
                    let from = NEXT.fetch_add(10_000, Ordering::Relaxed);
                    if from >= END {
                        return best;
                    }
                    for n in from..from + 10_000 {
                        best = best.max((steps(n), n));
                    }
                }
            })
        })
        .collect();
    let best = workers.into_iter().map(|one| one.join().unwrap()).max().unwrap();
    eprintln!("{} {}", best.1, best.0);
}

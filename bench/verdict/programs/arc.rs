//! Two threads clone an Arc for each item, and so count in one place; the fix borrows it.

use std::sync::Arc;

struct Rates {
    per_item: u64,
}

#[cfg(not(after))]
type Handle<'a> = Arc<Rates>;
#[cfg(after)]
type Handle<'a> = &'a Arc<Rates>;

#[inline(never)]
fn charge(rates: Handle<'_>, item: u64) -> u64 {
    item * rates.per_item
}

#[inline(never)]
fn charge_all(rates: &Arc<Rates>, items: u64) -> u64 {
    let mut sum = 0u64;
    for item in 0..items {
        #[cfg(not(after))]
        let handle = Arc::clone(rates); // SLOW
        #[cfg(after)]
        let handle = rates;
        sum = sum.wrapping_add(charge(handle, item));
    }
    sum
}

fn main() {
    let rates = Arc::new(Rates { per_item: 3 });
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let rates = Arc::clone(&rates);
            std::thread::spawn(move || charge_all(&rates, 80_000_000))
        })
        .collect();
    let sum: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).fold(0, u64::wrapping_add);
    eprintln!("{sum}");
}

//! Two threads count words in one map and lock it for each word; the fix counts for itself and joins at the end.
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;

fn words(seed: u32) -> Vec<String> {
    let mut state = seed;
    (0..500)
        .map(|_| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            format!("w{}", state >> 25)
        })
        .collect()
}

#[inline(never)]
fn count(text: &[String], rounds: usize, shared: &Mutex<HashMap<String, u64>>) {
    let mut own: HashMap<String, u64> = HashMap::new();
    for _ in 0..rounds {
        for word in text {
            if cfg!(after) {
                *own.entry(word.clone()).or_default() += 1;
            } else {
                let mut counts = shared.lock().unwrap(); // SLOW
                *counts.entry(word.clone()).or_default() += 1;
            }
        }
    }
    let mut counts = shared.lock().unwrap();
    for (word, number) in own {
        *counts.entry(word).or_default() += number;
    }
}

fn main() {
    let shared = Arc::new(Mutex::new(HashMap::new()));
    let threads: Vec<_> = (0..2)
        .map(|n| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || count(&words(n), 12_000, &shared))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let counts = shared.lock().unwrap();
    let sum: u64 = counts.iter().map(|(word, number)| word.len() as u64 * number).sum();
    eprintln!("{} {sum}", counts.len());
}

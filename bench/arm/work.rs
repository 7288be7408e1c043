//! Counts, sorts and hashes words through iterators and closures, as often as the argument says: calls that a compiler inlines into each other.
use std::collections::{BTreeMap, HashMap};

fn step(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *seed >> 33
}

fn words(seed: &mut u64, count: usize) -> Vec<String> {
    (0..count).map(|_| (0..3 + step(seed) % 3).map(|_| char::from(b'a' + (step(seed) % 4) as u8)).collect()).collect()
}

fn count(words: &[String]) -> HashMap<&str, usize> {
    words.iter().fold(HashMap::new(), |mut counts, word| {
        *counts.entry(word.as_str()).or_insert(0) += 1;
        counts
    })
}

fn most(counts: &HashMap<&str, usize>) -> Vec<(String, usize)> {
    let mut all: Vec<_> = counts.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    let (mut seed, mut all) = (88172645463325252, BTreeMap::new());
    for _ in 0..rounds {
        let words = words(&mut seed, 4000);
        for (word, count) in most(&count(&words)) {
            *all.entry(word).or_insert(0) += count;
        }
    }
    println!("{}", all.values().map(|count| count * count).sum::<usize>());
}

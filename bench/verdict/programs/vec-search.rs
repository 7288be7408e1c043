//! Asks a vector whether it holds a number; the fix asks a hash set.

#[cfg(after)]
type Seen = std::collections::HashSet<u64>;
#[cfg(not(after))]
type Seen = Vec<u64>;

/// The rest of the work: what a fix leaves.
#[inline(never)]
fn settle(mut value: u64, steps: u32) -> u64 {
    for _ in 0..steps {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    }
    value
}

#[inline(never)]
fn is_duplicate(seen: &Seen, ticket: u64) -> bool {
    seen.contains(&ticket) // SLOW
}

fn main() {
    let mut seen = Seen::default();
    let mut duplicates = 0;
    for i in 0..140_000u64 {
        let ticket = i * 7919 % 120_011;
        if is_duplicate(&seen, ticket) {
            duplicates += 1;
        } else {
            seen.extend([ticket]);
            duplicates += settle(i + 1, 3000) & 1;
        }
    }
    eprintln!("{duplicates}");
}

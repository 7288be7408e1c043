//! Clones a list of names for each question; the fix borrows it.

struct Directory {
    names: Vec<String>,
}

impl Directory {
    #[cfg(after)]
    fn names(&self) -> &[String] {
        &self.names
    }

    #[cfg(not(after))]
    fn names(&self) -> Vec<String> {
        self.names.clone() // SLOW
    }
}

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
fn longest(directory: &Directory, round: usize) -> usize {
    directory.names().iter().map(String::len).max().unwrap_or(0) + round % 2
}

fn main() {
    let names = (0..400).map(|i| format!("someone with number {i}")).collect();
    let directory = Directory { names };
    let mut sum = 0;
    for round in 0..60_000 {
        sum += longest(&directory, round) + (settle(round as u64 + 1, 5000) & 1) as usize;
    }
    eprintln!("{sum}");
}

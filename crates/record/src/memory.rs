//! `--max-memory`: monitors the recorder's memory during a recording, and returns free memory to the system.
//!
//! Elsewhere: how each part keeps to its share (names: symbolize; samples: `keeping`).

use std::time::{Duration, Instant};

use plumb_capture_perf::{resident_memory, trim_memory};

/// Time between two checks.
const LOOK: Duration = Duration::from_millis(250);
/// Shortest time between two trims of the heap, with much room left and with little: a trim takes
/// some milliseconds.
const TRIM: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(1)];

/// Share of the limit for files that names are read from, in bytes.
pub fn for_names(bound: u64) -> u64 {
    // Allocator fragmentation adds another half.
    bound / 8
}

/// Share of the limit for cached unwind information that is not in use, in bytes.
pub fn for_unwinding(bound: u64) -> usize {
    usize::try_from(bound / 16).unwrap_or(usize::MAX)
}

/// Share of the limit for the unwind tables in the kernel, in bytes: a multiple of 8 MiB.
pub fn for_tables(bound: u64) -> usize {
    let step = 8 << 20;
    usize::try_from((bound / 6 / step).max(1) * step).unwrap_or(usize::MAX)
}

/// Share of the limit for samples and stacks, in bytes, before they are written to disk or folded, which needs as much again.
pub fn for_samples(bound: u64) -> u64 {
    bound / 16
}

/// Periodic checks of this process' memory.
pub(crate) struct Memory {
    bound: u64,
    looked: Instant,
    trimmed: Instant,
    /// Lowest resident memory since the last trim.
    least: u64,
    is_scarce: bool,
}

impl Memory {
    /// Limits memory to `bound` bytes.
    pub fn new(bound: u64) -> Self {
        let now = Instant::now();
        Self { bound, looked: now, trimmed: now, least: 0, is_scarce: false }
    }

    /// Whether a check is due.
    pub fn is_due(&self) -> bool {
        self.looked.elapsed() >= LOOK
    }

    /// Checks memory, if due, and returns free memory to the system: symbolization leaves the allocator with as much freed
    /// memory as the rest of plumb uses.
    pub fn look(&mut self) {
        if !self.is_due() {
            return;
        }
        self.looked = Instant::now();
        let Some((mut resident, _)) = resident_memory() else { return };
        if self.is_worth_trimming(resident) {
            trim_memory();
            resident = resident_memory().map_or(resident, |(resident, _)| resident);
            (self.trimmed, self.least) = (Instant::now(), resident);
        }
        self.least = self.least.min(resident);
        self.is_scarce = resident > self.bound / 8 * 7;
    }

    /// Whether memory has grown enough since the last trim, once that matters.
    fn is_worth_trimming(&self, resident: u64) -> bool {
        let pause = TRIM[usize::from(resident > self.bound / 8 * 5)];
        let has_grown = resident > self.least.saturating_add(self.bound / 16);
        resident > self.bound / 2 && has_grown && self.trimmed.elapsed() >= pause
    }

    /// Whether the last check found little memory left.
    pub fn is_scarce(&self) -> bool {
        self.is_scarce
    }

    /// A warning, if the limit was exceeded.
    pub fn exceeded(&self) -> Option<String> {
        let (_, peak) = resident_memory()?;
        let mb = |bytes: u64| bytes.div_ceil(1 << 20);
        (peak > self.bound).then(|| {
            format!(
                "memory reached {} MiB, more than --max-memory {} MiB: no sample and no name was left out for that",
                mb(peak),
                mb(self.bound)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_memory_is_given_back_once_it_is_much() {
        let mib = |mib: u64| mib << 20;
        let mut memory = Memory::new(mib(256));
        let some_time_ago = |pause| Instant::now().checked_sub(pause).expect("the machine runs for longer");
        memory.trimmed = some_time_ago(TRIM[0]);
        assert!(!memory.is_worth_trimming(mib(120)), "there is room");
        assert!(memory.is_worth_trimming(mib(140)));
        memory.least = mib(130);
        assert!(!memory.is_worth_trimming(mib(140)), "little came since");
        memory.trimmed = some_time_ago(TRIM[1]);
        assert!(!memory.is_worth_trimming(mib(150)), "not so soon");
        assert!(memory.is_worth_trimming(mib(200)), "unless the bound is near");
    }

    #[test]
    fn tables_take_a_part_of_the_bound_in_steps() {
        assert_eq!(
            [1 << 20, 100 << 20, 256 << 20, 1 << 30].map(for_tables),
            [8, 16, 40, 168].map(|mib| mib << 20)
        );
    }

    #[test]
    fn a_bound_that_was_not_kept_is_said() {
        let text = Memory::new(1 << 20).exceeded().expect("a test takes more than that");
        assert!(text.contains("--max-memory 1 MiB"), "{text}");
        assert_eq!(Memory::new(u64::MAX).exceeded(), None);
    }
}

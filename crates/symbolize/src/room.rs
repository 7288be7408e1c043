//! The memory budget of open files: [`Room`], shared by all workers.
//!
//! One half is for files that stay open because more of their frames are expected, the other for those that are processed and closed at
//! once. Invariant: a thread that waits for room holds none of the second half, so some thread always makes progress.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A budget in bytes.
#[derive(Debug)]
pub(crate) struct Room {
    /// Size of each half.
    half: u64,
    taken: Mutex<Taken>,
    given_back: Condvar,
}

/// Bytes in use.
#[derive(Debug, Default)]
struct Taken {
    kept: u64,
    passing: u64,
}

/// Bytes that are returned to the budget on drop.
#[derive(Debug)]
pub(crate) struct Share<'r> {
    room: &'r Room,
    bytes: u64,
    is_kept: bool,
}

impl Room {
    /// Creates a budget of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self { half: bytes / 2, taken: Mutex::default(), given_back: Condvar::new() }
    }

    /// Takes room for a file that stays open, if there is enough.
    pub fn keep(&self, bytes: u64) -> Option<Share<'_>> {
        let mut taken = self.lock();
        let kept = taken.kept.checked_add(bytes).filter(|&kept| kept <= self.half)?;
        taken.kept = kept;
        Some(Share { room: self, bytes, is_kept: true })
    }

    /// Takes room for a file that is closed soon: waits until there is enough, or until no other such file is open.
    pub fn pass(&self, bytes: u64) -> Share<'_> {
        let mut taken = self.lock();
        while taken.passing > 0 && taken.passing.saturating_add(bytes) > self.half {
            taken = self.given_back.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        taken.passing = taken.passing.saturating_add(bytes);
        Share { room: self, bytes, is_kept: false }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // The sums stay consistent if another thread panics.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut taken = self.room.lock();
        let sum = if self.is_kept { &mut taken.kept } else { &mut taken.passing };
        *sum = sum.saturating_sub(self.bytes);
        drop(taken);
        self.room.given_back.notify_all();
    }
}

/// Whether this process may take `bytes` more and stay below `bound`. A share of the bound is left to other allocations: a larger one while
/// a profile is being recorded.
pub(crate) fn has_left(bytes: u64, bound: Option<u64>, is_live: bool) -> bool {
    let Some(bound) = bound else { return true };
    let left_to_others = bound / if is_live { 4 } else { 8 };
    resident().is_none_or(|resident| resident.saturating_add(bytes) <= bound - left_to_others)
}

/// Returns the resident memory of this process in bytes; `None` if the kernel does not report it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn what_stays_open_takes_no_more_than_its_half() {
        let room = Room::new(100);
        let first = room.keep(30);
        assert!(first.is_some() && room.keep(30).is_none(), "50 are for what stays");
        drop(first);
        assert!(room.keep(50).is_some());
        assert!(room.keep(51).is_none() && room.keep(u64::MAX).is_none());
    }

    #[test]
    fn what_is_left_goes_by_what_this_process_has() {
        let now = resident().expect("the kernel says");
        assert!(!has_left(1, Some(now / 2), false) && !has_left(now, Some(now), false));
        assert!(has_left(1 << 20, Some(4 * now + (64 << 20)), true));
        let (bytes, bound) = (1000 << 30, (1000 << 30) / 5 * 6);
        assert!(
            has_left(bytes, Some(bound), false) && !has_left(bytes, Some(bound), true),
            "others come first"
        );
        assert!(has_left(u64::MAX, None, true), "no bound");
    }

    #[test]
    fn a_file_that_is_too_large_is_worked_on_alone() {
        let room = Room::new(100);
        let alone = room.pass(1000);
        let (begun, has_begun) = mpsc::channel();
        thread::scope(|scope| {
            let next = scope.spawn(|| {
                begun.send(()).expect("the test listens");
                let _share = room.pass(1);
                room.lock().passing
            });
            has_begun.recv().expect("it says that it has begun");
            assert_eq!(room.lock().passing, 1000);
            drop(alone);
            assert_eq!(next.join().expect("it ends"), 1, "it had to wait");
        });
        let both = (room.pass(20), room.pass(30));
        assert_eq!(room.lock().passing, 50, "small ones side by side");
        drop(both);
        assert_eq!(room.lock().passing, 0);
    }
}

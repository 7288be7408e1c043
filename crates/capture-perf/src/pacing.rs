//! Limits how soon an evicted unwind table is made again: if a machine's programs need more tables than fit, each
//! would evict the next, and making them would cost more than sampling. Until then, stacks in the file are copied.

use std::time::{Duration, Instant};

use plumb_process::Backing;
use rustc_hash::FxHashMap;

/// A table is made again only after this multiple of the time that making it took: each file costs at most a thousandth of a CPU.
const APART: u32 = 1000;

/// A table that was made.
#[derive(Debug)]
struct Made {
    /// Identifies the file, as file numbers are reused.
    of: Option<Backing>,
    at: Instant,
    took: Duration,
}

/// Time and duration of making each file's table, by file number.
#[derive(Debug, Default)]
pub(crate) struct Pacing(FxHashMap<u32, Made>);

impl Pacing {
    /// Whether the table of a file may be made now.
    pub fn allows(&self, file: u32, of: Option<Backing>) -> bool {
        let is_late = |made: &Made| made.of != of || made.at.elapsed() >= made.took.saturating_mul(APART);
        self.0.get(&file).is_none_or(is_late)
    }

    /// Notes that making the table started at `began` and has just ended.
    pub fn note(&mut self, file: u32, of: Option<Backing>, began: Instant) {
        self.0.insert(file, Made { of, at: Instant::now(), took: began.elapsed() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_is_not_made_again_soon() {
        let mut pacing = Pacing::default();
        let of = Some(Backing::Vdso);
        assert!(pacing.allows(1, of));
        let before = |time| Instant::now().checked_sub(time).expect("the machine runs for longer");
        pacing.note(1, of, before(Duration::from_millis(200)));
        assert!(!pacing.allows(1, of) && pacing.allows(2, of));
        assert!(pacing.allows(1, None), "the number is another file's by now");
        let times = [(Duration::from_secs(199), false), (Duration::from_secs(201), true)];
        for (since, is_allowed) in times {
            pacing.0.insert(1, Made { of, at: before(since), took: Duration::from_millis(200) });
            assert_eq!(pacing.allows(1, of), is_allowed, "{since:?}");
        }
    }
}

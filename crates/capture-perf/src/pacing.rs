//! How soon the table of a file is made again that had to make room for others: where the programs of a machine need more tables than there is room for, each
//! would drive out the next, and making them would take more than sampling does. Until then stacks in the file are copied.

use std::time::{Duration, Instant};

use plumb_process::Backing;
use rustc_hash::FxHashMap;

/// A table is made again after so many times as long as making it took: of a processor each takes a thousandth at most.
const APART: u32 = 1000;

/// A table that was made.
#[derive(Debug)]
struct Made {
    /// Of what: numbers of files are used again.
    of: Option<Backing>,
    at: Instant,
    took: Duration,
}

/// When the tables of files were made, by the files' numbers, and how long that took.
#[derive(Debug, Default)]
pub(crate) struct Pacing(FxHashMap<u32, Made>);

impl Pacing {
    /// Whether the table of a file may be made now.
    pub fn allows(&self, file: u32, of: Option<Backing>) -> bool {
        let is_late = |made: &Made| made.of != of || made.at.elapsed() >= made.took.saturating_mul(APART);
        self.0.get(&file).is_none_or(is_late)
    }

    /// It was made, which began then.
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

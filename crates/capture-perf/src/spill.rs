//! A ring that is emptied into memory while nobody has time for its records.
//!
//! A ring holds some fractions of a second. Who works on the profile for longer than that would lose samples: meanwhile a thread moves
//! what comes. Otherwise records are read in place, and nothing is copied.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::merge::{Feed, Merge};

/// Time between two looks at the rings. The smallest that is likely holds twice as much.
const PAUSE: Duration = Duration::from_millis(20);
/// Most bytes that are moved out of a ring: then the kernel drops what doesn't fit, and counts it.
const MOST: usize = 128 << 20;

/// A feed and what was moved out of it.
#[derive(Debug)]
pub(crate) struct Spilling<F> {
    feed: F,
    /// Whole records, from `given_back` on.
    moved: Vec<u8>,
    given_back: usize,
}

impl<F: Feed> Spilling<F> {
    pub fn new(feed: F) -> Self {
        Self { feed, moved: Vec::new(), given_back: 0 }
    }

    /// Moves what is there.
    fn spill(&mut self) {
        self.feed.look();
        let unread = self.feed.unread();
        let bytes = unread[0].len() + unread[1].len();
        if self.given_back > self.moved.len() / 2 {
            self.moved.drain(..self.given_back);
            self.given_back = 0;
        }
        if bytes > 0 && self.moved.len() + bytes <= MOST {
            unread.iter().for_each(|piece| self.moved.extend_from_slice(piece));
            self.feed.release(bytes);
        }
    }
}

impl<F: Feed> Feed for Spilling<F> {
    fn look(&mut self) {
        if self.moved.is_empty() {
            self.feed.look();
        } else {
            self.spill();
        }
    }

    fn unread(&self) -> [&[u8]; 2] {
        match self.moved.get(self.given_back..) {
            Some(moved) if !self.moved.is_empty() => [moved, &[]],
            _ => self.feed.unread(),
        }
    }

    fn release(&mut self, bytes: usize) {
        if self.moved.is_empty() {
            return self.feed.release(bytes);
        }
        self.given_back += bytes;
        if self.given_back >= self.moved.len() {
            (self.moved, self.given_back) = (Vec::new(), 0);
        } else {
            // To read what was moved takes time as well.
            self.spill();
        }
    }
}

impl<F: Feed + Send> Merge<Spilling<F>> {
    /// Does some work, while a thread moves what comes.
    pub fn moving<R>(&mut self, work: impl FnOnce() -> R) -> R {
        std::thread::scope(|scope| {
            let (at_work, done) = channel::<()>();
            let mover = move || {
                while done.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                    self.feeds().for_each(Spilling::spill);
                }
            };
            // Without a thread there is still as much time as the rings give.
            let _ = std::thread::Builder::new().name("move".into()).spawn_scoped(scope, mover);
            // Dropped when the work is done, or panics.
            let _at_work = at_work;
            work()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::tests::parse_info;
    use crate::records::tests::exit_record;

    /// A ring with room for ten records, which one that is full doesn't get.
    #[derive(Default)]
    struct Small {
        bytes: Vec<u8>,
        next: u64,
    }

    impl Feed for Small {
        /// Ten more come, as far as there is room.
        fn look(&mut self) {
            let record = exit_record(0).len();
            for _ in 0..10 {
                self.next += 1;
                if self.bytes.len() < 10 * record {
                    self.bytes.extend(exit_record(self.next));
                }
            }
        }
        fn unread(&self) -> [&[u8]; 2] {
            let (first, second) = self.bytes.split_at(self.bytes.len() / 3);
            [first, second]
        }
        fn release(&mut self, bytes: usize) {
            self.bytes.drain(..bytes);
        }
    }

    fn times(merge: &mut Merge<Spilling<Small>>) -> Vec<u64> {
        let mut times = Vec::new();
        merge.drain(u64::MAX, |record| times.push(record.timestamp().expect("records have a time")));
        times
    }

    #[test]
    fn what_comes_during_work_waits_in_order() {
        let mut merge = Merge::new(vec![Spilling::new(Small::default())], parse_info());
        assert_eq!(times(&mut merge), (1..=10).collect::<Vec<_>>(), "in place");
        merge.moving(|| std::thread::sleep(5 * PAUSE));
        let later = times(&mut merge);
        assert!(later.len() > 20, "several looks: {}", later.len());
        assert_eq!(
            later,
            (11..11 + later.len() as u64).collect::<Vec<_>>(),
            "none is lost and none comes twice"
        );
        let next = 11 + later.len() as u64;
        assert_eq!(times(&mut merge), (next..next + 10).collect::<Vec<_>>(), "in place again");
    }

    #[test]
    fn work_that_panics_ends_the_moving() {
        let mut merge = Merge::new(vec![Spilling::new(Small::default())], parse_info());
        let work = std::panic::AssertUnwindSafe(|| merge.moving(|| panic!("as expected")));
        assert!(std::panic::catch_unwind(work).is_err());
    }

    #[test]
    fn memory_is_bounded() {
        let mut full = Spilling::new(Small::default());
        full.moved = vec![0; MOST];
        full.spill();
        assert_eq!(full.moved.len(), MOST);
        assert!(!full.feed.bytes.is_empty(), "it stays where it was");
    }
}

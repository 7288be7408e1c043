//! Records how far out a thread has returned, as far as its samples show.
//!
//! The word that holds a frame's return address is dead once a sample shows the thread further out than that word.

/// A thread with more changes than is plausible is reset, with all that depends on them.
const MAX_CHANGES: usize = 1 << 12;

/// Positions of the thread, with the numbers of its samples.
#[derive(Debug, Default)]
pub(crate) struct Returns {
    now: u32,
    /// Samples further out than all later ones: their numbers rise, the addresses fall.
    outermost: Vec<(u32, u64)>,
}

impl Returns {
    /// Adds a sample whose innermost return address is at `slot`. Returns false if all earlier observations have to be dropped.
    pub(crate) fn sample(&mut self, slot: u64) -> bool {
        self.now = self.now.wrapping_add(1);
        while self.outermost.pop_if(|(_, before)| *before <= slot).is_some() {}
        self.outermost.push((self.now, slot));
        let has_room = self.outermost.len() < MAX_CHANGES && self.now < u32::MAX;
        if !has_room {
            *self = Self::default();
        }
        has_room
    }

    /// The number of the last sample.
    pub(crate) fn now(&self) -> u32 {
        self.now
    }

    /// Whether the word at `slot` has been live since that sample, as far as known.
    pub(crate) fn has_stayed(&self, since: u32, slot: u64) -> bool {
        let after = self.outermost.partition_point(|&(number, _)| number <= since);
        self.outermost.get(after).is_none_or(|&(_, outermost)| outermost <= slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_further_in_than_a_later_sample_is_gone() {
        let mut returns = Returns::default();
        for slot in [50, 90, 20, 60, 10] {
            assert!(returns.sample(slot));
        }
        assert_eq!(returns.now(), 5);
        let stayed = |since| [10, 20, 60, 90].map(|slot| returns.has_stayed(since, slot));
        assert_eq!(stayed(1), [false, false, false, true]);
        assert_eq!(stayed(2), [false, false, true, true], "a sample itself says nothing of later ones");
        assert_eq!(stayed(3), [false, false, true, true]);
        assert_eq!(stayed(4), [true; 4]);
        assert_eq!(stayed(5), [true; 4]);
    }

    #[test]
    fn memory_stays_bounded() {
        let mut returns = Returns::default();
        let forgotten = (0..3 * MAX_CHANGES as u64).filter(|index| !returns.sample(u64::MAX - index)).count();
        assert!(forgotten >= 2 && returns.outermost.len() < MAX_CHANGES);
    }
}

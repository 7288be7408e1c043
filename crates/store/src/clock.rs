//! The wall clock, and whether it can be trusted.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::batch::Millis;

/// Smallest deviation that counts as a jump, rather than a correction, of the clock.
const JUMP: Duration = Duration::from_secs(3600);
/// Time after a jump for which no block is removed because of its age.
const DISTRUST: Duration = Duration::from_secs(24 * 3600);

/// Current time.
pub(crate) fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A random number, unique among processes.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(now().0)
}

/// Compares the wall clock with the monotonic clock.
pub(crate) struct Clock {
    at: Instant,
    said: Millis,
    distrusted: Option<Instant>,
}

impl Clock {
    pub fn new() -> Self {
        Self { at: Instant::now(), said: now(), distrusted: None }
    }

    /// Current time, or `None` for a day after the clock jumped, because blocks removed for their age cannot be recovered.
    pub fn trusted_now(&mut self) -> Option<Millis> {
        self.trust(Instant::now(), now())
    }

    fn trust(&mut self, at: Instant, said: Millis) -> Option<Millis> {
        let passed = i64::try_from((at - self.at).as_millis()).unwrap_or(i64::MAX);
        let jump = said.0.saturating_sub(self.said.0).saturating_sub(passed);
        if u128::from(jump.unsigned_abs()) > JUMP.as_millis() {
            tracing::warn!(jump_ms = jump, "the clock jumped; nothing is removed for its age for a day");
            self.distrusted = Some(at);
        }
        (self.at, self.said) = (at, said);
        self.distrusted = self.distrusted.filter(|&since| at - since < DISTRUST);
        self.distrusted.is_none().then_some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_is_distrusted_for_a_day() {
        let mut clock = Clock { at: Instant::now(), said: Millis(1_000_000), distrusted: None };
        let start = clock.at;
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        assert_eq!(clock.trust(at(60), Millis(1_060_000)), Some(Millis(1_060_000)));
        let years = 86_400_000 * 1000;
        assert_eq!(clock.trust(at(120), Millis(1_120_000 + years)), None);
        assert_eq!(clock.trust(at(3600), Millis(4_600_000 + years)), None);
        let later = Millis(90_120_000 + years);
        assert_eq!(clock.trust(at(120 + 90_000), later), Some(later));
    }
}

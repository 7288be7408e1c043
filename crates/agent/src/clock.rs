//! Windows: stretches of time that end when the wall clock is at a multiple of their length, so that those of all machines are the same.
//!
//! Invariant: a window's length is measured by the clock that never jumps. A wall clock that jumps makes one window shorter or longer, never empty
//! and never longer than one and a half intervals.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970.
pub(crate) fn unix_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// A window that goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenWindow {
    began: Instant,
    length: Duration,
}

impl OpenWindow {
    /// One that begins now.
    pub fn begin(interval: Duration) -> Self {
        Self { began: Instant::now(), length: until_multiple(Duration::from_nanos(unix_ns()), interval) }
    }

    /// Until it ends.
    pub fn left(&self) -> Duration {
        self.length.saturating_sub(self.began.elapsed())
    }

    /// When it began, in nanoseconds since 1970 by the clock of now, and its length so far.
    pub fn so_far(&self) -> (u64, u64) {
        let elapsed = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        (unix_ns().saturating_sub(elapsed), elapsed)
    }
}

/// From `now` to the next multiple of `interval`, or the one after it, if that is nearer than half an interval.
fn until_multiple(now: Duration, interval: Duration) -> Duration {
    let over = now.as_nanos() % interval.as_nanos().max(1);
    let left = interval.saturating_sub(Duration::from_nanos(u64::try_from(over).unwrap_or(0)));
    if left < interval / 2 { left + interval } else { left }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_end_at_multiples() {
        let seconds = Duration::from_secs_f64;
        for (now, expected) in [(0.0, 15.0), (1.0, 14.0), (7.0, 8.0), (8.0, 22.0), (29.5, 15.5)] {
            assert_eq!(until_multiple(seconds(now), seconds(15.0)), seconds(expected), "{now}");
        }
    }
}

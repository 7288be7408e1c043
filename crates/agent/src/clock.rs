//! Windows: stretches of time that end when the wall clock is at a multiple of their length, so that those of all machines are the same.
//!
//! Invariant: a window's length is measured by the clock that never jumps. A wall clock that jumps makes one window shorter or longer, never empty
//! and never longer than one and a half intervals. A machine that was suspended ends the window: what was before is told of then, not of now.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// What is shorter is no suspend, but time between two looks at clocks.
const SUSPEND: Duration = Duration::from_secs(1);

/// Nanoseconds since 1970.
pub(crate) fn unix_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// What clocks say at one time.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    unix_ns: u64,
    /// Since the machine started, while it was not suspended.
    awake: Duration,
    /// For how long it was suspended since.
    suspended: Duration,
}

impl Clocks {
    fn read() -> Self {
        let duration = |time: Timespec| Duration::try_from(time).unwrap_or_default();
        let awake = duration(clock_gettime(ClockId::Monotonic));
        let suspended = duration(clock_gettime(ClockId::Boottime)).saturating_sub(awake);
        Self { unix_ns: unix_ns(), awake, suspended }
    }
}

/// A window that goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenWindow {
    began: Clocks,
    length: Duration,
}

impl OpenWindow {
    /// One that begins now.
    pub fn begin(interval: Duration) -> Self {
        Self::begin_at(Clocks::read(), interval)
    }

    fn begin_at(began: Clocks, interval: Duration) -> Self {
        Self { began, length: until_multiple(Duration::from_nanos(began.unix_ns), interval) }
    }

    /// Until it ends.
    pub fn left(&self) -> Duration {
        self.left_at(Clocks::read())
    }

    fn left_at(&self, now: Clocks) -> Duration {
        if self.suspended_until(now) > Duration::ZERO {
            return Duration::ZERO;
        }
        self.length.saturating_sub(now.awake.saturating_sub(self.began.awake))
    }

    /// When it began, in nanoseconds since 1970 by the clock of now, and its length so far.
    pub fn so_far(&self) -> (u64, u64) {
        self.so_far_at(Clocks::read())
    }

    fn so_far_at(&self, now: Clocks) -> (u64, u64) {
        let in_ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let awake_ns = in_ns(now.awake.saturating_sub(self.began.awake));
        let suspended_ns = in_ns(self.suspended_until(now));
        (now.unix_ns.saturating_sub(awake_ns).saturating_sub(suspended_ns), awake_ns)
    }

    /// For how long the machine was suspended since it began.
    fn suspended_until(&self, now: Clocks) -> Duration {
        let since = now.suspended.saturating_sub(self.began.suspended);
        if since >= SUSPEND { since } else { Duration::ZERO }
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
    fn a_suspend_ends_the_window_and_is_no_part_of_it() {
        let at = |unix_s: u64, awake_s: u64, suspended_s: u64| Clocks {
            unix_ns: unix_s * 1_000_000_000,
            awake: Duration::from_secs(awake_s),
            suspended: Duration::from_secs(suspended_s),
        };
        let window = OpenWindow::begin_at(at(1500, 70, 20), Duration::from_secs(15));
        assert_eq!(window.left_at(at(1504, 74, 20)), Duration::from_secs(11));
        // An hour later.
        let now = at(5105, 75, 3620);
        assert_eq!(window.left_at(now), Duration::ZERO);
        assert_eq!(window.so_far_at(now), (1_500_000_000_000, 5_000_000_000));
        // A wall clock that is set is no suspend.
        assert_eq!(window.left_at(at(9000, 74, 20)), Duration::from_secs(11));
        assert_eq!(window.so_far_at(at(9000, 74, 20)), (8_996_000_000_000, 4_000_000_000));
    }

    #[test]
    fn windows_end_at_multiples() {
        let seconds = Duration::from_secs_f64;
        for (now, expected) in [(0.0, 15.0), (1.0, 14.0), (7.0, 8.0), (8.0, 22.0), (29.5, 15.5)] {
            assert_eq!(until_multiple(seconds(now), seconds(15.0)), seconds(expected), "{now}");
        }
    }
}

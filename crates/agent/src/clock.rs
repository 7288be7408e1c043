//! Windows: periods that end when the wall clock is at a multiple of their length, so that the windows of all machines coincide.
//!
//! Invariant: a window's length is measured by the monotonic clock. A jump of the wall clock makes one window shorter or longer, never empty and
//! never longer than one and a half intervals. A suspend ends the window, which is then dated before the suspend.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Shortest suspend. A smaller difference is the delay between reading two clocks.
const SUSPEND: Duration = Duration::from_secs(1);

/// Wall-clock time in nanoseconds since 1970.
pub(crate) fn unix_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// The wall clock's time at 0 of the clock that samples have, in nanoseconds since 1970.
pub(crate) fn unix_ns_of_samples() -> u64 {
    let awake = Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default();
    unix_ns().saturating_sub(u64::try_from(awake.as_nanos()).unwrap_or(u64::MAX))
}

/// Readings of all clocks at one moment.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    unix_ns: u64,
    /// Time since boot without suspends.
    awake: Duration,
    /// Total time suspended since boot.
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

/// The window in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenWindow {
    began: Clocks,
    length: Duration,
}

impl OpenWindow {
    /// A window that begins now.
    pub fn begin(interval: Duration) -> Self {
        Self::begin_at(Clocks::read(), interval)
    }

    fn begin_at(began: Clocks, interval: Duration) -> Self {
        Self { began, length: until_multiple(Duration::from_nanos(began.unix_ns), interval) }
    }

    /// Time until the window ends.
    pub fn left(&self) -> Duration {
        self.left_at(Clocks::read())
    }

    fn left_at(&self, now: Clocks) -> Duration {
        if self.suspended_until(now) > Duration::ZERO {
            return Duration::ZERO;
        }
        self.length.saturating_sub(now.awake.saturating_sub(self.began.awake))
    }

    /// Start in nanoseconds since 1970 by the current wall clock, and length so far in nanoseconds.
    pub fn so_far(&self) -> (u64, u64) {
        self.so_far_at(Clocks::read())
    }

    fn so_far_at(&self, now: Clocks) -> (u64, u64) {
        let in_ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let awake_ns = in_ns(now.awake.saturating_sub(self.began.awake));
        let suspended_ns = in_ns(self.suspended_until(now));
        (now.unix_ns.saturating_sub(awake_ns).saturating_sub(suspended_ns), awake_ns)
    }

    /// Time that the machine was suspended since the window began.
    fn suspended_until(&self, now: Clocks) -> Duration {
        let since = now.suspended.saturating_sub(self.began.suspended);
        if since >= SUSPEND { since } else { Duration::ZERO }
    }
}

/// Time from `now` to the next multiple of `interval`, or to the one after it if the next is less than half an interval away.
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
        // After an hour of suspend.
        let now = at(5105, 75, 3620);
        assert_eq!(window.left_at(now), Duration::ZERO);
        assert_eq!(window.so_far_at(now), (1_500_000_000_000, 5_000_000_000));
        // Setting the wall clock is not a suspend.
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

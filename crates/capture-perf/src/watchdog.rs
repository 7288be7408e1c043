//! Detects that interrupts of hardware counters harm the machine, so that the recorder can reduce or stop them.
//!
//! These interrupts can't be masked: if there are too many, or each is too slow, nothing else runs. Periods are chosen so that
//! this does not happen ([`crate::period`]); but a period given by the user may be too short, and a virtual machine
//! may be far slower than expected. Elsewhere: reading the counters, and the reaction (`recorder/guard.rs`).

/// Interrupts per second on one CPU that are a storm, whatever was requested.
const STORM_HZ: u64 = 20_000;
/// Multiple of the requested interrupts that is a storm.
const TIMES: u64 = 8;
/// The kernel lowers the highest rate a little whenever interrupts take too long. If it falls below 1/4,
/// they took far too long.
const LOWERED: u32 = 4;
/// A wake-up this late shows that the recorder was kept from running.
const LATE_NS: u64 = 1_000_000_000;

/// Readings of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sight {
    /// CLOCK_MONOTONIC.
    pub now_ns: u64,
    /// Interrupts so far, summed over the busiest CPU of each check.
    pub interrupts: u64,
    /// `kernel.perf_event_max_sample_rate`.
    pub highest_hz: Option<u32>,
    /// Latest wake-up of the recorder since the last check.
    pub late_ns: u64,
}

/// The sign of a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storm {
    /// Interrupts per second on a CPU.
    Interrupts(u64),
    /// The kernel lowered the highest rate from the first value to the second.
    Lowered(u32, u32),
    /// The recorder could not run for this many nanoseconds.
    Late(u64),
}

impl std::fmt::Display for Storm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Storm::Interrupts(hz) => write!(f, "{hz} interrupts a second on a processor"),
            Storm::Lowered(from, to) => write!(
                f,
                "interrupts take so long that the kernel lowered perf_event_max_sample_rate from {from} to {to}"
            ),
            Storm::Late(ns) => write!(f, "plumb could not run for {:.1} s", *ns as f64 / 1e9),
        }
    }
}

/// Monitors the hardware counters of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Watchdog {
    /// Requested interrupts per second and CPU; `None`: as many as the given period causes.
    asked_hz: Option<u32>,
    before: Sight,
}

impl Watchdog {
    /// Starts monitoring.
    pub fn new(asked_hz: Option<u32>, first: Sight) -> Self {
        Self { asked_hz, before: first }
    }

    /// Checks the readings, and returns a storm, if there is one.
    pub fn look(&mut self, now: Sight) -> Option<Storm> {
        let before = std::mem::replace(&mut self.before, now);
        let lowered = before.highest_hz.zip(now.highest_hz).filter(|&(from, to)| {
            let needed = self.asked_hz.map_or(0, |hz| hz.saturating_mul(2));
            to < from && (to < from / LOWERED || to < needed)
        });
        if let Some((from, to)) = lowered {
            return Some(Storm::Lowered(from, to));
        }
        // Keep the earlier rate, so that slow falls add up.
        self.before.highest_hz = before.highest_hz.max(now.highest_hz);
        let time = now.now_ns.saturating_sub(before.now_ns).max(1);
        let interrupts = now.interrupts.saturating_sub(before.interrupts);
        let hz = u64::try_from(u128::from(interrupts) * 1_000_000_000 / u128::from(time)).unwrap_or(u64::MAX);
        let most = self.asked_hz.map_or(STORM_HZ, |hz| u64::from(hz).saturating_mul(TIMES).min(STORM_HZ));
        let most = most.max(self.asked_hz.map_or(0, |hz| u64::from(hz) * 2));
        if hz > most {
            return Some(Storm::Interrupts(hz));
        }
        (now.late_ns >= LATE_NS).then_some(Storm::Late(now.late_ns))
    }

    /// Returns the requested rate; `None`: a period was given.
    pub fn asked_hz(&self) -> Option<u32> {
        self.asked_hz
    }

    /// Takes a rate as the requested one.
    pub fn ask(&mut self, hz: u32) {
        self.asked_hz = Some(hz);
    }

    /// Lowers the requested rate to 1/`times`.
    pub fn ask_fewer(&mut self, times: u64) {
        let times = u32::try_from(times.max(1)).unwrap_or(u32::MAX);
        self.asked_hz = self.asked_hz.map(|hz| (hz / times).max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = 100_000_000;

    fn begin(asked_hz: Option<u32>) -> Watchdog {
        Watchdog::new(asked_hz, Sight { highest_hz: Some(100_000), ..Sight::default() })
    }

    /// Checks every tenth of a second at a steady rate of interrupts.
    fn steady(watchdog: &mut Watchdog, hz: u64, looks: u64) -> Option<Storm> {
        (0..looks).find_map(|_| {
            let before = watchdog.before;
            watchdog.look(Sight {
                now_ns: before.now_ns + STEP,
                interrupts: before.interrupts + hz / 10,
                ..before
            })
        })
    }

    #[test]
    fn what_was_asked_for_is_no_storm() {
        assert_eq!(steady(&mut begin(Some(999)), 999, 600), None);
        assert_eq!(steady(&mut begin(Some(999)), 4000, 600), None, "the period has yet to be found");
        assert_eq!(steady(&mut begin(Some(49_999)), 50_500, 600), None);
        assert_eq!(steady(&mut begin(None), 15_000, 600), None, "a period that was given");
    }

    #[test]
    fn a_storm_is_seen_at_the_next_look() {
        assert_eq!(steady(&mut begin(Some(999)), 50_000, 1), Some(Storm::Interrupts(50_000)));
        assert_eq!(steady(&mut begin(None), 50_000, 1), Some(Storm::Interrupts(50_000)));
    }

    #[test]
    fn a_rate_that_the_kernel_lowers_is_one() {
        let at = |now_ns, highest_hz| Sight { now_ns, highest_hz: Some(highest_hz), ..Sight::default() };
        let mut watchdog = begin(Some(999));
        assert_eq!(watchdog.look(at(STEP, 79_750)), None, "which it does at the first opportunity");
        assert_eq!(watchdog.look(at(2 * STEP, 50_000)), None);
        assert_eq!(watchdog.look(at(3 * STEP, 24_000)), Some(Storm::Lowered(100_000, 24_000)));
        let mut watchdog = begin(Some(30_000));
        assert_eq!(watchdog.look(at(STEP, 50_000)), Some(Storm::Lowered(100_000, 50_000)), "soon too low");
    }

    #[test]
    fn a_recorder_that_can_not_run_is_one() {
        let mut watchdog = begin(Some(999));
        let late = |now_ns, late_ns| Sight { now_ns, late_ns, highest_hz: Some(100_000), ..Sight::default() };
        assert_eq!(watchdog.look(late(STEP, 300_000_000)), None, "other programs run too");
        assert_eq!(watchdog.look(late(4 * STEP, 3_900_000_000)), Some(Storm::Late(3_900_000_000)));
    }
}

//! The times at which findings are computed again.
//!
//! Invariant: the computations of one entry take at most its part of the CPU share, which is the same for all entries.

use std::time::{Duration, Instant};

use plumb_store::{Tenant, TenantStatus};

use crate::options::WatchOptions;

/// A range of a tenant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub tenant: Tenant,
    /// Length of the range, in milliseconds.
    pub length: i64,
    /// Contents of the tenant before the last computation.
    pub state: Option<TenantStatus>,
    due: Instant,
}

/// All entries with the times at which they are due.
#[derive(Debug)]
pub(super) struct Schedule {
    options: WatchOptions,
    entries: Vec<Entry>,
}

impl Schedule {
    pub fn new(options: WatchOptions) -> Self {
        Self { options, entries: Vec::new() }
    }

    /// Adds tenants that have profiles now, due at once, and removes those that have none any more.
    pub fn follow(&mut self, tenants: &[(Tenant, TenantStatus)], lengths: &[i64]) {
        self.entries.retain(|entry| tenants.iter().any(|(tenant, _)| *tenant == entry.tenant));
        for (tenant, _) in tenants {
            for &length in lengths {
                if self.position(tenant, length).is_none() {
                    let due = Instant::now();
                    self.entries.push(Entry { tenant: tenant.clone(), length, state: None, due });
                }
            }
        }
    }

    /// The entry that has been due for the longest time.
    pub fn due(&self, now: Instant) -> Option<Entry> {
        self.entries.iter().filter(|entry| entry.due <= now).min_by_key(|entry| entry.due).cloned()
    }

    /// Time until an entry is due.
    pub fn pause(&self, now: Instant) -> Duration {
        let next = self.entries.iter().map(|entry| entry.due).min();
        next.map_or(self.options.least_interval, |next| next.saturating_duration_since(now))
    }

    /// Time from the end of a computation to the next of the same entry.
    pub fn interval(&self, took: Duration) -> Duration {
        let part = self.options.cpu_share.max(f64::EPSILON) / self.entries.len().max(1) as f64;
        let affordable = Duration::try_from_secs_f64(took.as_secs_f64() / part).unwrap_or(Duration::MAX);
        affordable
            .clamp(self.options.least_interval, Duration::from_secs(86_400).max(self.options.least_interval))
    }

    /// Notes the duration of a computation, and the contents of the tenant before it.
    pub fn computed(&mut self, entry: &Entry, (state, took): (Option<TenantStatus>, Duration), now: Instant) {
        let due = now + self.interval(took);
        if let Some(index) = self.position(&entry.tenant, entry.length) {
            self.entries[index] = Entry { state, due, ..entry.clone() };
        }
    }

    /// Notes that an entry need not be computed: no profile has come.
    pub fn unchanged(&mut self, entry: &Entry, now: Instant) {
        // Looking again costs nothing.
        let due = now + self.options.least_interval;
        if let Some(index) = self.position(&entry.tenant, entry.length) {
            self.entries[index].due = due;
        }
    }

    fn position(&self, tenant: &Tenant, length: i64) -> Option<usize> {
        self.entries.iter().position(|entry| entry.length == length && entry.tenant == *tenant)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    const OPTIONS: WatchOptions =
        WatchOptions { least_interval: Duration::from_secs(15), cpu_share: 0.02, kept_from: Duration::ZERO };

    fn schedule(tenants: usize) -> Schedule {
        let mut schedule = Schedule::new(OPTIONS);
        let tenant = |number| (Tenant::new(&format!("tenant-{number}")).unwrap(), TenantStatus::default());
        let tenants: Vec<_> = (0..tenants).map(tenant).collect();
        schedule.follow(&tenants, &[3_600_000, 86_400_000]);
        schedule
    }

    #[test]
    fn all_computations_take_a_bounded_part_of_a_cpu() {
        for tenants in [1, 3, 40] {
            let schedule = schedule(tenants);
            let part = |took: f64| took / schedule.interval(Duration::from_secs_f64(took)).as_secs_f64();
            let sum = (part(0.5) + part(4.0)) * tenants as f64;
            assert!(sum <= 0.0201, "{tenants} tenants: {sum}");
        }
        let schedule = schedule(1);
        let seconds = |took: f64| schedule.interval(Duration::from_secs_f64(took)).as_secs();
        assert_eq!((seconds(0.001), seconds(0.5), seconds(4.0)), (15, 50, 400));
    }

    #[test]
    fn the_entry_that_waited_longest_is_next_and_tenants_come_and_go() {
        let mut schedule = schedule(2);
        let now = Instant::now();
        let mut seen = Vec::new();
        while let Some(entry) = schedule.due(now) {
            seen.push((entry.tenant.to_string(), entry.length));
            schedule.computed(&entry, (None, Duration::from_secs(1)), now);
        }
        assert_eq!(seen.len(), 4);
        assert_eq!(schedule.pause(now), Duration::from_secs(200));
        let later = now + Duration::from_secs(200);
        let entry = schedule.due(later).unwrap();
        schedule.unchanged(&entry, later);
        assert_ne!(
            schedule.due(later).map(|other| (other.tenant, other.length)),
            Some((entry.tenant, entry.length))
        );
        schedule.follow(&[], &[3_600_000]);
        assert_eq!(schedule.due(later), None);
    }
}

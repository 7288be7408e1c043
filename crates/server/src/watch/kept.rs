//! The last findings of each tenant and range, and the requests that they answer.
//!
//! Invariant: an answer says the time range that it was computed for, and is given only to requests for the same length of time until now, with the
//! same profile type, threshold and number of services.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plumb_documents::findings::Findings;
use plumb_store::Tenant;

use crate::moment;
use crate::query::FindingsRequest;

/// Greatest difference in length between a requested range and a kept one, in milliseconds: clients round their times.
const LENGTH_TOLERANCE: i64 = 1000;
/// Greatest distance of a requested end from now, in milliseconds: the page keeps its range for half a minute, and clocks differ.
const NOW_TOLERANCE: i64 = 60_000;
/// An answer older than this part of its range is not given to requests.
const OLDEST: i64 = 10;

/// The findings of a tenant in a range.
#[derive(Clone, Debug)]
pub(crate) struct KeptAnswer {
    request: FindingsRequest,
    pub findings: Arc<Findings>,
    took: Duration,
    interval: Duration,
    /// Time at which they were last known to be those of all profiles.
    confirmed: Instant,
}

impl KeptAnswer {
    /// `took`: time of the computation. `interval`: time until the next one.
    pub fn new(
        request: FindingsRequest,
        findings: Arc<Findings>,
        took: Duration,
        interval: Duration,
    ) -> Self {
        Self { request, findings, took, interval, confirmed: Instant::now() }
    }

    /// Time since the end of its range, in milliseconds.
    pub fn age_ms(&self) -> i64 {
        moment::now().saturating_sub(self.request.end)
    }

    /// Age in milliseconds from which on it no longer stands for the range until now.
    pub fn oldest_ms(&self) -> i64 {
        self.request.end.saturating_sub(self.request.start) / OLDEST
    }

    /// Whether it may be given to requests. After the interval the next computation begins, which takes some time itself.
    fn is_current(&self) -> bool {
        self.confirmed.elapsed() <= self.interval * 2 && self.age_ms() <= self.oldest_ms()
    }

    /// Whether no later one is overdue.
    fn is_last(&self) -> bool {
        let interval = i64::try_from(self.interval.as_millis()).unwrap_or(i64::MAX);
        self.age_ms() <= self.oldest_ms().max(interval).saturating_mul(2)
    }

    /// Whether it answers a request. An empty profile type: the default one.
    fn answers(&self, asked: &FindingsRequest) -> bool {
        let (own, length) = (&self.request, |request: &FindingsRequest| request.end - request.start);
        matches!(asked.label_selector.trim(), "" | "{}")
            && (asked.profile_type.is_empty() || asked.profile_type == own.profile_type)
            && asked.threshold.total_cmp(&own.threshold).is_eq()
            && asked.services == own.services
            && length(asked).abs_diff(length(own)) <= LENGTH_TOLERANCE.unsigned_abs()
            && moment::now().abs_diff(asked.end) <= NOW_TOLERANCE.unsigned_abs()
    }
}

/// Answers by tenant and length of their range in milliseconds.
#[derive(Debug, Default)]
struct KeptAnswers {
    by_range: HashMap<(Tenant, i64), KeptAnswer>,
    /// Number of times that answers of a tenant were deleted.
    deletions: u64,
}

/// The kept findings of all tenants. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptFindings(Arc<Mutex<KeptAnswers>>);

impl KeptFindings {
    fn lock(&self) -> MutexGuard<'_, KeptAnswers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current answer to a request, if computing it took at least `kept_from`.
    pub fn answer(
        &self,
        tenant: &Tenant,
        asked: &FindingsRequest,
        kept_from: Duration,
    ) -> Option<Arc<Findings>> {
        let answers = self.lock();
        let of_tenant =
            answers.by_range.iter().filter(|((owner, _), _)| owner == tenant).map(|(_, answer)| answer);
        let mut fitting = of_tenant
            .filter(|answer| answer.took >= kept_from && answer.answers(asked) && answer.is_current());
        fitting.next().map(|answer| answer.findings.clone())
    }

    /// The last findings in ranges of this length, of one tenant or all; those that stopped being computed are left out.
    pub fn current(&self, length: i64, of: Option<&Tenant>) -> Vec<(Tenant, Arc<Findings>)> {
        let answers = self.lock();
        let mut current: Vec<(Tenant, Arc<Findings>)> = answers
            .by_range
            .iter()
            .filter(|((tenant, one), answer)| {
                *one == length && of.is_none_or(|of| of == tenant) && answer.is_last()
            })
            .map(|((tenant, _), answer)| (tenant.clone(), answer.findings.clone()))
            .collect();
        current.sort_by(|(one, _), (other, _)| one.cmp(other));
        current
    }

    /// The last answer for a range of this length, current or not.
    pub(super) fn get(&self, tenant: &Tenant, length: i64) -> Option<KeptAnswer> {
        self.lock().by_range.get(&(tenant.clone(), length)).cloned()
    }

    /// Number of times that answers of a tenant were deleted.
    pub(super) fn deletions(&self) -> u64 {
        self.lock().deletions
    }

    /// Keeps an answer, unless answers of a tenant were deleted after `deletions` was counted: it may have read deleted profiles. Returns whether
    /// it is kept.
    pub(super) fn put(&self, tenant: &Tenant, length: i64, answer: KeptAnswer, deletions: u64) -> bool {
        let mut answers = self.lock();
        let is_valid = answers.deletions == deletions;
        if is_valid {
            answers.by_range.insert((tenant.clone(), length), answer);
        }
        is_valid
    }

    /// Deletes the answers of a tenant.
    pub fn forget(&self, tenant: &Tenant) {
        let mut answers = self.lock();
        answers.deletions += 1;
        answers.by_range.retain(|(owner, _), _| owner != tenant);
    }

    /// Notes that no profile has come since an answer was computed.
    pub(super) fn confirm(&self, tenant: &Tenant, length: i64) {
        if let Some(answer) = self.lock().by_range.get_mut(&(tenant.clone(), length)) {
            answer.confirmed = Instant::now();
        }
    }

    /// Removes the answers of tenants without profiles.
    pub(super) fn retain(&self, has_profiles: impl Fn(&Tenant) -> bool) {
        self.lock().by_range.retain(|(tenant, _), _| has_profiles(tenant));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    const HOUR: i64 = 3_600_000;
    const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

    fn findings(request: &FindingsRequest) -> Arc<Findings> {
        Arc::new(Findings { from_ms: request.start, until_ms: request.end, ..Findings::default() })
    }

    #[test]
    fn only_requests_for_the_same_answer_get_it() {
        let (kept, tenant, now) = (KeptFindings::default(), Tenant::default(), moment::now());
        let own = FindingsRequest::of_all(CPU, (now - HOUR, now));
        let (took, interval) = (Duration::from_secs(1), Duration::from_secs(60));
        kept.put(&tenant, HOUR, KeptAnswer::new(own.clone(), findings(&own), took, interval), 0);
        let is_answered = |asked: &FindingsRequest, kept_from| {
            kept.answer(&tenant, asked, Duration::from_millis(kept_from)).is_some()
        };
        let shifted = |from: i64, until: i64| FindingsRequest {
            start: own.start + from,
            end: own.end + until,
            ..own.clone()
        };
        let of_all = FindingsRequest { label_selector: "{}".to_owned(), ..own.clone() };
        let by_default = FindingsRequest { profile_type: String::new(), ..own.clone() };
        for asked in [&own, &of_all, &by_default, &shifted(-20_000, -20_001), &shifted(1, 0)] {
            assert!(is_answered(asked, 100), "{asked:?}");
        }
        assert!(!is_answered(&own, 1001), "computing it takes less time");
        let selected = FindingsRequest { label_selector: "{a=\"b\"}".to_owned(), ..own.clone() };
        let other_type = FindingsRequest { profile_type: "a:b:c:d:e".to_owned(), ..own.clone() };
        let finer = FindingsRequest { threshold: 9.0, ..own.clone() };
        let fewer = FindingsRequest { services: 19, ..own.clone() };
        let (longer, earlier) = (shifted(-2000, 0), shifted(-120_000, -120_000));
        for asked in [&selected, &other_type, &finer, &fewer, &longer, &earlier] {
            assert!(!is_answered(asked, 0), "{asked:?}");
        }
        let other = Tenant::new("other").unwrap();
        assert!(kept.answer(&other, &own, Duration::ZERO).is_none());
    }

    #[test]
    fn an_answer_that_was_not_replaced_is_given_no_longer() {
        let (kept, tenant, now) = (KeptFindings::default(), Tenant::default(), moment::now());
        let own = FindingsRequest::of_all(CPU, (now - HOUR, now));
        let answer = KeptAnswer::new(own.clone(), findings(&own), Duration::from_secs(1), Duration::ZERO);
        kept.put(&tenant, HOUR, answer, 0);
        std::thread::sleep(Duration::from_millis(2));
        assert!(kept.answer(&tenant, &own, Duration::ZERO).is_none());
        // So old that profiles have left its range.
        let old = FindingsRequest::of_all(CPU, (now - HOUR - HOUR / 4, now - HOUR / 4));
        let interval = Duration::from_secs(3600);
        let answer = KeptAnswer::new(old.clone(), findings(&old), Duration::from_secs(1), interval);
        kept.put(&tenant, HOUR, answer, 0);
        assert!(kept.answer(&tenant, &own, Duration::ZERO).is_none());
    }

    #[test]
    fn a_deleted_tenant_has_no_answer() {
        let (kept, tenant, now) = (KeptFindings::default(), Tenant::default(), moment::now());
        let own = FindingsRequest::of_all(CPU, (now - HOUR, now));
        let interval = Duration::from_secs(60);
        let answer = || KeptAnswer::new(own.clone(), findings(&own), interval, interval);
        kept.put(&tenant, HOUR, answer(), kept.deletions());
        let other = Tenant::new("other").unwrap();
        kept.put(&other, HOUR, answer(), kept.deletions());
        let before = kept.deletions();
        kept.forget(&tenant);
        // A computation that began before the deletion.
        assert!(!kept.put(&tenant, HOUR, answer(), before));
        let of = |tenant| kept.answer(tenant, &own, Duration::ZERO).is_some();
        assert_eq!((of(&tenant), of(&other)), (false, true));
        kept.put(&tenant, HOUR, answer(), kept.deletions());
        assert!(of(&tenant));
    }
}

//! Computes the findings of the ranges that people look at first, before somebody does.
//!
//! Invariant: all computations together take a bounded part of one CPU, however many tenants there are and however long a range takes. A range is
//! computed again only if new profiles have come, or once so much time has passed that old ones have left it.
//!
//! Elsewhere: computing findings (`query`), answering with them (`routes`).

mod kept;
mod schedule;

use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_documents::findings::Findings;
use plumb_store::{PROFILE_TYPE, Tenant, TenantStatus};

use self::kept::KeptAnswer;
pub(crate) use self::kept::KeptFindings;
use self::schedule::{Entry, Schedule};
use crate::app::{App, Context};
use crate::client::default_type;
use crate::error::ApiError;
use crate::moment;
use crate::options::WatchOptions;
use crate::pyroscope::types::LabelValuesRequest;
use crate::query::{self, FindingsRequest};
use crate::webhook::Webhook;

/// An hour, the default range of the page and of `plumb query`, in milliseconds.
pub(crate) const HOUR: i64 = 3_600_000;
/// Lengths of the ranges until now, in milliseconds: an hour and a day.
const RANGES: [i64; 2] = [HOUR, 86_400_000];

/// A computation rests for this multiple of its own time, also while others are due: at the start of a server all are.
const REST: u32 = 3;

/// Longest time until a new tenant is noticed.
const LOOK: Duration = Duration::from_secs(5);

/// Computes the findings of all tenants while a server runs.
pub(crate) struct Watch {
    app: App,
    schedule: Schedule,
    /// Running once the watch does.
    webhook: Option<Webhook>,
}

impl Watch {
    pub fn new(app: App, options: WatchOptions) -> Self {
        Self { app, schedule: Schedule::new(options), webhook: None }
    }

    /// Computes whatever is due, without end. `own_url`: the address that the server listens on.
    pub async fn run(mut self, own_url: String) {
        let options = self.app.options.webhook.as_ref();
        self.webhook = options.map(|options| Webhook::start(options, &own_url, self.app.metrics.clone()));
        loop {
            let pause = self.step().await;
            tokio::time::sleep(pause).await;
        }
    }

    /// Computes the findings that have been due for the longest time. Returns the time until the next step.
    async fn step(&mut self) -> Duration {
        let store = self.app.store.clone();
        let Ok((status, has_peers)) =
            tokio::task::spawn_blocking(move || (store.status(), !store.peers().is_empty())).await
        else {
            return LOOK;
        };
        let with_profiles = |status: &TenantStatus| status.blocks + status.head_samples > 0;
        let tenants: Vec<(Tenant, TenantStatus)> = status
            .tenants
            .into_iter()
            .filter(|(_, status)| with_profiles(status))
            .filter_map(|(name, status)| Some((Tenant::new(&name).ok()?, status)))
            .collect();
        self.schedule.follow(&tenants, &self.ranges());
        self.app.kept_findings.retain(|tenant| tenants.iter().any(|(one, _)| one == tenant));
        let now = Instant::now();
        let Some(entry) = self.schedule.due(now) else { return self.schedule.pause(now).min(LOOK) };
        let state = tenants.iter().find(|(tenant, _)| *tenant == entry.tenant).map(|&(_, state)| state);
        // Profiles that other servers of the bucket hold in memory are in no status of this one.
        let is_new = has_peers || entry.state != state;
        if !is_new && !self.is_outdated(&entry) {
            self.schedule.unchanged(&entry, now);
            self.app.kept_findings.confirm(&entry.tenant, entry.length);
            return Duration::ZERO;
        }
        let took = self.compute(&entry).await;
        self.schedule.computed(&entry, (state, took), Instant::now());
        took * REST
    }

    /// Ranges that queries may have.
    fn ranges(&self) -> Vec<i64> {
        let most = self.app.options.query.length.map_or(u128::MAX, |most| most.as_millis());
        RANGES.into_iter().filter(|length| u128::from(length.unsigned_abs()) <= most).collect()
    }

    /// Whether the last answer is soon too old for requests, as profiles have left its range.
    fn is_outdated(&self, entry: &Entry) -> bool {
        let answer = self.app.kept_findings.get(&entry.tenant, entry.length);
        answer.is_none_or(|answer| 2 * answer.age_ms() > answer.oldest_ms())
    }

    /// Computes the findings of a range and keeps them. Returns the time that it took.
    async fn compute(&mut self, entry: &Entry) -> Duration {
        let (begin, length) = (Instant::now(), entry.length);
        let deletions = self.app.kept_findings.deletions();
        let work = move |context: &Context| findings_until_now(context, length);
        let computed = self.app.background_query(entry.tenant.clone(), work).await;
        let took = begin.elapsed();
        self.app.metrics.background.computed(took);
        match computed {
            Ok((request, findings)) => {
                let interval = self.schedule.interval(took);
                let findings = Arc::new(findings);
                let answer = KeptAnswer::new(request, findings.clone(), took, interval);
                let is_kept = self.app.kept_findings.put(&entry.tenant, entry.length, answer, deletions);
                if let Some(webhook) = self.webhook.as_mut().filter(|_| is_kept && length == HOUR) {
                    webhook.evaluated(&entry.tenant, &findings);
                }
            }
            Err(error) => {
                tracing::debug!(tenant = %entry.tenant, length, %error, "findings were not computed");
            }
        }
        took
    }
}

/// The findings in all services of the range of this length that ends now.
fn findings_until_now(context: &Context, length: i64) -> Result<(FindingsRequest, Findings), ApiError> {
    let end = moment::now();
    let start = end.saturating_sub(length);
    let types = LabelValuesRequest { name: PROFILE_TYPE.to_owned(), matchers: Vec::new(), start, end };
    let types = query::label_values(context, types)?.names;
    let profile_type = default_type(&types).map_err(ApiError::invalid)?;
    let request = FindingsRequest::of_all(profile_type, (start, end));
    let findings = query::findings(context, &request)?;
    Ok((request, findings))
}

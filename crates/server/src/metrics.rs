//! The server's metrics about itself, in Prometheus' format. Names are documented in `docs/server/operations.md`.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use plumb_documents::findings::Findings;
use plumb_store::{StoreStatus, Tenant};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::gauges;
use crate::limits::RateLimiter;
use crate::tenant_gauges;

/// Labels of a kind of request.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Route {
    route: String,
}

/// Labels of a kind of request and its status.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    route: String,
    status: u16,
}

/// Label of the messages of the webhook.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Delivered {
    outcome: &'static str,
}

/// All metrics.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    durations: Family<Route, Histogram>,
    /// Bytes of request bodies, as sent.
    pub received: Counter,
    /// Stored samples.
    pub samples: Counter,
    /// Open connections.
    pub connections: Gauge,
    /// Connections closed because there were too many.
    pub shed: Counter,
    /// Running queries.
    queries: Gauge,
    /// Queries cancelled because nobody waited for them any more.
    queries_cancelled: Counter,
    /// Work that nobody waits for.
    pub background: BackgroundMetrics,
}

/// Metrics of work that nobody waits for.
#[derive(Default)]
pub(crate) struct BackgroundMetrics {
    /// Computations of findings, failed ones included.
    computed: Counter,
    /// Seconds that they took.
    seconds: Counter<f64, AtomicU64>,
    /// Messages of the webhook.
    messages: Family<Delivered, Counter>,
}

impl BackgroundMetrics {
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "findings_computed",
            "Computations of findings in the background",
            metrics.computed.clone(),
        );
        registry.register_with_unit(
            "findings",
            "Time of these computations",
            Unit::Seconds,
            metrics.seconds.clone(),
        );
        registry.register("webhook_messages", "Messages of the webhook by outcome", metrics.messages.clone());
        metrics
    }

    /// Counts a message of the webhook with its end.
    pub fn message(&self, outcome: &'static str) {
        self.messages.get_or_create(&Delivered { outcome }).inc();
    }

    /// Counts a computation of findings.
    pub fn computed(&self, took: Duration) {
        self.computed.inc();
        self.seconds.inc_by(took.as_secs_f64());
    }
}

/// A running query, counted while this value lives.
pub(crate) struct RunningQuery(Arc<Metrics>);

impl RunningQuery {
    pub fn new(metrics: Arc<Metrics>) -> Self {
        metrics.queries.inc();
        Self(metrics)
    }

    /// Counts the end of the query, finished or cancelled.
    pub fn ended(self, is_cancelled: bool) {
        if is_cancelled {
            self.0.queries_cancelled.inc();
        }
    }
}

impl Drop for RunningQuery {
    fn drop(&mut self) {
        self.0.queries.dec();
    }
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("plumb");
        let requests = Family::default();
        let durations = Family::<Route, Histogram>::new_with_constructor(|| {
            // 1 ms to 33 s.
            Histogram::new(exponential_buckets(0.001, 2.0, 16))
        });
        let (received, samples, shed) = (Counter::default(), Counter::default(), Counter::default());
        let connections = Gauge::default();
        let (queries, queries_cancelled) = (Gauge::default(), Counter::default());
        registry.register("http_requests", "Requests by route and status", requests.clone());
        registry.register_with_unit(
            "http_request_duration",
            "Time to answer",
            Unit::Seconds,
            durations.clone(),
        );
        registry.register_with_unit(
            "received",
            "Size of the bodies of requests, as sent",
            Unit::Bytes,
            received.clone(),
        );
        registry.register("received_samples", "Samples that were stored", samples.clone());
        registry.register("http_connections", "Open connections", connections.clone());
        registry.register(
            "http_connections_shed",
            "Connections closed because there were too many",
            shed.clone(),
        );
        registry.register("queries_running", "Queries that are worked on", queries.clone());
        registry.register(
            "queries_cancelled",
            "Queries that ended because their time had passed or their client was gone",
            queries_cancelled.clone(),
        );
        let background = BackgroundMetrics::register(&mut registry);
        Self {
            background,
            registry,
            requests,
            durations,
            received,
            samples,
            connections,
            shed,
            queries,
            queries_cancelled,
        }
    }

    /// Counts a request.
    pub fn answered(&self, route: &str, status: u16, took: Duration) {
        let route = route.to_owned();
        self.durations.get_or_create(&Route { route: route.clone() }).observe(took.as_secs_f64());
        self.requests.get_or_create(&Answered { route, status }).inc();
    }

    /// All metrics as text, including those of the store and the current findings of tenants. Those by tenant are of `only` one, if it is given.
    pub fn text(
        &self,
        store: &StoreStatus,
        findings: &[(Tenant, Arc<Findings>)],
        rates: &RateLimiter,
        only: Option<&Tenant>,
    ) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        text::encode_registry(&mut out, &self.registry)?;
        gauges::encode(&mut out, findings)?;
        tenant_gauges::encode(&mut out, store, rates, only)?;
        encode_store(&mut out, store)?;
        text::encode_eof(&mut out)?;
        Ok(out)
    }
}

/// Writes the metrics of the store.
fn encode_store(out: &mut String, store: &StoreStatus) -> std::fmt::Result {
    let mut of_store = Registry::with_prefix("plumb_store");
    let counters = [
        ("batches", "Batches that were appended", store.batches),
        ("samples", "Samples of these", store.samples),
        ("repeated_requests", "Requests that were sent again and were stored already", store.repeated),
        ("log_recovered_batches", "Batches read back from the log at start", store.recovered),
        ("compactions", "Merges of blocks", store.compactions),
        ("expired_blocks", "Blocks removed by retention", store.expired_blocks),
    ];
    for (name, help, value) in counters {
        let counter = Counter::<u64, AtomicU64>::default();
        counter.inc_by(value);
        of_store.register(name, help, counter);
    }
    let sum = |of: fn(&plumb_store::TenantStatus) -> u64| store.tenants.iter().map(|(_, one)| of(one)).sum();
    let gauges: [(&str, &str, u64); 8] = [
        ("tenants", "Tenants", store.tenants.len() as u64),
        ("blocks", "Blocks", sum(|one| one.blocks)),
        ("block_bytes", "Size of these", sum(|one| one.block_bytes)),
        ("head_samples", "Samples that are in no block yet", sum(|one| one.head_samples)),
        ("log_bytes", "Size of the current segment of the log", store.log_bytes),
        ("log_damaged_bytes", "Bytes of the log that were no whole record at start", store.log_damaged),
        ("damaged_blocks", "Blocks left out because they are damaged", store.damaged_blocks),
        ("failed", "1 if blocks cannot be written", u64::from(store.failure.is_some())),
    ];
    for (name, help, value) in gauges {
        let gauge = Gauge::<i64>::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        of_store.register(name, help, gauge);
    }
    text::encode_registry(out, &of_store)
}

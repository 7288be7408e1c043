//! Options of a server: limits for requests and queries. Zero never means "no limit": `None` does.

use std::time::Duration;

use crate::access::Tokens;
use crate::authorities::PeerAuthorities;
use crate::limits::TenantLimits;
use crate::webhook::WebhookOptions;

/// Options of a server.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Limits for incoming profiles.
    pub ingest: IngestLimits,
    /// Limits for queries.
    pub query: QueryLimits,
    /// Access tokens; without tokens, everything is allowed to all.
    pub tokens: Option<Tokens>,
    /// Limits of tenants; `None`: those of the whole server alone.
    pub tenants: Option<TenantLimits>,
    /// Authorities that the other servers of the bucket are verified by; without them, public ones.
    pub peer_authorities: Option<PeerAuthorities>,
    /// Returns freed memory to the system; called after requests that took much. `None`: when the allocator does so by itself.
    pub return_memory: Option<fn()>,
    /// Findings computed in the background; `None`: only when they are requested.
    pub watch: Option<WatchOptions>,
    /// Receiver of findings that begin and end. Only `watch` finds them.
    pub webhook: Option<WebhookOptions>,
}

/// Options of the computation of findings in the background.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WatchOptions {
    /// Shortest time between two computations for the same tenant and time range.
    pub least_interval: Duration,
    /// Part of one CPU that all computations together take in the long run, from 0 to 1.
    pub cpu_share: f64,
    /// Shortest computation whose answer is given to requests. Faster ones are repeated for each request, so that their answer is current.
    pub kept_from: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            least_interval: Duration::from_secs(15),
            cpu_share: 0.02,
            kept_from: Duration::from_millis(100),
        }
    }
}

/// Limits for a request that sends profiles.
#[derive(Clone, Debug)]
pub struct IngestLimits {
    /// Bytes of a request's body, as sent.
    pub body: usize,
    /// Bytes of a profile or a body, unpacked.
    pub unpacked: usize,
    /// Memory that requests may take.
    pub memory: MemoryLimits,
    /// Samples of a profile.
    pub samples: usize,
    /// Frames of stacks, inlined calls included.
    pub frames: FrameLimits,
    /// Rows of any other table of a profile: strings, functions, locations.
    pub rows: usize,
    /// Labels of one sample.
    pub sample_labels: usize,
    /// Labels of a series.
    pub labels: usize,
    /// Bytes of a label's name.
    pub label_name: usize,
    /// Bytes of a label's value.
    pub label_value: usize,
    /// Series that one request may write to.
    pub series: usize,
    /// Greatest age of a profile.
    pub oldest: Option<Duration>,
    /// Furthest time of a profile in the future: clocks differ.
    pub newest: Option<Duration>,
    /// Time limit for receiving a body.
    pub body_time: Duration,
    /// A file with symbols.
    pub symbols: BodyLimits,
}

/// Limits for a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimits {
    /// Bytes as sent.
    pub sent: usize,
    /// Bytes unpacked.
    pub unpacked: usize,
    /// Time limit for its arrival.
    pub time: Duration,
}

/// Limits for the memory that requests take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Bytes of all bodies that are in memory at the same time.
    pub in_flight: usize,
    /// Bytes of a request's message, once decoded.
    pub decoded: usize,
    /// Bytes of what is stored of a request.
    pub batch: usize,
    /// Bytes of a name: of a function, a file or a library.
    pub text: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { in_flight: 64 << 20, decoded: 64 << 20, batch: 48 << 20, text: 64 << 10 }
    }
}

/// Limits for frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// Frames of a stack.
    pub of_stack: usize,
    /// Frames of all stacks of a request together.
    pub of_request: usize,
}

impl IngestLimits {
    /// The limits of requests that are read several at a time. Larger ones are read one at a time.
    pub(crate) fn of_small(&self) -> Self {
        Self {
            unpacked: self.unpacked.min(4 << 20),
            memory: MemoryLimits {
                decoded: self.memory.decoded.min(8 << 20),
                batch: self.memory.batch.min(8 << 20),
                ..self.memory
            },
            ..self.clone()
        }
    }
}

impl Default for IngestLimits {
    fn default() -> Self {
        Self {
            body: 32 << 20,
            unpacked: 64 << 20,
            memory: MemoryLimits::default(),
            samples: 1_000_000,
            frames: FrameLimits { of_stack: 16_384, of_request: 50_000_000 },
            rows: 4_000_000,
            sample_labels: 100,
            labels: 64,
            label_name: 1024,
            label_value: 2048,
            series: 10_000,
            oldest: None,
            newest: Some(Duration::from_secs(600)),
            body_time: Duration::from_secs(30),
            symbols: BodyLimits { sent: 256 << 20, unpacked: 256 << 20, time: Duration::from_secs(300) },
        }
    }
}

/// Limits for a query.
#[derive(Clone, Debug)]
pub struct QueryLimits {
    /// Number of queries that run at the same time; others wait.
    pub concurrent: usize,
    /// Time limit of a query, including waiting.
    pub time: Duration,
    /// Longest time range; the store handles long ranges, so it is unlimited by default.
    pub length: Option<Duration>,
    /// Default number of nodes of a flame graph.
    pub nodes: usize,
    /// Most nodes of a flame graph.
    pub most_nodes: usize,
    /// Rows (stacks of profiles) that findings and verdicts read per service or selection: beyond that, a part is read.
    pub rows: usize,
    /// Stacks that they examine.
    pub stacks: usize,
    /// Individual samples that they distinguish.
    pub samples: u32,
    /// Time for which findings examine further services.
    pub examine: Duration,
    /// Largest accepted answer of another server of the bucket, in bytes.
    pub peer_answer: u64,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self {
            concurrent: 16,
            time: Duration::from_secs(60),
            length: None,
            nodes: 8192,
            most_nodes: 1 << 20,
            rows: 2_000_000,
            stacks: 100_000,
            samples: 500_000,
            examine: Duration::from_secs(20),
            peer_answer: 256 << 20,
        }
    }
}

//! What a server allows: limits of what comes in and of what is asked. Zero never means "no limit": `None` does.

use std::time::Duration;

use crate::access::Tokens;

/// How a server works.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Limits of what comes in.
    pub ingest: IngestLimits,
    /// Limits of what is asked.
    pub query: QueryLimits,
    /// Who may do what; without tokens everybody may do everything.
    pub tokens: Option<Tokens>,
}

/// What one request may bring.
#[derive(Clone, Debug)]
pub struct IngestLimits {
    /// Bytes of a request's body, as it is sent.
    pub body: usize,
    /// Bytes of a profile or a body once it is unpacked.
    pub unpacked: usize,
    /// Bytes of bodies, unpacked, that are worked on at the same time.
    pub in_flight: usize,
    /// Samples of a profile.
    pub samples: usize,
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
    /// How old a profile may be.
    pub oldest: Option<Duration>,
    /// How far in the future a profile may be: clocks differ.
    pub newest: Option<Duration>,
    /// How long a client may take to send its body.
    pub body_time: Duration,
    /// Bytes of a file with symbols, as it is sent and unpacked.
    pub symbols: usize,
    /// How long a client may take to send one.
    pub symbols_time: Duration,
}

impl Default for IngestLimits {
    fn default() -> Self {
        Self {
            body: 32 << 20,
            unpacked: 64 << 20,
            in_flight: 256 << 20,
            samples: 1_000_000,
            rows: 4_000_000,
            sample_labels: 100,
            labels: 64,
            label_name: 1024,
            label_value: 2048,
            series: 10_000,
            oldest: None,
            newest: Some(Duration::from_secs(600)),
            body_time: Duration::from_secs(30),
            symbols: 256 << 20,
            symbols_time: Duration::from_secs(300),
        }
    }
}

/// What one query may ask.
#[derive(Clone, Debug)]
pub struct QueryLimits {
    /// Queries that run at the same time; others wait.
    pub concurrent: usize,
    /// How long a query may take, waiting included.
    pub time: Duration,
    /// Longest range of time; the store answers long ranges, so there is none by default.
    pub length: Option<Duration>,
    /// Nodes of a flame graph where none are asked for.
    pub nodes: usize,
    /// Most nodes of a flame graph that may be asked for.
    pub most_nodes: usize,
    /// Rows, a row being a stack of a profile, that findings and verdicts read of a service or a selection: of more a part.
    pub rows: usize,
    /// Stacks that they examine.
    pub stacks: usize,
    /// Samples that are told apart.
    pub samples: u32,
    /// How long findings examine further services.
    pub examine: Duration,
    /// Longest answer that is taken of another server of the bucket, in bytes.
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

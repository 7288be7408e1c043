//! How an agent works: [`AgentOptions`].

use std::path::PathBuf;
use std::time::Duration;

use crate::labels::RelabelRules;

/// How an agent works.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// URL of the server, without the path.
    pub url: String,
    /// What the server knows the sender by.
    pub token: Option<String>,
    /// Samples per second of processor time.
    pub frequency_hz: u32,
    /// How long samples are summed up before they are sent.
    pub interval: Duration,
    /// Attributes of all samples.
    pub attributes: Vec<(String, String)>,
    /// What becomes of attributes.
    pub rules: RelabelRules,
    /// Where requests wait for the server.
    pub spool: SpoolOptions,
    /// Bytes of memory to stay below.
    pub max_memory: u64,
}

/// Where requests wait while the server is away.
#[derive(Clone, Debug)]
pub struct SpoolOptions {
    /// The directory.
    pub directory: PathBuf,
    /// Bytes of all requests at most.
    pub max_bytes: u64,
}

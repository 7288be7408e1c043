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
    /// Certificates (PEM) that the server's has to be signed by; without them those that browsers trust.
    pub ca_pem: Option<Vec<u8>>,
    /// Samples per second of processor time.
    pub frequency_hz: u32,
    /// What there is besides processor time.
    pub profiles: ProfileOptions,
    /// How long samples are summed up before they are sent.
    pub interval: Duration,
    /// Attributes of all samples.
    pub attributes: Vec<(String, String)>,
    /// What becomes of attributes.
    pub rules: RelabelRules,
    /// Where requests wait for the server.
    pub spool: SpoolOptions,
    /// Who names frames.
    pub symbols: SymbolPolicy,
    /// Whether system calls of services that stand out by their kernel time are watched for some seconds, every few minutes.
    pub observe: bool,
    /// Share of the machine to stay below, 1 for all of its processors.
    pub max_cpu: f64,
    /// Bytes of memory to stay below.
    pub max_memory: u64,
}

/// What windows have besides processor time.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProfileOptions {
    /// Time off the processor: what is shorter than this, in nanoseconds, is only summed up. `None`: it is not measured.
    pub off_cpu_min_ns: Option<u64>,
    /// Page faults are sampled.
    pub page_faults: bool,
    /// System calls of every process are summed up in the kernel.
    pub kernel_time: bool,
    /// Processes that begin are counted.
    pub processes: bool,
}

/// Who names frames of files that have a build id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolPolicy {
    /// The server, if it asks for symbols; the agent until it is known that it does.
    Auto,
    /// The server: frames are sent with build ids and addresses.
    Server,
    /// The agent, whatever the server can do.
    Agent,
}

/// Where requests wait while the server is away.
#[derive(Clone, Debug)]
pub struct SpoolOptions {
    /// The directory.
    pub directory: PathBuf,
    /// Bytes of all requests at most.
    pub max_bytes: u64,
}

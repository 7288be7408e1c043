//! Options of an agent: [`AgentOptions`].

use std::path::PathBuf;
use std::time::Duration;

use plumb_record::MeasureRequest;

use crate::labels::RelabelRules;

/// Options of an agent.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// URL of the server, without the path.
    pub url: String,
    /// Token that authenticates the agent to the server.
    pub token: Option<String>,
    /// Root certificates (PEM) for the server; `None`: those that browsers trust.
    pub ca_pem: Option<Vec<u8>>,
    /// Sample rate, in samples per second of CPU time.
    pub frequency_hz: u32,
    /// Measurements in addition to CPU time.
    pub profiles: ProfileOptions,
    /// Length of a window, over which samples are aggregated before they are sent.
    pub interval: Duration,
    /// Attributes of all samples.
    pub attributes: Vec<(String, String)>,
    /// Rules that change attributes or exclude processes.
    pub rules: RelabelRules,
    /// Spool for requests that wait for the server.
    pub spool: SpoolOptions,
    /// The side that symbolizes frames: server or agent.
    pub symbols: SymbolPolicy,
    /// Whether system calls of services with much kernel time are traced for some seconds every few minutes.
    pub observe: bool,
    /// CPU budget, as a share of the machine: 1 for all of its CPUs.
    pub max_cpu: f64,
    /// Memory limit in bytes.
    pub max_memory: u64,
}

/// Measurements in addition to CPU time.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProfileOptions {
    /// A quantity to measure.
    pub measure: Option<MeasureRequest>,
    /// Whether page faults are sampled.
    pub page_faults: bool,
    /// Whether system calls of every process are counted in the kernel.
    pub kernel_time: bool,
    /// Whether new processes are counted.
    pub processes: bool,
}

/// The side that symbolizes frames of files with a build id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolPolicy {
    /// The server, if it requests symbols; the agent until that is known.
    Auto,
    /// The server: frames are sent as build ids and addresses.
    Server,
    /// The agent, whatever the server supports.
    Agent,
}

/// Directory and size of the spool, in which requests wait while the server is unreachable.
#[derive(Clone, Debug)]
pub struct SpoolOptions {
    /// The directory.
    pub directory: PathBuf,
    /// Size limit of all requests together, in bytes.
    pub max_bytes: u64,
}

//! Errors of the agent.

use std::io;
use std::path::PathBuf;

use plumb_process::setcap_bpf;
use plumb_record::{MeasureWords, RecordError};

/// The reason why an agent cannot start or continue.
#[derive(Debug)]
pub enum AgentError {
    /// These capabilities for sampling the machine are missing.
    Capabilities(Vec<&'static str>),
    /// Recording failed.
    Record(RecordError),
    /// System calls cannot be counted here.
    KernelTime(plumb_capture_bpf::LoadError),
    /// The spool is unusable: its directory, and why.
    Spool(PathBuf, io::Error),
    /// Another agent uses the spool.
    SpoolInUse(PathBuf),
    /// The URL is not a server's.
    Url(String),
    /// The certificate file is invalid: why.
    Certificates(String),
    /// A system call failed: what, and why.
    System(&'static str, io::Error),
}

impl std::fmt::Display for AgentError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Capabilities(names) => write!(
                f,
                "cannot profile the machine: this process lacks {}; run as root, in a container with docker run --user 0 {}, or: \
                 {}",
                names.join(", "),
                names
                    .iter()
                    .map(|name| format!("--cap-add {}", name.trim_start_matches("CAP_")))
                    .collect::<Vec<_>>()
                    .join(" "),
                setcap_bpf()
            ),
            Self::Record(RecordError::Measure(measure, error)) => {
                let MeasureWords { name, option, .. } = measure.words();
                write!(f, "cannot measure {name}: {error}; without it: plumb agent without {option}")
            }
            Self::Record(error) => write!(f, "{error}"),
            Self::KernelTime(error) => {
                write!(
                    f,
                    "cannot measure kernel time: {error}; without it: plumb agent without --kernel-time"
                )
            }
            Self::Spool(path, error) => {
                write!(f, "cannot use the spool {}: {error}; choose another with --spool", path.display())
            }
            Self::SpoolInUse(path) => write!(
                f,
                "another agent uses the spool {}: stop that one, or choose another with --spool",
                path.display()
            ),
            Self::Url(url) => write!(f, "{url} is not the URL of a server; expected http://HOST:PORT"),
            Self::Certificates(why) => {
                write!(f, "cannot use --ca-cert: {why}; expected PEM, -----BEGIN CERTIFICATE-----")
            }
            Self::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for AgentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Record(error) => std::error::Error::source(error),
            _ => None,
        }
    }
}

impl From<RecordError> for AgentError {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

//! Continuous profiling of a whole machine: it is sampled continuously, samples are aggregated over windows of seconds, labeled by
//! service, and sent to a server as OpenTelemetry profiles.
//!
//! Invariant: each sample is either sent, waiting in the spool, dropped or excluded by a rule, and the totals count each of these
//! ([`Totals`]). Memory does not grow with time.
//!
//! Elsewhere: recording and symbolizing in windows (`record`), the wire format (`formats`), arguments, printing: events
//! are reported through `tracing`.

mod agent;
mod budget;
mod bursts;
mod capture;
mod clock;
mod connection;
mod cost;
mod delivery;
mod error;
mod figures;
mod kernel_time;
mod labels;
mod measured;
mod observe;
mod options;
mod other_agents;
mod privileges;
mod processes;
mod spending;
mod symbols;
mod totals;
mod window;

pub use agent::Agent;
pub use cost::CostMeter;
pub use error::AgentError;
pub use labels::{RelabelRule, RelabelRules};
pub use options::{AgentOptions, ProfileOptions, SpoolOptions, SymbolPolicy};
pub use privileges::{RetainedCapabilities, drop_capabilities, missing_capabilities};
pub use totals::{Quantity, SampleCount, Totals};

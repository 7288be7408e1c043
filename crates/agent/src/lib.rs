//! Continuous profiling of a whole machine: it is sampled without end, samples are summed up over windows of seconds, labelled by
//! service, and sent to a server as OpenTelemetry's profiles.
//!
//! Invariant: each sample that was taken is sent, waits in the spool, was dropped or was left out by a rule, and the totals say how many are
//! where ([`Totals`]). Memory does not grow with time.
//!
//! Not here: sampling (`capture-perf`, `capture-bpf`), names (`symbolize`), the wire format (`formats`), arguments, what is printed: what
//! happens is told by `tracing`.

mod agent;
mod budget;
mod capture;
mod clock;
mod connection;
mod cost;
mod delivery;
mod error;
mod figures;
mod kernel_time;
mod labels;
mod observe;
mod off_cpu;
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
pub use totals::{SampleCount, Totals};

//! Sampling through `perf_event_open`, unwound while recording.
//!
//! A [`Recorder`] opens events for a [`Target`](plumb_target::Target), reads their records from the kernel's rings in the order of time
//! and hands them to [`Ingest`], which turns records into a profile, wherever they come from (a perf.data file too).
//! User stacks are copied by the kernel into the ring, unwound there, and never copied or written again.
//!
//! Not here: symbols, files that are written, anything that is shown.

mod account;
mod assist;
mod attr;
mod beside;
mod counting;
mod error;
mod events;
mod growth;
mod host;
mod ingest;
mod limit;
mod merge;
mod off_cpu;
mod options;
mod period;
mod probe;
mod recorder;
mod records;
mod ring;
mod script;
mod setup;
mod shelf;
mod snapshot;
mod spill;
mod sys;
pub mod tables;
mod tally;
mod trigger;
mod watchdog;

pub use assist::{
    Assistant, CodeSegment, Copiers, Counted, HandedOver, Lent, Message, Messages, Passed, Round, Script,
    ScriptPlace, WalkedSample, Watched,
};
pub use attr::{Code, Counter, MAX_STACK_COPY, Pace};
pub use beside::Beside;
pub use counting::Count;
pub use error::{Asked, Error};
pub use host::{CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYSLOG, Host};
pub use ingest::{Filter, Ingest, Source, Statistics};
pub use off_cpu::{OffCpu, OffThread, OffUser, TimeOff, Unmeasured};
pub use options::Options;
pub use plumb_interpreters::{CodeId, Root, python};
pub use probe::{Abilities, attach_to_idle_event, try_counters, try_trigger};
pub use recorder::{Recorded, Recorder};
pub use setup::{SampledEvent, Setup};
pub use snapshot::{NoStack, Refusal, Snapshot, StoppedProcess, StoppedThread};
pub use sys::memory::{resident_memory, return_freed_memory, trim_memory};
pub use sys::tracefs::Tracefs;
pub use tally::{Seen, Tallied, Tally, ThreadTime, Watcher};
pub use trigger::{Named, NoTrigger, Trigger};

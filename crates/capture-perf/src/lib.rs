//! Sampling through `perf_event_open`, unwound while recording.
//!
//! A [`Recorder`] opens events for a [`Target`], reads their records from the kernel's rings in the order of time
//! and hands them to [`Ingest`], which turns records into a profile, wherever they come from (a perf.data file too).
//! User stacks are copied by the kernel into the ring, unwound there, and never copied or written again.
//!
//! Not here: symbols, files that are written, anything that is shown.

mod account;
mod assist;
mod attr;
mod beside;
mod cgroup;
mod counting;
mod error;
mod events;
mod growth;
mod host;
mod ingest;
mod interpreter;
mod limit;
mod merge;
mod off_cpu;
mod period;
mod probe;
mod procfs;
mod recorder;
mod records;
mod ring;
mod script;
mod setup;
mod shelf;
mod snapshot;
mod spill;
mod steer;
mod subject;
mod sys;
pub mod tables;
mod tally;
mod target;
mod trigger;
mod watchdog;

pub use assist::{
    Assistant, CodeSegment, Copiers, Counted, HandedOver, Lent, Message, Messages, Passed, Round, Script,
    ScriptPlace, WalkedSample, Watched,
};
pub use attr::{Code, Counter, MAX_STACK_COPY, Pace};
pub use beside::Beside;
pub use cgroup::NoCgroup;
pub use counting::Count;
pub use error::{Asked, Error};
pub use host::{CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYSLOG, Host};
pub use ingest::{Filter, Ingest, Source, Statistics};
pub use off_cpu::{OffCpu, OffThread, OffUser, TimeOff, Unmeasured};
pub use plumb_interpreters::{CodeId, Root, python};
pub use probe::{Abilities, attach_to_idle_event, try_counters, try_trigger};
pub use recorder::{Descendants, Recorded, Recorder, Running};
pub use setup::{SampledEvent, Setup};
pub use snapshot::{NoStack, Refusal, Snapshot, StoppedProcess, StoppedThread};
pub use steer::Notice;
pub use subject::{Subject, now_ns};
pub use sys::memory::{resident_memory, return_freed_memory, trim_memory};
pub use sys::process::pidfd;
pub use sys::spawn::{Took, Way, start_and_wait};
pub use sys::tracefs::Tracefs;
pub use sys::usage::{CpuTime, Usage, own_cpu_time};
pub use tally::{Seen, Tallied, Tally, ThreadTime, Watcher};
pub use target::{End, Launch, Options, Prints, Program, Target};
pub use trigger::{Named, NoTrigger, Trigger};

//! Sampling through `perf_event_open`, unwound while recording.
//!
//! A [`Recorder`] opens events for a [`Target`](plumb_target::Target), reads their records from the kernel's rings in the order of time
//! and hands them to [`Ingest`](plumb_ingest::Ingest), which turns records into a profile, wherever they come from (a perf.data file too).
//! User stacks are copied by the kernel into the ring, unwound there, and never copied or written again.
//!
//! Not here: symbols, files that are written, anything that is shown.

mod account;
mod attr;
mod counting;
mod error;
mod events;
mod limit;
mod merge;
mod options;
mod overflow;
mod pacing;
mod period;
mod probe;
mod recorder;
mod records;
mod ring;
mod setup;
mod stack_copy;
mod sys;
mod trigger;
mod unwinder;
mod watchdog;

pub use attr::{Code, Counter, MAX_STACK_COPY};
pub use counting::{Counters, EventCount, hardware_counters};
pub use error::{Asked, CONTAINER_REMEDY, Error, allows_own_processes};
pub use options::{EventSpec, SamplingOptions};
pub use plumb_ingest::{EndedCgroups, TakenProfile};
pub use probe::{
    Abilities, attach_to_idle_event, count_events_of, try_counters, try_own_thread, try_trigger,
};
pub use recorder::{CoverageCounters, CoverageRule, Recorded, RecordedTarget, Recorder, SampleIntake};
pub use setup::{SampledEvent, Setup};
pub use sys::memory::{release_program, resident_memory, return_freed_memory, trim_memory};
pub use sys::perf::Whom;
pub use sys::tracefs::Tracefs;
pub use trigger::{Named, NoTrigger, Trigger};

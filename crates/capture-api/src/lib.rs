//! What a source of samples and what stands beside it look like to each other: what walks stacks in the kernel, what measures time
//! off the processor, what watches or counts the target.
//!
//! Traits, and what goes through them. Invariant: nothing here opens, reads or decides anything, so that a recorder and what helps
//! it need not know each other.

mod counters;
mod messages;
mod observer;
mod off_cpu;
mod rate;
mod unwind_info;
mod unwinder;

pub use counters::{KernelCounts, StatCounters, ThreadTime};
pub use messages::{Counted, Message, Messages, NEAR_NS, Parts, Script, WITHOUT_STACK, WalkedSample};
pub use observer::TargetObserver;
pub use off_cpu::{OffCpu, OffThread, OffUser, TimeOff, Unmeasured};
pub use plumb_interpreters::{CodeId, EvalLoopFrame, Root, ScriptPlace, perl, php, python, ruby};
pub use rate::SamplingRate;
pub use unwind_info::{CodeSegment, UnwindInfoRef};
pub use unwinder::{
    FallbackEvents, KernelUnwinder, OtherPrograms, ProbeCounts, ProbeSpec, UnwindFallbackStats,
};

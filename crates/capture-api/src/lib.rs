//! Interfaces between a source of samples and its helpers: in-kernel stack unwinding, measurements, and observing
//! or counting the target.
//!
//! Contains traits, and the types that they exchange. Invariant: nothing here opens, reads or decides anything, so that a recorder and its helpers
//! need not know each other.

mod counters;
mod frame_word;
mod measure;
mod messages;
mod observer;
mod rate;
mod unwind_info;
mod unwinder;

pub use counters::{KernelCounts, StatCounters, ThreadTime};
pub use frame_word::FrameWord;
pub use measure::{Accumulation, Measure, MeasuredEvent, OffThread, OffUser, TimeOff, Unmeasured};
pub use messages::{Counted, Message, Messages, NEAR_NS, Parts, Script, WITHOUT_STACK, WalkedSample};
pub use observer::TargetObserver;
pub use plumb_interpreters::{
    CodeId, EvalLoopFrame, IDENTITY_WORDS, KernelLayout, LAYOUT_WORDS, MAX_CODE_BYTES, MAX_FRAME_BYTES, Root,
    ScriptPlace,
};
pub use rate::SamplingRate;
pub use unwind_info::{CodeSegment, UnwindInfoRef};
pub use unwinder::{
    FallbackEvents, KernelUnwinder, OtherPrograms, ProbeCounts, ProbeSpec, UnwindFallbackStats,
};

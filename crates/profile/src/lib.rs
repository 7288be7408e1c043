//! The profile model: plain tables of what was sampled, which refer to each other by typed ids.
//!
//! One file per table. Every table only grows, so an id stays valid as long as its profile. A sample refers to a
//! stack; a stack is a node of a tree of frames whose parent is the caller; a frame is an *address* in a file. The
//! results of symbolization (function, inlined calls, lines) are stored separately in [`Symbols`], so the
//! same profile exists before and after symbolization and stacks are never renumbered.
//!
//! Elsewhere: I/O, parsing, unwinding, ELF, percentages, presentation.

#![forbid(unsafe_code)]

mod dso;
mod event;
mod fold;
mod frame;
mod instruction_set;
mod life;
mod mapping;
mod meta;
mod process;
mod profile;
mod queued;
mod registers;
mod sample;
mod stack;
mod strings;
mod summed;
mod symbol;
mod table;
mod unnamed;

pub use dso::{AddressSpace, BuildId, Dso, DsoId, DsoKind};
pub use event::{Event, EventId};
pub use fold::{Past, Renumbered};
pub use frame::{Address, Found, Frame, FrameId, FrameKind, Truncation};
pub use instruction_set::InstructionSet;
pub use life::{Begin, Life, LifeEnd, LifeId, Lives};
pub use mapping::Mapping;
pub use meta::{COVERAGE_GAP, Meta, Scope, Untold};
pub use process::{Process, ProcessId, Thread, ThreadId};
pub use profile::Profile;
pub use queued::{Queued, QueuedThread};
pub use registers::{REGISTERS, RegisterSample, RegisterSamples};
pub use sample::{Sample, Samples};
pub use stack::{StackId, StackNode, Stacks};
pub use strings::{StringId, Strings};
pub use symbol::{Function, FunctionId, Line, Symbols};
pub use table::{Id, Interned, Table};
pub use unnamed::{
    UnnamedFunction, UnnamedFunctions, parse_unnamed_function, unnamed_function_name, unnamed_function_start,
};

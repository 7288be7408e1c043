//! Sampling with stacks walked in the kernel.
//!
//! The programs in `bpf/` are attached to the sampling events of `plumb-capture-perf` and take care of each sample whose
//! stack they can walk by tables of `plumb-unwind`; all others become perf's own records, with registers and a copy of the
//! stack, and are unwound as ever. So this is an [`Assistant`](plumb_capture_perf::Assistant): without it a recording is the same, but dearer.
//!
//! Nothing is pinned: programs, maps and links live as long as the descriptors of this process.
//!
//! Not here: events, process tracking, the profile.

mod btf;
mod chunks;
mod loader;
mod messages;
mod resident;
mod support;
mod sys;
mod tables;
pub mod wire;

pub use loader::{LoadError, Options, Programs};
pub use support::{CAP_BPF, Unsupported, support};

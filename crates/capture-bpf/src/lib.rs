//! Sampling with stacks unwound in the kernel.
//!
//! The programs in `bpf/` are attached to the sampling events of `plumb-capture-perf` and handle each sample whose
//! stack they can unwind by tables of `plumb-unwind`. For all others the kernel writes its usual record, with registers and a stack
//! copy, which is unwound in user space. This crate is a [`KernelUnwinder`](plumb_capture_api::KernelUnwinder): without it a
//! recording is the same, but costs more.
//!
//! The programs look up mappings themselves, under the process' mmap lock, and drop them when the kernel changes them (Linux
//! 6.1 and newer; on older kernels when perf's record of the change is read, up to a tenth of a second later). Mappings are cached per process: if
//! another process shares the memory without being a thread (`CLONE_VM`), each sees only its own changes.
//!
//! Tables are loaded on demand, when a stack ended for lack of one; files with the same build ID share one. They take at least 8 MiB,
//! and at most [`LoadOptions::table_memory`]. A stack is copied if its file needs more than that, or than 64 MiB, or has more than four segments of
//! code. So are stacks in memory without a file (JIT code), and those whose rules need more than the stack and frame pointer.
//!
//! If a stack leads through a file with an interpreter ([`UnwindInfoRef::interpreter`](plumb_capture_api::UnwindInfoRef::interpreter)), its sample includes
//! the script frames, up to 1,024. For a stack that is copied they are sent separately, once another stack of the process
//! has led there.
//!
//! At tracepoints and functions ([`ProbeSpec`](plumb_capture_api::ProbeSpec)) the programs take the samples themselves, and decide
//! which hits are sampled; stacks that they can't unwind are copied by perf. Tracepoints need Linux 6.10.
//!
//! Requires helpers of Linux 5.17; docs/kernels.md lists the tested kernels. Not supported in a PID namespace: the kernel's process IDs
//! differ from those of perf's records there.
//!
//! Nothing is pinned: programs, maps and links exist as long as the descriptors of this process.
//!
//! Elsewhere: events, process tracking, the profile.

mod btf;
pub mod calls;
pub mod callsums;
mod chunks;
mod faults;
#[cfg(test)]
mod fields_tests;
mod file_table;
mod follow;
mod layouts;
mod loader;
mod measure;
mod messages;
mod names;
mod object;
mod other_programs;
mod places;
mod refusal;
mod resident;
mod returns;
mod run_stats;
mod stat;
mod support;
mod switch;
mod sys;
mod trial;
mod verified;
mod way_in;
pub mod wire;

pub use calls::{CallCounts, CallFilter, Calls, Want};
pub use callsums::wire::{ProcessCall, ProcessSum};
pub use callsums::{CallFacts, CallSums, Per, ProcessSums, SummedBy, null_call_ns};
pub use faults::Faults;
pub use loader::{LoadOptions, Programs};
pub use measure::{Measured, OffCpu};
pub use names::PROGRAM_NAMES;
pub use refusal::{LoadError, Refusal};
pub use returns::ReplacedReturns;
pub use run_stats::RunStats;
pub use stat::Stat;
pub use support::{CAP_BPF, Unsupported, support, support_here};
pub use switch::Switch;
pub use trial::{Attach, Feature, Trial, try_all};

//! Sampling with stacks walked in the kernel.
//!
//! The programs in `bpf/` are attached to the sampling events of `plumb-capture-perf` and take care of each sample whose
//! stack they can walk by tables of `plumb-unwind`; all others become perf's own records, with registers and a copy of the
//! stack, and are unwound as ever. So this is an [`KernelUnwinder`](plumb_capture_api::KernelUnwinder): without it a recording is the same, but dearer.
//!
//! What it knows of mappings it looked up itself, under the process' mmap lock, and forgets when the kernel changes them (Linux
//! 6.1 and newer; before, when perf's record of it is read, up to a tenth of a second later). Threads and what shares a process'
//! memory without being its thread (`CLONE_VM`) are told apart by process: the latter's changes are seen by itself only.
//!
//! Tables come on demand, when a stack ended for want of one; files with the same build id share one. They take 8 MiB at least,
//! and no more than [`LoadOptions::table_memory`]. A stack whose file needs more than that, or than 64 MiB, or has more than four segments of
//! code, is copied, as are those in memory without a file (JIT code) and by rules that take more than the stack and frame pointer.
//!
//! Where a stack leads through a file with an interpreter ([`UnwindInfoRef::interpreter`](plumb_capture_api::UnwindInfoRef::interpreter)), the frames of the
//! interpreted program come with it, up to 1,024 of them; of a stack that is copied they are sent apart, once another stack of the process
//! has led there.
//!
//! Of tracepoints and functions ([`ProbeSpec`](plumb_capture_api::ProbeSpec)) the programs take the samples themselves, at the place, and decide
//! which passing is one; those that they can't walk they have perf copy. Tracepoints take Linux 6.10.
//!
//! It takes helpers of Linux 5.17; docs/kernels.md says on which kernels it was tried. In a pid namespace it refuses: the kernel's numbers of
//! processes are not those of perf's records there.
//!
//! Nothing is pinned: programs, maps and links live as long as the descriptors of this process.
//!
//! Not here: events, process tracking, the profile.

mod btf;
pub mod calls;
pub mod callsums;
mod chunks;
mod faults;
#[cfg(test)]
mod fields_tests;
mod follow;
mod layouts;
mod loader;
mod messages;
mod object;
mod off_cpu;
mod other_programs;
mod places;
mod refusal;
mod resident;
mod run_stats;
mod stat;
mod support;
mod switch;
mod sys;
mod tables;
mod trial;
mod way_in;
pub mod wire;

pub use calls::{CallCounts, CallFilter, Calls, Want};
pub use callsums::wire::{ProcessCall, ProcessSum};
pub use callsums::{CallFacts, CallSums, Events, Overhead, Per, ProcessSums, SummedBy, null_call_ns};
pub use faults::Faults;
pub use loader::{LoadOptions, Programs};
pub use off_cpu::OffCpu;
pub use refusal::{LoadError, Refusal};
pub use run_stats::RunStats;
pub use stat::Stat;
pub use support::{CAP_BPF, Unsupported, support, support_here};
pub use switch::Switch;
pub use trial::{Attach, Feature, Trial, try_all};

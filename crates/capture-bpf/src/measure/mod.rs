//! The quantities that are measured: a module each, with its programs' state, its tracepoints and its options.
//!
//! Elsewhere: the programs (`bpf/`), and how weights add up in a recording (`ingest`).

mod off_cpu;

pub use off_cpu::OffCpu;
pub(crate) use off_cpu::{Switches, WATCHES};

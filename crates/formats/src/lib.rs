//! Readers and writers of recordings: plumb's own, and those of other profilers.
//!
//! One directory per format, with `read.rs` and `write.rs` for the supported directions. For any input,
//! a reader returns a profile, a part of one with the loss counted, or an error with its position.
//!
//! Elsewhere: opening files and distinguishing recordings and perf.data from other formats (the command does), unwinding, symbols.

#![forbid(unsafe_code)]

pub mod callgrind;
mod calls;
pub mod chrome;
pub mod csv;
pub mod escape;
pub mod firefox;
pub mod folded;
pub mod foreign;
mod go_text;
pub mod jfr;
pub mod json;
pub mod kind;
pub mod native;
pub mod otlp;
pub mod perf_data;
pub mod perf_script;
pub mod pprof;
pub mod speedscope;
mod v8;

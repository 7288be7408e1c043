//! Readers and writers of recordings: plumb's own, and those of other profilers.
//!
//! One directory a format, with `read.rs` and `write.rs` as far as the format goes in that direction. Whatever the
//! bytes are, a reader ends with a profile, a part of one with the loss counted, or an error that names the place.
//!
//! Not here: opening files and telling recordings and perf.data from the rest (the command does), unwinding, symbols.

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
pub mod native;
pub mod otlp;
pub mod perf_data;
pub mod perf_script;
pub mod pprof;
pub mod speedscope;
mod v8;

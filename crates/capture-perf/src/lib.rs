//! Sampling through `perf_event_open`, unwound while recording.
//!
//! `ingest` turns records into a profile, wherever they come from.

mod ingest;

pub use ingest::{Filter, Ingest, Source, Statistics};

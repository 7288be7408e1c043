//! pprof's `profile.proto`, gzipped, as written and read by `go tool pprof`, Pyroscope, Parca and Datadog.
//!
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>.

pub mod message;
mod read;
mod write;

pub use read::{Most, decode, decode_tables, samples};
pub(crate) use read::{is, read};
pub use write::write;

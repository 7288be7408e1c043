//! OpenTelemetry's profiles: `opentelemetry.proto.profiles.v1development`, version 1.10.0 of opentelemetry-proto, in which profiles are
//! still in development: readers of other versions may not understand it.
//!
//! <https://github.com/open-telemetry/opentelemetry-proto/blob/v1.10.0/opentelemetry/proto/profiles/v1development/profiles.proto>. The
//! message is `ProfilesData`, which is also what a collector's `ExportProfilesServiceRequest` looks like. Not here: reading it, sending it.

mod message;
mod write;

pub use write::write;

//! OpenTelemetry profiles: `opentelemetry.proto.profiles.v1development`, version 1.10.0 of opentelemetry-proto, in which profiles are
//! still in development: readers of other versions may not understand it.
//!
//! <https://github.com/open-telemetry/opentelemetry-proto/blob/v1.10.0/opentelemetry/proto/profiles/v1development/profiles.proto>. The
//! message is `ProfilesData`, which has the same form as a collector's `ExportProfilesServiceRequest`. Elsewhere: reading it (`server`),
//! sending it; `is` distinguishes it from readable formats.

mod dictionary;
mod json;
pub mod message;
mod request;
mod resources;
mod write;

pub use request::{ExportRequest, refusal};
pub use resources::{
    BURST, BURST_LENGTH, BurstSamples, EncodedRequest, EventSamples, Figure, FigureStack, MACHINE_TIME,
    OBSERVATION, ResourceSamples, ResourceSet, SAMPLES, WAKE_PERIOD, encode_by_resource,
};
pub use write::write;

use prost::Message;

/// HTTP path of requests, below a receiver's URL.
pub const HTTP_PATH: &str = "/v1development/profiles";

/// Whether a message is of this kind: pprof's begins similarly, but has numbers where this one has messages.
pub(crate) fn is(bytes: &[u8]) -> bool {
    let dictionary = message::ProfilesData::decode(bytes).ok().and_then(|data| data.dictionary);
    dictionary.is_some_and(|dictionary| !dictionary.string_table.is_empty())
}

//! Messages of Pyroscope's API, field by field as in its `push.v1`, `querier.v1` and `types.v1` (Apache-2.0, `api/` of grafana/pyroscope), as
//! protocol buffers and as their JSON: 64-bit integers are strings, what is empty is left out, names are read in both spellings.
//!
//! No rules here: what a message means is in `query` and `ingest`.

pub(crate) mod flamebearer;
pub(crate) mod json;
pub(crate) mod profile_json;
pub(crate) mod push;
pub(crate) mod querier;
pub(crate) mod series;
pub(crate) mod status;
pub(crate) mod types;
pub(crate) mod unwritten;

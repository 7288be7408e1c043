//! `querier.v1`: requests for stacks, and their answers. Times are milliseconds since 1970.

use plumb_formats::pprof::message::Profile;
use prost::Message;
use serde::{Deserialize, Serialize, Serializer};

use super::json;
use super::profile_json::Json;
use super::types::{LabelSet, ProfileType, StackTraceSelector};

json::named_enum!(profile_format, 0 => "PROFILE_FORMAT_UNSPECIFIED", 1 => "PROFILE_FORMAT_FLAMEGRAPH", 2 => "PROFILE_FORMAT_TREE", 3 => "PROFILE_FORMAT_DOT", 4 => "PROFILE_FORMAT_PPROF");

/// Asks for profile types.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ProfileTypesRequest {
    #[prost(int64, tag = "1")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub start: i64,
    #[prost(int64, tag = "2")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub end: i64,
}

/// Profile types.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ProfileTypesResponse {
    #[prost(message, repeated, tag = "1")]
    #[serde(alias = "profile_types", skip_serializing_if = "json::is_default")]
    pub profile_types: Vec<ProfileType>,
}

/// Asks for label sets.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SeriesRequest {
    #[prost(string, repeated, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub matchers: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    #[serde(alias = "label_names", skip_serializing_if = "json::is_default")]
    pub label_names: Vec<String>,
    #[prost(int64, tag = "3")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub end: i64,
}

/// Label sets.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SeriesResponse {
    #[prost(message, repeated, tag = "2")]
    #[serde(alias = "labels_set", skip_serializing_if = "json::is_default")]
    pub labels_set: Vec<LabelSet>,
}

/// Asks for a merged flame graph.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StacktracesRequest {
    #[prost(string, tag = "1")]
    #[serde(
        rename = "profileTypeID",
        alias = "profile_typeID",
        alias = "profileTypeId",
        skip_serializing_if = "json::is_default"
    )]
    pub profile_type_id: String,
    #[prost(string, tag = "2")]
    #[serde(alias = "label_selector", skip_serializing_if = "json::is_default")]
    pub label_selector: String,
    #[prost(int64, tag = "3")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub end: i64,
    #[prost(int64, optional, tag = "5")]
    #[serde(alias = "max_nodes", with = "json::optional_int64", skip_serializing_if = "json::is_default")]
    pub max_nodes: Option<i64>,
    #[prost(int32, tag = "6")]
    #[serde(with = "profile_format", skip_serializing_if = "json::is_default")]
    pub format: i32,
    #[prost(message, optional, tag = "7")]
    #[serde(alias = "stack_trace_selector", skip_serializing_if = "json::is_default")]
    pub stack_trace_selector: Option<StackTraceSelector>,
    #[prost(string, repeated, tag = "8")]
    #[serde(alias = "profile_id_selector", skip_serializing_if = "json::is_default")]
    pub profile_id_selector: Vec<String>,
    #[prost(string, repeated, tag = "10")]
    #[serde(alias = "trace_id_selector", skip_serializing_if = "json::is_default")]
    pub trace_id_selector: Vec<String>,
    #[prost(string, repeated, tag = "11")]
    #[serde(alias = "span_selector", skip_serializing_if = "json::is_default")]
    pub span_selector: Vec<String>,
}

/// A merged flame graph.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StacktracesResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub flamegraph: Option<FlameGraph>,
    /// The calls, if the request is for a tree.
    #[prost(bytes = "vec", tag = "2")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub tree: Vec<u8>,
    /// The answer in pprof's format, if the request is for that.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub pprof: Option<PprofAnswer>,
}

/// A profile in an answer.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PprofAnswer {
    #[prost(message, optional, tag = "1")]
    pub profile: Option<Profile>,
}

impl Serialize for PprofAnswer {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_map(self.profile.iter().map(|profile| ("profile", Json(profile))))
    }
}

/// Asks for a merged flame graph of spans.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SpanProfileRequest {
    #[prost(string, tag = "1")]
    #[serde(
        rename = "profileTypeID",
        alias = "profile_typeID",
        alias = "profileTypeId",
        skip_serializing_if = "json::is_default"
    )]
    pub profile_type_id: String,
    #[prost(string, tag = "2")]
    #[serde(alias = "label_selector", skip_serializing_if = "json::is_default")]
    pub label_selector: String,
    #[prost(string, repeated, tag = "3")]
    #[serde(alias = "span_selector", skip_serializing_if = "json::is_default")]
    pub span_selector: Vec<String>,
    #[prost(int64, tag = "4")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub start: i64,
    #[prost(int64, tag = "5")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub end: i64,
    #[prost(int64, optional, tag = "6")]
    #[serde(alias = "max_nodes", with = "json::optional_int64", skip_serializing_if = "json::is_default")]
    pub max_nodes: Option<i64>,
    #[prost(int32, tag = "7")]
    #[serde(with = "profile_format", skip_serializing_if = "json::is_default")]
    pub format: i32,
}

/// Asks for a merged profile.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct MergeProfileRequest {
    #[prost(string, tag = "1")]
    #[serde(
        rename = "profileTypeID",
        alias = "profile_typeID",
        alias = "profileTypeId",
        skip_serializing_if = "json::is_default"
    )]
    pub profile_type_id: String,
    #[prost(string, tag = "2")]
    #[serde(alias = "label_selector", skip_serializing_if = "json::is_default")]
    pub label_selector: String,
    #[prost(int64, tag = "3")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub end: i64,
    #[prost(int64, optional, tag = "5")]
    #[serde(alias = "max_nodes", with = "json::optional_int64", skip_serializing_if = "json::is_default")]
    pub max_nodes: Option<i64>,
    #[prost(message, optional, tag = "6")]
    #[serde(alias = "stack_trace_selector", skip_serializing_if = "json::is_default")]
    pub stack_trace_selector: Option<StackTraceSelector>,
    #[prost(string, repeated, tag = "7")]
    #[serde(alias = "profile_id_selector", skip_serializing_if = "json::is_default")]
    pub profile_id_selector: Vec<String>,
    #[prost(string, repeated, tag = "8")]
    #[serde(alias = "trace_id_selector", skip_serializing_if = "json::is_default")]
    pub trace_id_selector: Vec<String>,
}

/// Asks for two flame graphs side by side.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DiffRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub left: Option<StacktracesRequest>,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub right: Option<StacktracesRequest>,
}

/// Two flame graphs side by side.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DiffResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub flamegraph: Option<FlameGraphDiff>,
}

/// Boxes by level: offset to the end of the previous box, total, self, index of the name.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct FlameGraph {
    #[prost(string, repeated, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub names: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub levels: Vec<Level>,
    #[prost(int64, tag = "3")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub total: i64,
    #[prost(int64, tag = "4")]
    #[serde(alias = "max_self", with = "json::int64", skip_serializing_if = "json::is_default")]
    pub max_self: i64,
}

/// Boxes by level: offset, total and self of the left side, the same of the right one, index of the name.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct FlameGraphDiff {
    #[prost(string, repeated, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub names: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub levels: Vec<Level>,
    #[prost(int64, tag = "3")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub total: i64,
    #[prost(int64, tag = "4")]
    #[serde(alias = "max_self", with = "json::int64", skip_serializing_if = "json::is_default")]
    pub max_self: i64,
    #[prost(int64, tag = "5")]
    #[serde(alias = "left_ticks", with = "json::int64", skip_serializing_if = "json::is_default")]
    pub left_ticks: i64,
    #[prost(int64, tag = "6")]
    #[serde(alias = "right_ticks", with = "json::int64", skip_serializing_if = "json::is_default")]
    pub right_ticks: i64,
}

/// The boxes of a level.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Level {
    #[prost(int64, repeated, tag = "1")]
    #[serde(with = "json::int64s", skip_serializing_if = "json::is_default")]
    pub values: Vec<i64>,
}

/// Asks for the cost of a query.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AnalyzeQueryRequest {
    #[prost(int64, tag = "2")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub start: i64,
    #[prost(int64, tag = "3")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub end: i64,
    #[prost(string, tag = "4")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub query: String,
}

/// The cost of a query.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AnalyzeQueryResponse {
    #[prost(message, repeated, tag = "1")]
    #[serde(alias = "query_scopes", skip_serializing_if = "json::is_default")]
    pub query_scopes: Vec<QueryScope>,
    #[prost(message, optional, tag = "2")]
    #[serde(alias = "query_impact", skip_serializing_if = "json::is_default")]
    pub query_impact: Option<QueryImpact>,
}

/// The data that one part of the server would read.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct QueryScope {
    #[prost(string, tag = "1")]
    #[serde(alias = "component_type", skip_serializing_if = "json::is_default")]
    pub component_type: String,
    #[prost(uint64, tag = "2")]
    #[serde(alias = "component_count", with = "json::uint64", skip_serializing_if = "json::is_default")]
    pub component_count: u64,
    #[prost(uint64, tag = "3")]
    #[serde(alias = "block_count", with = "json::uint64", skip_serializing_if = "json::is_default")]
    pub block_count: u64,
    #[prost(uint64, tag = "4")]
    #[serde(alias = "series_count", with = "json::uint64", skip_serializing_if = "json::is_default")]
    pub series_count: u64,
    #[prost(uint64, tag = "5")]
    #[serde(alias = "profile_count", with = "json::uint64", skip_serializing_if = "json::is_default")]
    pub profile_count: u64,
    #[prost(uint64, tag = "6")]
    #[serde(alias = "sample_count", with = "json::uint64", skip_serializing_if = "json::is_default")]
    pub sample_count: u64,
}

/// The data that the whole server would read.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct QueryImpact {
    #[prost(uint64, tag = "2")]
    #[serde(
        alias = "total_bytes_in_time_range",
        with = "json::uint64",
        skip_serializing_if = "json::is_default"
    )]
    pub total_bytes_in_time_range: u64,
    #[prost(uint64, tag = "3")]
    #[serde(alias = "total_queried_series", with = "json::uint64", skip_serializing_if = "json::is_default")]
    pub total_queried_series: u64,
    #[prost(bool, tag = "4")]
    #[serde(alias = "deduplication_needed", skip_serializing_if = "json::is_default")]
    pub deduplication_needed: bool,
}

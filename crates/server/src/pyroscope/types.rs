//! `types.v1`: messages shared by several services.

use prost::Message;
use serde::{Deserialize, Serialize};

use super::json;

/// A label: a name with a value.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelPair {
    /// Name.
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub name: String,
    /// Value.
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub value: String,
}

/// The type of a series' values.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ProfileType {
    #[prost(string, tag = "1")]
    #[serde(rename = "ID", alias = "id", skip_serializing_if = "json::is_default")]
    pub id: String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub name: String,
    #[prost(string, tag = "4")]
    #[serde(alias = "sample_type", skip_serializing_if = "json::is_default")]
    pub sample_type: String,
    #[prost(string, tag = "5")]
    #[serde(alias = "sample_unit", skip_serializing_if = "json::is_default")]
    pub sample_unit: String,
    #[prost(string, tag = "6")]
    #[serde(alias = "period_type", skip_serializing_if = "json::is_default")]
    pub period_type: String,
    #[prost(string, tag = "7")]
    #[serde(alias = "period_unit", skip_serializing_if = "json::is_default")]
    pub period_unit: String,
}

/// The labels of a series.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LabelSet {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub labels: Vec<LabelPair>,
}

/// Asks for the values of a label.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LabelValuesRequest {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub name: String,
    #[prost(string, repeated, tag = "2")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub matchers: Vec<String>,
    #[prost(int64, tag = "3")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub end: i64,
}

/// Asks for the names of labels.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LabelNamesRequest {
    #[prost(string, repeated, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub matchers: Vec<String>,
    #[prost(int64, tag = "2")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub start: i64,
    #[prost(int64, tag = "3")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub end: i64,
}

/// Names of labels, or values of one: both answers are the same message.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NamesResponse {
    #[prost(string, repeated, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub names: Vec<String>,
}

/// The selected stacks.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StackTraceSelector {
    #[prost(message, repeated, tag = "1")]
    #[serde(alias = "call_site", skip_serializing_if = "json::is_default")]
    pub call_site: Vec<CallSite>,
    #[prost(message, optional, tag = "2")]
    #[serde(alias = "goPGO", alias = "go_pgo", skip_serializing_if = "json::is_default")]
    pub go_pgo: Option<GoPgo>,
}

/// A function in the prefix of all selected stacks, outermost first.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CallSite {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub name: String,
}

/// Options for reducing a profile for a compiler.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct GoPgo {
    #[prost(uint32, tag = "1")]
    #[serde(alias = "keep_locations", skip_serializing_if = "json::is_default")]
    pub keep_locations: u32,
    #[prost(bool, tag = "2")]
    #[serde(alias = "aggregate_callees", skip_serializing_if = "json::is_default")]
    pub aggregate_callees: bool,
}

/// Asks whether the store has profiles.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ProfileStatsRequest {}

/// Whether the store has profiles, and their time range in milliseconds since 1970.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ProfileStatsResponse {
    #[prost(bool, tag = "1")]
    #[serde(alias = "data_ingested", skip_serializing_if = "json::is_default")]
    pub data_ingested: bool,
    #[prost(int64, tag = "2")]
    #[serde(alias = "oldest_profile_time", with = "json::int64", skip_serializing_if = "json::is_default")]
    pub oldest_profile_time: i64,
    #[prost(int64, tag = "3")]
    #[serde(alias = "newest_profile_time", with = "json::int64", skip_serializing_if = "json::is_default")]
    pub newest_profile_time: i64,
}

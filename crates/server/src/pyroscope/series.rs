//! `querier.v1`: requests for sums over time, and their answers. Times are milliseconds since 1970, steps are seconds.

use prost::Message;
use serde::{Deserialize, Serialize};

use super::json;
use super::types::{LabelPair, StackTraceSelector};

json::named_enum!(aggregation, 0 => "TIME_SERIES_AGGREGATION_TYPE_SUM", 1 => "TIME_SERIES_AGGREGATION_TYPE_AVERAGE");
json::named_enum!(exemplar_type, 0 => "EXEMPLAR_TYPE_UNSPECIFIED", 1 => "EXEMPLAR_TYPE_NONE", 2 => "EXEMPLAR_TYPE_INDIVIDUAL", 3 => "EXEMPLAR_TYPE_SPAN");
json::named_enum!(heatmap_kind, 0 => "HEATMAP_QUERY_TYPE_UNSPECIFIED", 1 => "HEATMAP_QUERY_TYPE_INDIVIDUAL", 2 => "HEATMAP_QUERY_TYPE_SPAN");

/// Asks for sums over time.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SelectSeriesRequest {
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
    #[prost(string, repeated, tag = "5")]
    #[serde(alias = "group_by", skip_serializing_if = "json::is_default")]
    pub group_by: Vec<String>,
    #[prost(double, tag = "6")]
    #[serde(with = "json::double", skip_serializing_if = "json::is_default")]
    pub step: f64,
    #[prost(int32, tag = "7")]
    #[serde(with = "aggregation", skip_serializing_if = "json::is_default")]
    pub aggregation: i32,
    #[prost(message, optional, tag = "8")]
    #[serde(alias = "stack_trace_selector", skip_serializing_if = "json::is_default")]
    pub stack_trace_selector: Option<StackTraceSelector>,
    #[prost(int64, optional, tag = "9")]
    #[serde(with = "json::optional_int64", skip_serializing_if = "json::is_default")]
    pub limit: Option<i64>,
    #[prost(int32, tag = "10")]
    #[serde(alias = "exemplar_type", with = "exemplar_type", skip_serializing_if = "json::is_default")]
    pub exemplar_type: i32,
}

/// Sums over time.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SelectSeriesResponse {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub series: Vec<Series>,
}

/// The sums of one group.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Series {
    /// Labels by which it is grouped.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub labels: Vec<LabelPair>,
    /// Sums, the earliest first.
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub points: Vec<Point>,
}

/// The sum at one time.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Point {
    /// The sum.
    #[prost(double, tag = "1")]
    #[serde(with = "json::double", skip_serializing_if = "json::is_default")]
    pub value: f64,
    /// Time in milliseconds since 1970.
    #[prost(int64, tag = "2")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub timestamp: i64,
}

/// Asks for counts of profiles by size over time.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SelectHeatmapRequest {
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
    #[prost(double, tag = "5")]
    #[serde(with = "json::double", skip_serializing_if = "json::is_default")]
    pub step: f64,
    #[prost(string, repeated, tag = "6")]
    #[serde(alias = "group_by", skip_serializing_if = "json::is_default")]
    pub group_by: Vec<String>,
    #[prost(int32, tag = "7")]
    #[serde(alias = "query_type", with = "heatmap_kind", skip_serializing_if = "json::is_default")]
    pub query_type: i32,
    #[prost(int32, tag = "8")]
    #[serde(alias = "exemplar_type", with = "exemplar_type", skip_serializing_if = "json::is_default")]
    pub exemplar_type: i32,
    #[prost(int64, optional, tag = "9")]
    #[serde(with = "json::optional_int64", skip_serializing_if = "json::is_default")]
    pub limit: Option<i64>,
}

/// Counts of profiles by size over time.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SelectHeatmapResponse {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub series: Vec<HeatmapSeries>,
}

/// The counts of one group.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct HeatmapSeries {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub slots: Vec<HeatmapSlot>,
}

/// The counts of one step, whose timestamp is its end.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct HeatmapSlot {
    #[prost(int64, tag = "1")]
    #[serde(with = "json::int64", skip_serializing_if = "json::is_default")]
    pub timestamp: i64,
    #[prost(double, repeated, tag = "2")]
    #[serde(alias = "y_min", with = "json::doubles", skip_serializing_if = "json::is_default")]
    pub y_min: Vec<f64>,
    #[prost(int32, repeated, tag = "3")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub counts: Vec<i32>,
}

//! `push.v1`: profiles in.

use prost::Message;
use serde::{Deserialize, Serialize};

use super::json;
use super::types::LabelPair;

/// Profiles of several series.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub series: Vec<RawProfileSeries>,
}

/// Profiles of one series.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RawProfileSeries {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub samples: Vec<RawSample>,
}

/// A profile as pprof has it, gzipped or not.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RawSample {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(alias = "raw_profile", with = "json::base64", skip_serializing_if = "json::is_default")]
    pub raw_profile: Vec<u8>,
    #[prost(string, tag = "2")]
    #[serde(rename = "ID", alias = "id", skip_serializing_if = "json::is_default")]
    pub id: String,
}

/// Nothing: it was stored.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PushResponse {}

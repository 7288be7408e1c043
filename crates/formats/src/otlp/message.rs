//! The messages, as far as they are written and read, also from JSON. Numbers ending in `index` are row numbers of the dictionary's tables,
//! whose first row is empty.

use prost::{Message, Oneof};
use serde::Deserialize;

use super::json;

/// All profiles with their shared data; an export request has the same form.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProfilesData {
    /// Profiles by resource.
    #[prost(message, repeated, tag = "1")]
    pub resource_profiles: Vec<ResourceProfiles>,
    /// The shared tables.
    #[prost(message, optional, tag = "2")]
    pub dictionary: Option<Dictionary>,
}

/// Tables shared by all profiles.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Dictionary {
    /// Files.
    #[prost(message, repeated, tag = "1")]
    pub mapping_table: Vec<OtlpMapping>,
    /// Code locations.
    #[prost(message, repeated, tag = "2")]
    pub location_table: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "3")]
    pub function_table: Vec<OtlpFunction>,
    /// Spans.
    #[prost(message, repeated, tag = "4")]
    pub link_table: Vec<Link>,
    /// Strings.
    #[prost(string, repeated, tag = "5")]
    pub string_table: Vec<String>,
    /// Attributes.
    #[prost(message, repeated, tag = "6")]
    pub attribute_table: Vec<Attribute>,
    /// Stacks.
    #[prost(message, repeated, tag = "7")]
    pub stack_table: Vec<Stack>,
}

impl Dictionary {
    /// Returns a string.
    pub fn string(&self, index: i32) -> Option<&str> {
        let index = usize::try_from(index).ok()?;
        self.string_table.get(index).map(String::as_str)
    }
}

/// Profiles of one resource, such as a process.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceProfiles {
    /// The resource.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Profiles by recorder.
    #[prost(message, repeated, tag = "2")]
    pub scope_profiles: Vec<ScopeProfiles>,
}

/// The entity that was profiled.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Resource {
    /// Attributes of the resource.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// An attribute.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KeyValue {
    /// Name of the attribute.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Value of the attribute.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
    /// Name as a dictionary index, if `key` is empty. Collectors write names and texts this way.
    #[prost(int32, tag = "3")]
    pub key_strindex: i32,
}

impl KeyValue {
    /// Creates a text attribute.
    pub fn of_text(key: &str, value: &str) -> Self {
        Self { key: key.to_owned(), value: Some(AnyValue::of_text(value)), key_strindex: 0 }
    }

    /// Returns the name. `None`: the dictionary has no such string.
    pub fn name<'s>(&'s self, dictionary: &'s Dictionary) -> Option<&'s str> {
        if self.key_strindex == 0 { Some(&self.key) } else { dictionary.string(self.key_strindex) }
    }

    /// Returns the value, if it is a text.
    pub fn text<'s>(&'s self, dictionary: &'s Dictionary) -> Option<&'s str> {
        self.value.as_ref()?.text(dictionary)
    }
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Message)]
pub struct AnyValue {
    /// The value.
    #[prost(oneof = "OneValue", tags = "1, 3, 8")]
    pub value: Option<OneValue>,
}

impl AnyValue {
    /// Creates a text value.
    pub(super) fn of_text(text: &str) -> Self {
        Self { value: Some(OneValue::Text(text.to_owned())) }
    }

    /// Returns the value, if it is an existing text.
    pub fn text<'s>(&'s self, dictionary: &'s Dictionary) -> Option<&'s str> {
        match self.value.as_ref()? {
            OneValue::Text(text) => Some(text),
            OneValue::TextIndex(index) => dictionary.string(*index),
            OneValue::Number(_) => None,
        }
    }
}

/// A text or a number; other kinds are not read.
#[derive(Clone, PartialEq, Oneof)]
pub enum OneValue {
    /// A text.
    #[prost(string, tag = "1")]
    Text(String),
    /// A whole number.
    #[prost(int64, tag = "3")]
    Number(i64),
    /// A text in the dictionary.
    #[prost(int32, tag = "8")]
    TextIndex(i32),
}

/// Profiles of one recorder.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScopeProfiles {
    /// The recorder.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    /// The profiles.
    #[prost(message, repeated, tag = "2")]
    pub profiles: Vec<Profile>,
}

/// A recorder.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InstrumentationScope {
    /// Name of the recorder.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Version of the recorder.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// A profile.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Profile {
    /// Type and unit of the values.
    #[prost(message, optional, tag = "1")]
    pub sample_type: Option<ValueType>,
    /// Stacks with values.
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<OtlpSample>,
    /// Start in nanoseconds since 1970.
    #[prost(fixed64, tag = "3")]
    #[serde(deserialize_with = "json::wide")]
    pub time_unix_nano: u64,
    /// Duration in nanoseconds.
    #[prost(uint64, tag = "4")]
    #[serde(deserialize_with = "json::wide")]
    pub duration_nano: u64,
    /// Type of the sampling period.
    #[prost(message, optional, tag = "5")]
    pub period_type: Option<ValueType>,
    /// Sampling period in that unit.
    #[prost(int64, tag = "6")]
    #[serde(deserialize_with = "json::wide")]
    pub period: i64,
}

/// Type and unit of a value.
#[derive(Clone, Copy, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ValueType {
    /// Name of the type.
    #[prost(int32, tag = "1")]
    pub type_strindex: i32,
    /// Name of the unit.
    #[prost(int32, tag = "2")]
    pub unit_strindex: i32,
}

/// The values of a stack.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OtlpSample {
    /// The stack.
    #[prost(int32, tag = "1")]
    pub stack_index: i32,
    /// Attributes of the sample.
    #[prost(int32, repeated, tag = "2")]
    pub attribute_indices: Vec<i32>,
    /// The values, one per timestamp if there are timestamps.
    #[prost(int64, repeated, tag = "4")]
    #[serde(deserialize_with = "json::wides")]
    pub values: Vec<i64>,
    /// Times of the samples, in nanoseconds since 1970.
    #[prost(fixed64, repeated, tag = "5")]
    #[serde(deserialize_with = "json::wides")]
    pub timestamps_unix_nano: Vec<u64>,
}

/// A file that code was mapped from.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OtlpMapping {
    /// Start of the mapping; 0 if addresses are those of the file's headers.
    #[prost(uint64, tag = "1")]
    #[serde(deserialize_with = "json::wide")]
    pub memory_start: u64,
    /// End of the mapping.
    #[prost(uint64, tag = "2")]
    #[serde(deserialize_with = "json::wide")]
    pub memory_limit: u64,
    /// File offset of the mapping.
    #[prost(uint64, tag = "3")]
    #[serde(deserialize_with = "json::wide")]
    pub file_offset: u64,
    /// The file.
    #[prost(int32, tag = "4")]
    pub filename_strindex: i32,
    /// Attributes of the mapping.
    #[prost(int32, repeated, tag = "5")]
    pub attribute_indices: Vec<i32>,
}

/// A stack.
#[derive(Clone, PartialEq, Eq, Hash, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Stack {
    /// Locations, leaf first.
    #[prost(int32, repeated, tag = "1")]
    pub location_indices: Vec<i32>,
}

/// A code location.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Location {
    /// The file.
    #[prost(int32, tag = "1")]
    pub mapping_index: i32,
    /// Address in the file.
    #[prost(uint64, tag = "2")]
    #[serde(deserialize_with = "json::wide")]
    pub address: u64,
    /// Lines, innermost inlined call first.
    #[prost(message, repeated, tag = "3")]
    pub lines: Vec<Line>,
    /// Attributes of the location.
    #[prost(int32, repeated, tag = "4")]
    pub attribute_indices: Vec<i32>,
}

/// A function and a line in it.
#[derive(Clone, Copy, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Line {
    /// The function.
    #[prost(int32, tag = "1")]
    pub function_index: i32,
    /// The line.
    #[prost(int64, tag = "2")]
    #[serde(deserialize_with = "json::wide")]
    pub line: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OtlpFunction {
    /// Readable name.
    #[prost(int32, tag = "1")]
    pub name_strindex: i32,
    /// Linkage name.
    #[prost(int32, tag = "2")]
    pub system_name_strindex: i32,
    /// The file.
    #[prost(int32, tag = "3")]
    pub filename_strindex: i32,
    /// First line; 0 if not known.
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "json::wide")]
    pub start_line: i64,
}

/// Links are not used: only the empty first row is written.
#[derive(Clone, Copy, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Link {}

/// An attribute of samples, locations or files.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Attribute {
    /// Name of the attribute.
    #[prost(int32, tag = "1")]
    pub key_strindex: i32,
    /// Value of the attribute.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// A receiver's response to a request.
#[derive(Clone, PartialEq, Message)]
pub struct ExportResponse {
    /// Present if it did not accept everything.
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

/// The part that a receiver rejected.
#[derive(Clone, PartialEq, Message)]
pub struct PartialSuccess {
    /// Number of profiles rejected.
    #[prost(int64, tag = "1")]
    pub rejected_profiles: i64,
    /// The reason; a warning if all were accepted.
    #[prost(string, tag = "2")]
    pub error_message: String,
}

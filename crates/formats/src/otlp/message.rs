//! The messages, as far as they are written and read, also from JSON. Numbers that end in `index` are places in the dictionary's tables,
//! whose first row is empty.

use prost::{Message, Oneof};
use serde::Deserialize;

use super::json;

/// All profiles with what they share; a request to export them looks the same.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProfilesData {
    /// By resource.
    #[prost(message, repeated, tag = "1")]
    pub resource_profiles: Vec<ResourceProfiles>,
    /// The tables.
    #[prost(message, optional, tag = "2")]
    pub dictionary: Option<Dictionary>,
}

/// Tables that all profiles share.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Dictionary {
    /// Files.
    #[prost(message, repeated, tag = "1")]
    pub mapping_table: Vec<OtlpMapping>,
    /// Places in the code.
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
    /// A string.
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
    /// By recorder.
    #[prost(message, repeated, tag = "2")]
    pub scope_profiles: Vec<ScopeProfiles>,
}

/// What was profiled.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Resource {
    /// Its attributes.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// An attribute.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KeyValue {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
    /// Its name in the dictionary, if `key` is empty. Collectors write names and texts this way.
    #[prost(int32, tag = "3")]
    pub key_strindex: i32,
}

impl KeyValue {
    /// A text.
    pub(super) fn of_text(key: &str, value: &str) -> Self {
        Self { key: key.to_owned(), value: Some(AnyValue::of_text(value)), key_strindex: 0 }
    }

    /// Its name. `None`: the dictionary has no such string.
    pub fn name<'s>(&'s self, dictionary: &'s Dictionary) -> Option<&'s str> {
        if self.key_strindex == 0 { Some(&self.key) } else { dictionary.string(self.key_strindex) }
    }

    /// Its value, if that is a text.
    pub fn text<'s>(&'s self, dictionary: &'s Dictionary) -> Option<&'s str> {
        self.value.as_ref()?.text(dictionary)
    }
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Message)]
pub struct AnyValue {
    /// Its value.
    #[prost(oneof = "OneValue", tags = "1, 3, 8")]
    pub value: Option<OneValue>,
}

impl AnyValue {
    /// A text.
    pub(super) fn of_text(text: &str) -> Self {
        Self { value: Some(OneValue::Text(text.to_owned())) }
    }

    /// The value, if it is a text that is there.
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
    /// A text of the dictionary.
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
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// A profile.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Profile {
    /// What values count.
    #[prost(message, optional, tag = "1")]
    pub sample_type: Option<ValueType>,
    /// Stacks with values.
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<OtlpSample>,
    /// When it began, in nanoseconds since 1970.
    #[prost(fixed64, tag = "3")]
    #[serde(deserialize_with = "json::wide")]
    pub time_unix_nano: u64,
    /// How long it took.
    #[prost(uint64, tag = "4")]
    #[serde(deserialize_with = "json::wide")]
    pub duration_nano: u64,
    /// What lies between two samples.
    #[prost(message, optional, tag = "5")]
    pub period_type: Option<ValueType>,
    /// How much of that.
    #[prost(int64, tag = "6")]
    #[serde(deserialize_with = "json::wide")]
    pub period: i64,
}

/// What a value counts, and in which unit.
#[derive(Clone, Copy, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ValueType {
    /// Its name.
    #[prost(int32, tag = "1")]
    pub type_strindex: i32,
    /// Its unit.
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
    /// Its attributes.
    #[prost(int32, repeated, tag = "2")]
    pub attribute_indices: Vec<i32>,
    /// The values, of one time each if there are timestamps.
    #[prost(int64, repeated, tag = "4")]
    #[serde(deserialize_with = "json::wides")]
    pub values: Vec<i64>,
    /// When it was taken, in nanoseconds since 1970.
    #[prost(fixed64, repeated, tag = "5")]
    #[serde(deserialize_with = "json::wides")]
    pub timestamps_unix_nano: Vec<u64>,
}

/// A file that code was mapped from.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OtlpMapping {
    /// Where the file was mapped; 0 where addresses are those of the file's headers.
    #[prost(uint64, tag = "1")]
    #[serde(deserialize_with = "json::wide")]
    pub memory_start: u64,
    /// The end of that.
    #[prost(uint64, tag = "2")]
    #[serde(deserialize_with = "json::wide")]
    pub memory_limit: u64,
    /// The first byte of the file that was mapped there.
    #[prost(uint64, tag = "3")]
    #[serde(deserialize_with = "json::wide")]
    pub file_offset: u64,
    /// The file.
    #[prost(int32, tag = "4")]
    pub filename_strindex: i32,
    /// Its attributes.
    #[prost(int32, repeated, tag = "5")]
    pub attribute_indices: Vec<i32>,
}

/// A stack.
#[derive(Clone, PartialEq, Eq, Hash, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Stack {
    /// The leaf first.
    #[prost(int32, repeated, tag = "1")]
    pub location_indices: Vec<i32>,
}

/// A place in the code.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Location {
    /// The file.
    #[prost(int32, tag = "1")]
    pub mapping_index: i32,
    /// The address in the file.
    #[prost(uint64, tag = "2")]
    #[serde(deserialize_with = "json::wide")]
    pub address: u64,
    /// The innermost inlined call first.
    #[prost(message, repeated, tag = "3")]
    pub lines: Vec<Line>,
    /// Its attributes.
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
    /// Its readable name.
    #[prost(int32, tag = "1")]
    pub name_strindex: i32,
    /// Its name in the file.
    #[prost(int32, tag = "2")]
    pub system_name_strindex: i32,
    /// The file.
    #[prost(int32, tag = "3")]
    pub filename_strindex: i32,
    /// The line where it begins; 0 if it is not known.
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "json::wide")]
    pub start_line: i64,
}

/// Nothing is linked: only its empty first row is written.
#[derive(Clone, Copy, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Link {}

/// An attribute of samples, locations or files.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Attribute {
    /// Its name.
    #[prost(int32, tag = "1")]
    pub key_strindex: i32,
    /// Its value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// What a receiver answers to a request.
#[derive(Clone, PartialEq, Message)]
pub struct ExportResponse {
    /// Where it did not take all.
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

/// What a receiver did not take.
#[derive(Clone, PartialEq, Message)]
pub struct PartialSuccess {
    /// So many profiles.
    #[prost(int64, tag = "1")]
    pub rejected_profiles: i64,
    /// Why; a warning, if all were taken.
    #[prost(string, tag = "2")]
    pub error_message: String,
}

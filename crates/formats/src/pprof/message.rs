//! The messages, field by field. Strings are row numbers in the string table, whose first row is empty.

use prost::Message;

/// A profile.
#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    /// Type and unit of each value of a sample.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// Stacks with values.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<PprofSample>,
    /// Files.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<PprofMapping>,
    /// Code locations.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<PprofFunction>,
    /// Strings; the first is empty.
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    /// Start in nanoseconds since 1970.
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    /// Duration in nanoseconds.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// Type of the sampling period.
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    /// Sampling period in that unit.
    #[prost(int64, tag = "12")]
    pub period: i64,
    /// Comments of the recorder.
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    /// The type of value shown by default.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// Type and unit of a value.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct ValueType {
    /// Name of the type.
    #[prost(int64, tag = "1")]
    pub kind: i64,
    /// Name of the unit.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// The values of a stack.
#[derive(Clone, PartialEq, Message)]
pub struct PprofSample {
    /// Locations, leaf first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    /// Values, one per type of the profile.
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    /// Labels, such as thread and process.
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

/// A label that distinguishes samples of equal stacks: a key with a text or a number.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Label {
    /// Name of the label.
    #[prost(int64, tag = "1")]
    pub key: i64,
    /// Text of the label; 0 if it is a number.
    #[prost(int64, tag = "2")]
    pub text: i64,
    /// Number of the label.
    #[prost(int64, tag = "3")]
    pub number: i64,
}

/// A file that code was mapped from.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct PprofMapping {
    /// Id of the mapping, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The first address.
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    /// The address after the last.
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    /// File offset of the mapping.
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    /// The file.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// Build id in hexadecimal.
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    /// Functions of all its locations are known.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    /// Files of all its locations are known.
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    /// Lines of all its locations are known.
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    /// Inlined calls of all its locations are known.
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

/// A code location, with the calls inlined there.
#[derive(Clone, PartialEq, Message)]
pub struct Location {
    /// Id of the location, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Id of the mapping; 0 if not known.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// Address at run time; 0 if not known.
    #[prost(uint64, tag = "3")]
    pub address: u64,
    /// Lines, innermost inlined call first.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

/// A function and a line in it.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Line {
    /// The function.
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    /// The line.
    #[prost(int64, tag = "2")]
    pub line: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct PprofFunction {
    /// Id of the function, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Readable name.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// Linkage name.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// Source file.
    #[prost(int64, tag = "4")]
    pub filename: i64,
    /// First line; 0 if not known.
    #[prost(int64, tag = "5")]
    pub start_line: i64,
}

//! The messages, field by field. Strings are places in the table of strings, whose first is empty.

use prost::Message;

/// A profile.
#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    /// What each value of a sample counts.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// Stacks with values.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<PprofSample>,
    /// Files.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<PprofMapping>,
    /// Places in the code.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<PprofFunction>,
    /// Strings; the first is empty.
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    /// When it began, in nanoseconds since 1970.
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    /// How long it took.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// What lies between two samples.
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    /// How much of that.
    #[prost(int64, tag = "12")]
    pub period: i64,
    /// What the recorder said of it.
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    /// The type of the value that is shown first.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// What a value counts, and in which unit.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct ValueType {
    /// Its name.
    #[prost(int64, tag = "1")]
    pub kind: i64,
    /// Its unit.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// The values of a stack.
#[derive(Clone, PartialEq, Message)]
pub struct PprofSample {
    /// The leaf first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    /// As many as the profile has types.
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    /// Thread, process and what else was known.
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

/// What tells samples of equal stacks apart: a key with a text or a number.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Label {
    /// The name of the label.
    #[prost(int64, tag = "1")]
    pub key: i64,
    /// Its text; 0 if it is a number.
    #[prost(int64, tag = "2")]
    pub text: i64,
    /// Its number.
    #[prost(int64, tag = "3")]
    pub number: i64,
}

/// A file that code was mapped from.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct PprofMapping {
    /// Its id, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The first address.
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    /// The address after the last.
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    /// Where the mapping begins in the file.
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    /// The file.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// Its build id in hexadecimal digits.
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

/// A place in the code: with the calls that were inlined there.
#[derive(Clone, PartialEq, Message)]
pub struct Location {
    /// Its id, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The file; 0 if it is not known.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// The address at run time; 0 if it is not known.
    #[prost(uint64, tag = "3")]
    pub address: u64,
    /// The innermost inlined call first.
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
    /// Its id, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its readable name.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// Its name in the file.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// The file.
    #[prost(int64, tag = "4")]
    pub filename: i64,
    /// The line where it begins; 0 if it is not known.
    #[prost(int64, tag = "5")]
    pub start_line: i64,
}

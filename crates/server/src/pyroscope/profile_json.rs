//! pprof's message as JSON, for the one query that answers with it. Tens of megabytes are written without anything in between.

use plumb_formats::pprof::message::{
    Label, Line, Location, PprofFunction, PprofMapping, PprofSample, Profile, ValueType,
};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::json::Int64;

/// Writes itself as the JSON of its message.
pub(crate) struct Json<'p, T>(pub &'p T);

/// A list of such.
struct List<'p, T>(&'p [T]);

impl<'p, T> Serialize for List<'p, T>
where
    Json<'p, T>: Serialize,
{
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(self.0.iter().map(Json))
    }
}

/// A list of integers.
struct Integers<'p, T>(&'p [T]);

impl<T: Copy + TryInto<i64>> Serialize for Integers<'_, T> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(self.0.iter().map(|&one| Int64(one.try_into().unwrap_or(i64::MAX))))
    }
}

/// Writes the fields that are not empty: integers, lists of integers, lists of messages, messages, texts and flags.
macro_rules! fields {
    ($out:ident, $name:literal, $($kind:ident $field:expr => $key:literal),+ $(,)?) => {{
        let mut object = $out.serialize_struct($name, 16)?;
        $(fields!(@ $kind object, $field, $key);)+
        object.end()
    }};
    (@ int $object:ident, $field:expr, $key:literal) => {
        if $field != 0 {
            $object.serialize_field($key, &Int64(i64::try_from($field).unwrap_or(i64::MAX)))?;
        }
    };
    (@ ints $object:ident, $field:expr, $key:literal) => {
        if !$field.is_empty() {
            $object.serialize_field($key, &Integers(&$field))?;
        }
    };
    (@ list $object:ident, $field:expr, $key:literal) => {
        if !$field.is_empty() {
            $object.serialize_field($key, &List(&$field))?;
        }
    };
    (@ texts $object:ident, $field:expr, $key:literal) => {
        if !$field.is_empty() {
            $object.serialize_field($key, &$field)?;
        }
    };
    (@ flag $object:ident, $field:expr, $key:literal) => {
        if $field {
            $object.serialize_field($key, &true)?;
        }
    };
    (@ message $object:ident, $field:expr, $key:literal) => {
        if let Some(message) = &$field {
            $object.serialize_field($key, &Json(message))?;
        }
    };
}

impl Serialize for Json<'_, Profile> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let one = self.0;
        fields!(out, "Profile",
            list one.sample_type => "sampleType",
            list one.sample => "sample",
            list one.mapping => "mapping",
            list one.location => "location",
            list one.function => "function",
            texts one.string_table => "stringTable",
            int one.time_nanos => "timeNanos",
            int one.duration_nanos => "durationNanos",
            message one.period_type => "periodType",
            int one.period => "period",
            ints one.comment => "comment",
            int one.default_sample_type => "defaultSampleType",
        )
    }
}

impl Serialize for Json<'_, ValueType> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        fields!(out, "ValueType", int self.0.kind => "type", int self.0.unit => "unit")
    }
}

impl Serialize for Json<'_, PprofSample> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let one = self.0;
        fields!(out, "Sample",
            ints one.location_id => "locationId",
            ints one.value => "value",
            list one.label => "label",
        )
    }
}

impl Serialize for Json<'_, Label> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let one = self.0;
        fields!(out, "Label", int one.key => "key", int one.text => "str", int one.number => "num")
    }
}

impl Serialize for Json<'_, PprofMapping> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let one = self.0;
        fields!(out, "Mapping",
            int one.id => "id",
            int one.memory_start => "memoryStart",
            int one.memory_limit => "memoryLimit",
            int one.file_offset => "fileOffset",
            int one.filename => "filename",
            int one.build_id => "buildId",
            flag one.has_functions => "hasFunctions",
            flag one.has_filenames => "hasFilenames",
            flag one.has_line_numbers => "hasLineNumbers",
            flag one.has_inline_frames => "hasInlineFrames",
        )
    }
}

impl Serialize for Json<'_, Location> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let one = self.0;
        fields!(out, "Location",
            int one.id => "id",
            int one.mapping_id => "mappingId",
            int one.address => "address",
            list one.line => "line",
        )
    }
}

impl Serialize for Json<'_, Line> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        fields!(out, "Line", int self.0.function_id => "functionId", int self.0.line => "line")
    }
}

impl Serialize for Json<'_, PprofFunction> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let one = self.0;
        fields!(out, "Function",
            int one.id => "id",
            int one.name => "name",
            int one.system_name => "systemName",
            int one.filename => "filename",
            int one.start_line => "startLine",
        )
    }
}

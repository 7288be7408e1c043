//! Rule: data is converted to JSON and back.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "encoder_listencode_obj",
        "encoder_call",
        "scanner_call",
        "_parse_object_unicode",
        "_parse_array_unicode",
        "scan_once_unicode",
        "encoding/json.Marshal",
        "encoding/json.Unmarshal",
        "v8::internal::Builtin_JsonParse",
        "v8::internal::Builtin_JsonStringify",
        "Builtins_JsonParse",
        "Builtins_JsonStringify",
    ],
    begin: &[
        "serde_json::",
        "v8::internal::JsonParser",
        "v8::internal::JsonStringifier",
        "nlohmann::",
        "rapidjson::",
    ],
};
/// Source files of Python's json module.
const FILES: &[&str] = &["/json/__init__.py", "/json/encoder.py", "/json/decoder.py"];

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "json-copy",
        claim: "writes and reads JSON",
        pattern: "data is turned into JSON and back, as a way to copy it or to hand it on",
        threshold: "at least 20% of processor time",
        remedy: "copy the objects themselves, keep what was parsed, a quicker library (orjson, simdjson) or a binary format",
        bound: "writing and reading with all that they call",
        source: "judgement: a program that spends a fifth on it does it more often than its data changes",
    },
    gain: GainModel::Lines { least: 0.6, most: 1.0, callers: 0.2 },
    extent: Extent::Calls,
    least_percent: 20.0,
    find: |code| code.calls_and_scripts(&FUNCTIONS, FILES),
};

//! Rule: text is parsed by Python code.

use crate::advice::Rule;
use crate::advice::code::{CodeRule, Extent, GainModel};

/// Source files of the modules: `datetime.strptime` and `time.strptime`, dateutil's parser, and configparser.
const FILES: &[&str] = &["/_strptime.py", "/dateutil/parser/_parser.py", "/configparser.py"];

pub(in crate::advice::code) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "text-parsing",
        claim: "parses text",
        pattern: "times and settings are read from text by code in Python that interprets a format at each call",
        threshold: "at least 10% of processor time",
        remedy: "datetime.fromisoformat where the format is ISO 8601; take the parts by their places; parse what stays the same once",
        bound: "the parsing modules with all that they call",
        source: "measured on CPython 3.11: 11 us for strptime, 0.13 us for fromisoformat",
    },
    gain: GainModel::Parts { least: 0.85, most: 1.0, callers: 0.6 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.scripts_in(FILES),
};

//! Rule: string streams are created for single values.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[],
    begin: &[
        "std::__cxx11::basic_stringstream",
        "std::__cxx11::basic_istringstream",
        "std::__cxx11::basic_ostringstream",
        "std::basic_stringstream",
        "std::basic_istringstream",
        "std::basic_ostringstream",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "stream-construction",
        claim: "makes a string stream again and again, to parse or format text",
        pattern: "a std::stringstream is made and destroyed for each value: it takes a locale and its facets each time",
        threshold: "at least 10% of processor time in making and destroying them",
        remedy: "std::from_chars and std::to_chars, std::stoi and std::to_string; or one stream that is kept (str(\"\") and clear())",
        bound: "making and destroying, and what the lines do with the streams",
        source: "measured: reading an int by a stream of its own takes 460 ns, by from_chars 6 ns",
    },
    gain: GainModel::Everything { least: 0.85, callers: 1.0 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&FUNCTIONS),
};

//! Rule: CPU time goes into parsing numbers.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names, flush};

const FUNCTIONS: Names = Names {
    whole: &[
        "sscanf",
        "fscanf",
        "scanf",
        "vsscanf",
        "vfscanf",
        "__vfscanf_internal",
        "__vsscanf_internal",
        "strtod",
        "strtof",
        "strtold",
        "strtol",
        "strtoll",
        "strtoul",
        "strtoull",
        "atof",
        "atoi",
        "atol",
        "atoll",
        "strptime",
        "strconv.Atoi",
        "strconv.atof64",
        "strconv.atof64exact",
        "strconv.readFloat",
        "strconv.eiselLemire64",
        "fmt.Sscanf",
        "fmt.Sscan",
        "fmt.Fscanf",
        "fmt.Fscan",
    ],
    begin: &[
        "__isoc99_",
        "__isoc23_",
        "____strto",
        "__strto",
        "__GI_____strto",
        "__GI___strto",
        "strconv.Parse",
        "std::stoi",
        "std::stol",
        "std::stod",
        "std::stof",
        "std::num_get",
        "std::istream::_M_extract",
        "std::istream::operator>>",
        "core::num::dec2flt::",
        "core::num::<impl core::str::traits::FromStr",
        "core::str::<impl str>::parse",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "text-parsing",
        claim: "parses text",
        pattern: "numbers are read from text by functions that interpret a format, or go by a locale",
        threshold: "at least 5% of processor time",
        remedy: "parse what stays the same once and keep the values; use from_chars, a parser made for the format, or a binary format",
        bound: "the parsing functions with all that they call",
        source: "std::from_chars (C++17, P0067R5) was made for this: independent of locales, without allocation; \
                 measured: an int takes 6 ns by it, 49 ns by sscanf",
    },
    gain: GainModel::Parts { least: 0.5, most: 1.0, callers: 0.3 },
    extent: Extent::Calls,
    least_percent: 5.0,
    // Reading the input does not count as parsing.
    find: |code| code.calls_without(&FUNCTIONS, &flush::FUNCTIONS),
};

//! Rule: CPU time goes into formatting numbers as text.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names, flush};

const FUNCTIONS: Names = Names {
    whole: &[
        "printf",
        "fprintf",
        "sprintf",
        "snprintf",
        "vprintf",
        "vfprintf",
        "vsprintf",
        "vsnprintf",
        "asprintf",
        "vasprintf",
        "dprintf",
        "vdprintf",
        "__vfprintf_internal",
        "__vsnprintf_internal",
        "__vsprintf_internal",
        "__printf_buffer",
        "__printf_fp",
        "__printf_fp_l",
        "__sprintf_chk",
        "__snprintf_chk",
        "__printf_chk",
        "__fprintf_chk",
        "__vfprintf_chk",
        "__vsnprintf_chk",
        "_IO_vfprintf",
        "fmt.Sprintf",
        "fmt.Fprintf",
        "fmt.Sprint",
        "fmt.Sprintln",
        "fmt.Appendf",
        "alloc::fmt::format",
        "alloc::fmt::format::format_inner",
    ],
    begin: &[
        "fmt.(*",
        "strconv.Append",
        "strconv.Format",
        "strconv.Itoa",
        "strconv.Quote",
        "strconv.formatBits",
        "strconv.fmt",
        "strconv.small",
        "std::ostream::_M_insert",
        "std::ostream::operator<<",
        "std::__ostream_insert",
        "std::operator<<",
        "std::num_put",
        "std::basic_ostream",
        "std::locale::",
        "core::fmt::",
        "<core::fmt::",
        "core::num::flt2dec::",
        "fmt::v",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "formatting",
        claim: "formats text",
        pattern: "numbers and texts are formatted by functions that interpret a format, or go by a locale",
        threshold: "at least 5% of processor time",
        remedy: "format less (not what nobody reads); use to_chars, a number formatter (ryu, itoa), or a binary format; write into one \
                 buffer that is kept",
        bound: "the formatting functions with all that they call",
        source: "std::to_chars (C++17, P0067R5) was made for this: independent of locales, without allocation; \
                 measured: an int takes 5 ns by it, 53 ns by snprintf",
    },
    gain: GainModel::Parts { least: 0.4, most: 1.0, callers: 0.15 },
    extent: Extent::Calls,
    least_percent: 5.0,
    // Flushing and work in the kernel do not count as formatting.
    find: |code| code.calls_without(&FUNCTIONS, &flush::FUNCTIONS),
};

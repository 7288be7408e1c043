//! Rule: the time-zone file is checked for each conversion to local time.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "localtime",
        "__tz_convert",
        "tzset",
        "__tzset",
        "tzset_internal",
        "mktime",
        "__mktime_internal",
        "strftime",
        "__tzfile_read",
    ],
    begin: &["__strftime_internal"],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "timezone-stat",
        claim: "asks for the file of the time zone with each time (localtime)",
        pattern: "localtime asks the kernel about /etc/localtime each time, as TZ isn't set",
        threshold: "at least 10% of processor time, a third of it in the kernel",
        remedy: "localtime_r after one tzset, TZ=:/etc/localtime in the environment, or the offset computed once a minute",
        bound: "the call of the kernel and what breaks the time down",
        source: "glibc, time/tzset.c: without TZ tzset_internal checks the file each time",
    },
    gain: GainModel::Parts { least: 0.5, most: 1.0, callers: 0.2 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_in_kernel(&FUNCTIONS, 1.0 / 3.0),
};

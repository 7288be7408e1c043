//! Rule: output is flushed repeatedly, with a system call per line.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

pub(super) const FUNCTIONS: Names = Names {
    whole: &[
        "fflush",
        "_IO_fflush",
        "__GI__IO_fflush",
        "fflush_unlocked",
        "std::ostream::flush",
        "std::basic_ostream<…>::flush",
        "std::endl<…>",
        "std::flush<…>",
        "std::ofstream::flush",
        "_io_TextIOWrapper_flush",
        "_io__Buffered_flush",
        "_io_BufferedWriter_flush",
        "bufio.(*Writer).Flush",
    ],
    begin: &[
        "std::io::buffered::linewriter",
        "std::io::buffered::line_writer",
        "<std::io::buffered::linewriter",
        "<std::io::stdio::Stdout as std::io::Write>::flush",
        "<std::io::stdio::StdoutLock as std::io::Write>::flush",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "flush-per-line",
        claim: "flushes its output after each record",
        pattern: "output is flushed after each record, so that each costs a system call",
        threshold: "at least 10% of processor time in flushing and the calls below it",
        remedy: "flush once at the end: '\\n' instead of std::endl, no fflush after each line, BufWriter around stdout, a buffer of 64 KiB",
        bound: "flushing with the system calls below it; a large write remains for each buffer",
        source: "measured: write of 64 bytes to a file takes 183 ns, of 64 KiB 10 µs, which is 10 ns for each 64 bytes",
    },
    gain: GainModel::Lines { least: 0.85, most: 1.0, callers: 0.8 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&FUNCTIONS),
};

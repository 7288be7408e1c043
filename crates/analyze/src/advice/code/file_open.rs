//! Rule: files are opened repeatedly.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "fopen",
        "fopen64",
        "_IO_fopen",
        "_IO_new_fopen",
        "__fopen_internal",
        "fclose",
        "_IO_new_fclose",
        "_io_open",
        "_io_open_impl",
        "iobase_exit",
        "_io_TextIOWrapper_close",
        "_io__Buffered_close",
        "buffered_close",
        "_io_FileIO_close",
        "std::basic_filebuf<…>::open",
        "std::basic_filebuf<…>::close",
        "os.OpenFile",
        "os.Open",
        "os.Create",
        "os.(*File).Close",
        "std::fs::OpenOptions::_open",
        "std::fs::File::open",
        "std::fs::File::create",
        "<std::os::fd::owned::OwnedFd as core::ops::drop::Drop>::drop",
    ],
    begin: &["std::basic_ofstream", "std::basic_ifstream", "std::sys::fs::unix::File::open"],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "reopened-file",
        claim: "opens and closes files again and again",
        pattern: "a file is opened, used for a little and closed, which costs more than what is done with it",
        threshold: "at least 25% of processor time in opening and closing, with the system calls below",
        remedy: "keep the file open for the next record, or collect records and write them at once",
        bound: "opening and closing; what is read and written remains",
        source: "measured: open, read and close take 0.6 µs, a write of 64 bytes to an open file 0.2 µs; in Python opening a file for each line takes 16 µs more",
    },
    gain: GainModel::Everything { least: 0.85, callers: 0.5 },
    extent: Extent::Calls,
    least_percent: 25.0,
    find: |code| code.calls_of(&FUNCTIONS),
};

//! The recording, `.plumb`: one zip archive of Parquet tables, readable without plumb.
//!
//! The archive's entries are stored, not compressed again: the tables' columns are compressed inside. `meta.json`
//! comes first and holds the format's version and [`plumb_profile::Meta`]. Every other entry is a table; a row's
//! number, counted from 0, is its id, and a column named after a table (`dso`, `thread`, ...) holds such numbers,
//! null for none. `strings.parquet` holds all text, its row 0 the empty string, which stands for "not known".
//!
//! | table     | columns |
//! |-----------|---------|
//! | strings   | text |
//! | events    | name¹, unit¹ |
//! | dsos      | path¹, build_id (bytes), kind (`file` `vdso` `kernel` `kernel-module` `anonymous`), pid (of anonymous memory), addresses (`svma` `file-offset` `avma`), is_script³ |
//! | processes | pid, ppid, exe¹ |
//! | threads   | process, tid, comm¹ |
//! | lives²    | pid, parent (row of lives, always an earlier one), exe¹, comm¹, begin (`running` `fork` `exec`), end (`running` `exec` `exit`), start_us, end_us (null after `exec`: the start of the next life with that pid), cpu_us, peak_rss_bytes, process |
//! | mappings  | process, dso, start, end, bias |
//! | frames    | kind (`user` `kernel` `cut`), cut (reason, see [`plumb_profile::Truncation::name`]), dso, address, is_return, found (`sampled` `cfi` `signal` `frame-pointer` `stitched` `scan`) |
//! | functions | name¹ ⁶, linkage_name¹, dso, start, source_file¹, start_line⁷ |
//! | lines     | frame, function, file¹, line, inlined: a frame's lines are consecutive, innermost inlined call first |
//! | stacks    | caller (row of stacks, always a smaller one), frame |
//! | samples   | time_ns, thread, cpu, event, stack, weight, syscall⁴ |
//! | registers⁵ | time_ns, thread, event, frame (the innermost), ip, rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15 |
//! | registers_aarch64⁵ | time_ns, thread, event, frame (the innermost), ip, x0 to x30, sp |
//!
//! ¹ a row of strings. ² since version 1.1; times are in whole microseconds on the clock of the samples, rounded down.
//!
//! ³ since version 1.3. `is_script`: functions of interpreted programs; `kind` is `file` and `addresses` is `file-offset`, which
//! older readers know, but the path is a language in brackets, and an address is the function's number times 2³² plus a
//! line. Frames of such a DSO are called by the interpreter's loop that ran them: readers show either them or the loop.
//!
//! ⁴ since version 1.4: number of the system call that the sample interrupted in the kernel, null if there was none, or it is not
//! known.
//!
//! ⁵ since version 1.6, of some of the samples that interrupted user code on x86-64, and since 1.9 on aarch64; the entry is missing if there are none.
//!
//! ⁶ since version 1.7 a function without a name only has the start of the function that a frame is in, if nothing more is known. Older readers
//! show an empty name.
//!
//! ⁷ since version 1.8: line of the definition, 0 if not known.
//!
//! Since version 1.2 a function's `name` may be the row of its `linkage_name` although that is mangled: demangling is
//! left to the reader, which has more time than the recorder. Older readers show such a name mangled.
//!
//! In `meta.json`, `event_occurrences` has the count of each event, null if it is not known (since version 1.3);
//! `occurrences` has that of a single event. `queued` (since version 1.5) has the run-queue wait of the target's threads,
//! see [`plumb_profile::Queued`]; it is missing if unknown. `user_only` (since version 1.5) is present if the kernel was not sampled.
//!
//! A recording that outgrew the recorder's memory has version 2.0: its tables have several groups of rows, rows
//! of stacks may be equal to earlier ones, and samples of different groups may overlap in time. Others have version 1.
//!
//! A recording in progress is a [`Journal`], which can be read if it is never finished ([`read_unfinished`]).
//!
//! Readers accept any minor version (unknown entries and columns are skipped) and reject a newer major version.
//! Does not rename the file into place. A recording truncated while it was written has no archive directory and cannot be
//! read, so write to a temporary file first.

mod column;
mod journal;
mod lives;
mod meta;
mod names;
mod read;
mod registers;
mod table;
mod version;
mod write;

pub use journal::Journal;
pub use read::{ReadError, Unfinished, panics_become_errors, read, read_unfinished};
pub use write::{WriteError, write};

/// Magic number of the journal of an unfinished recording.
pub const UNFINISHED: &[u8] = &journal::MAGIC;

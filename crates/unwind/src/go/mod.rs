//! Generates call-frame information for Go programs, whose own is not sufficient, from `.gopclntab`, the table that
//! Go's tracebacks use (Go 1.18 and newer; x86_64 and aarch64).
//!
//! For each function, that table has the distance of the stack pointer from its value at the entry, instruction by
//! instruction, and flags (`_func` in runtime/runtime2.go, `FuncFlag` in internal/abi/symtab.go). The output is a
//! `.debug_frame` with the same facts in DWARF. Go's own `.debug_frame` is missing from stripped programs, compressed
//! in others, and describes neither the frame pointer nor where stacks end or are switched.
//!
//! - `goexit`, `rt0_go` and other functions without callers are marked in the table: they are roots.
//! - Runtime functions that switch from a goroutine's stack to the scheduler's or the kernel's keep the caller's frame in the
//!   frame pointer while they run on the other stack. It is 0 if no caller waits for them to return (`mcall`, `morestack`);
//!   the stack then ends there.
//! - Other functions that set the stack pointer arbitrarily have no rules from that instruction on.
//!
//! The frame pointer counts as saved where the code that saves it is recognized. Table and code are read on demand
//! ([`Bytes`]): in large programs they take a hundred megabytes. Names and lines are not read here.

mod aarch64;
mod bytes;
mod code;
pub(crate) mod entries;
mod table;
mod way;

use alloc::vec::Vec;
use core::ops::Range;

use self::code::{Code, Frame};
use self::entries::{Form, Writer};
use self::table::{Function, Table};
use self::way::Way;

pub use self::bytes::Bytes;
pub use self::entries::{CALLER_AT_ENTRY, CALLER_IF_ANY};
pub use self::table::Layout;
use crate::address::Svma;
use crate::isa::Isa;

/// Approximate size of an entry in bytes.
const ENTRY: usize = 56;

/// Generates the bytes of a `.debug_frame` for a Go program. `table` is `.gopclntab`; `text` and `code` are the
/// stated address and the contents of the text section. Returns `None` if the table has another version or
/// architecture, is damaged, or does not match the code.
pub fn debug_frame<B: Bytes + ?Sized>(table: &B, text: Svma, code: &B) -> Option<Vec<u8>> {
    let table = Table::read(table, Code { start: text.0, bytes: code })?;
    Some(rules(&table, Form::DebugFrame, Vec::new()))
}

/// Locates the parts of a Go program's table, for [`function_frame`]. Returns `None` in the same cases as
/// [`debug_frame`].
pub fn layout<B: Bytes + ?Sized>(table: &B, text: Svma, code: &B) -> Option<Layout> {
    Some(Table::read(table, Code { start: text.0, bytes: code })?.layout)
}

/// Returns the start of the function that holds an address, or `None` if no function does.
pub fn function_start<B: Bytes + ?Sized>(
    layout: Layout,
    (table, text, code): (&B, Svma, &B),
    pc: Svma,
) -> Option<Svma> {
    let table = Table::of(layout, table, Code { start: text.0, bytes: code });
    function(&table, pc).map(|function| Svma(function.range.start))
}

/// Generates the bytes of a `.debug_frame` with only the function that holds an address. Returns `None` if there is
/// no such function.
pub fn function_frame<B: Bytes + ?Sized>(
    layout: Layout,
    (table, text, code): (&B, Svma, &B),
    pc: Svma,
) -> Option<Vec<u8>> {
    let table = Table::of(layout, table, Code { start: text.0, bytes: code });
    let mut out = Writer::new(layout.isa, Form::DebugFrame, Vec::new());
    write(&table, &function(&table, pc)?, &mut Vec::new(), &mut out);
    Some(out.bytes)
}

/// Finds the function that holds an address. The byte before the function that signal handlers return to belongs to
/// that function.
fn function<B: Bytes + ?Sized>(table: &Table<'_, B>, pc: Svma) -> Option<Function> {
    let (mut function, next) = table.find(pc.0)?;
    if let Some(next) = next.filter(Function::returns_from_signal) {
        function.range.end -= 1;
        if pc.0 >= function.range.end {
            return Some(next);
        }
    }
    Some(function)
}

/// Appends the generated entries to those of an `.eh_frame`, for programs with code of other languages (cgo): each
/// table covers functions that the other lacks. An existing `.eh_frame_hdr` does not index them. Returns `before` as
/// the error in the cases where [`debug_frame`] returns `None`.
pub fn eh_frame<B: Bytes + ?Sized>(
    table: &B,
    text: Svma,
    code: &B,
    mut before: Vec<u8>,
) -> Result<Vec<u8>, Vec<u8>> {
    let Some(table) = Table::read(table, Code { start: text.0, bytes: code }) else { return Err(before) };
    before.resize(before.len().next_multiple_of(4), 0);
    Ok(rules(&table, Form::EhFrame, before))
}

/// Writes the rules of all functions.
fn rules<B: Bytes + ?Sized>(table: &Table<'_, B>, form: Form, mut before: Vec<u8>) -> Vec<u8> {
    // Reserve beforehand, because growing would hold two copies for a moment. Pages that stay unused take no memory.
    let _ = before.try_reserve_exact(table.count().saturating_mul(ENTRY));
    let mut out = Writer::new(table.layout.isa, form, before);
    let mut rows = Vec::new();
    let mut end = 0;
    let mut functions = table.each().peekable();
    while let Some(mut function) = functions.next() {
        // Functions must not overlap, so that the rows do not outnumber the bytes of code.
        if function.range.start < end {
            continue;
        }
        end = function.range.end;
        if functions.peek().is_some_and(Function::returns_from_signal) {
            function.range.end -= 1;
        }
        write(table, &function, &mut rows, &mut out);
    }
    out.bytes.shrink_to_fit();
    out.bytes
}

/// Writes the rules of a function. `rows` is a reusable buffer.
fn write<B: Bytes + ?Sized>(
    table: &Table<'_, B>,
    function: &Function,
    rows: &mut Vec<(Range<u64>, Way)>,
    out: &mut Writer,
) {
    if function.returns_from_signal() {
        out.signal_return(&function.range);
        return;
    }
    each_row(table, function, rows);
    for rows in rows.chunk_by(|(_, a), (_, b)| (*a == Way::Unknown) == (*b == Way::Unknown)) {
        out.rows(rows);
    }
}

/// Computes the rows of a function.
fn each_row<B: Bytes + ?Sized>(table: &Table<'_, B>, function: &Function, rows: &mut Vec<(Range<u64>, Way)>) {
    rows.clear();
    let isa = table.layout.isa;
    let first = table.steps(function).find(|&(_, depth)| depth > 0);
    let frame = first.as_ref().and_then(|(range, _)| table.code.frame(isa, range.start));
    if isa == Isa::Aarch64 && function.writes_sp() && !function.is_root() {
        return aarch64::each_row(table.code, function, table.steps(function), frame, rows);
    }
    let size = first.filter(|_| isa == Isa::Aarch64).map_or(0, |(_, depth)| depth);
    for (range, depth) in table.steps(function) {
        let Frame { saved, points } =
            frame.filter(|_| depth >= 8).unwrap_or(Frame { saved: u64::MAX, points: u64::MAX });
        let mut start = range.start;
        for end in [saved, points, range.end] {
            let end = end.min(range.end);
            if start < end {
                let size = if depth > 0 { size } else { 0 };
                let way = way(function, (depth, size), start >= saved, start >= points, frame.is_some());
                rows.push((start..end, way));
                start = end;
            }
        }
    }
}

/// Returns how to find the caller at this depth of the stack pointer and with this size of the frame (of [`Way::Sp`]). `saved`, `points`: the
/// frame pointer is saved, and points at its saved value.
fn way(function: &Function, (depth, frame): (u64, u64), saved: bool, points: bool, has_frame: bool) -> Way {
    if function.is_root() {
        return Way::Root;
    }
    match (function.writes_sp(), depth) {
        (false, _) => Way::Sp { depth, frame, saved },
        (true, 0) if function.is_morestack() => Way::Entry,
        // Same state as at the entry, both before the frame is set up and after it is removed.
        (true, 0) if has_frame => Way::Sp { depth, frame, saved },
        (true, 1..) if points && function.switches_stacks() => Way::Fp { frame },
        (true, 1..) if has_frame && !points => Way::Sp { depth, frame, saved },
        _ => Way::Unknown,
    }
}

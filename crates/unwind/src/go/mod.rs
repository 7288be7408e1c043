//! Generates call-frame information for Go programs, whose own is not sufficient, from `.gopclntab`, the table that
//! Go's tracebacks use (Go 1.18 and newer, x86_64).
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
//! ([`Bytes`]): in large programs they take a hundred megabytes. Names and lines are not read here. aarch64, whose
//! table is similar, is not supported.

mod code;
pub(crate) mod entries;
mod table;

use alloc::vec::Vec;
use core::ops::Range;

use self::code::{Code, Frame};
use self::entries::{Form, Writer};
use self::table::{Function, Table};

pub use self::table::Layout;
use crate::address::Svma;

/// DWARF expression for the caller's program counter if the frame pointer may be 0 for want of a caller: the
/// result is then 0 too.
pub const CALLER_IF_ANY: &[u8] = &[
    0x76, 0x00, 0x28, 0x04, 0x00, // bra +4 if rbp is not 0
    0x30, 0x2f, 0x03, 0x00, // 0, and to the end
    0x76, 0x08, 0x06, // the word at rbp + 8
];

/// DWARF expression for the caller's program counter before there is a frame: the word at rsp, or 0 if rbp is 0.
pub const CALLER_AT_ENTRY: &[u8] = &[0x76, 0x00, 0x28, 0x04, 0x00, 0x30, 0x2f, 0x03, 0x00, 0x77, 0x00, 0x06];

/// Contents of a section, wherever they are stored.
pub trait Bytes {
    /// Fills `into` with the bytes from `offset` on, and returns how many were read: fewer at the end of the section
    /// or if they cannot be read.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> usize;

    /// Returns the length in bytes.
    fn len(&self) -> u64;

    /// Returns whether the section is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Bytes for [u8] {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let length = rest.len().min(into.len());
        for (to, from) in into.iter_mut().zip(rest) {
            *to = *from;
        }
        length
    }

    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }
}

/// Method to find the caller.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The stack pointer is `depth` bytes below its value at the entry. `saved`: the frame pointer is saved just
    /// above the frame.
    Sp { depth: u64, saved: bool },
    /// Through the frame pointer; if that is 0, the function has no caller.
    Fp,
    /// Stack and frame pointer are as at the entry; if the frame pointer is 0, the function has no caller.
    Entry,
    /// The function has no caller.
    Root,
    /// Unknown.
    Unknown,
}

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
    let mut out = Writer::new(Form::DebugFrame, Vec::new());
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
    let mut out = Writer::new(form, before);
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
    let first = table.steps(function).find(|&(_, depth)| depth > 0);
    let frame = first.and_then(|(range, _)| table.code.frame(range.start));
    for (range, depth) in table.steps(function) {
        let Frame { saved, points } =
            frame.filter(|_| depth >= 8).unwrap_or(Frame { saved: u64::MAX, points: u64::MAX });
        let mut start = range.start;
        for end in [saved, points, range.end] {
            let end = end.min(range.end);
            if start < end {
                let way = way(function, depth, start >= saved, start >= points, frame.is_some());
                rows.push((start..end, way));
                start = end;
            }
        }
    }
}

/// Returns how to find the caller at this depth of the stack pointer. `saved`, `points`: the frame pointer is saved,
/// and points at its saved value.
fn way(function: &Function, depth: u64, saved: bool, points: bool, has_frame: bool) -> Way {
    if function.is_root() {
        return Way::Root;
    }
    match (function.writes_sp(), depth) {
        (false, _) => Way::Sp { depth, saved },
        (true, 0) if function.is_morestack() => Way::Entry,
        // Same state as at the entry, both before the frame is set up and after it is removed.
        (true, 0) if has_frame => Way::Sp { depth, saved },
        (true, 1..) if points && function.switches_stacks() => Way::Fp,
        (true, 1..) if has_frame && !points => Way::Sp { depth, saved },
        _ => Way::Unknown,
    }
}

//! Call-frame information of Go programs, which have none that would do: it is made of the table that Go's own tracebacks use,
//! `.gopclntab` (Go 1.18 and newer, x86_64).
//!
//! For each function that table has the distance of the stack pointer from where it was at the entry, instruction by instruction,
//! and flags (`_func` in runtime/runtime2.go, `FuncFlag` in internal/abi/symtab.go). What comes out is a `.debug_frame` with the
//! same in DWARF's words. (Go's own `.debug_frame` is left out of stripped programs, compressed in others, and says nothing of
//! the frame pointer, of where stacks end, nor of where they are switched.)
//!
//! - `goexit`, `rt0_go` and others that nobody calls are marked in the table: they are roots.
//! - Functions of the runtime that switch from a goroutine's stack to that of the scheduler, or the kernel's, keep the caller's
//!   frame in the frame pointer while they run on the other stack; it is 0 where nobody is waiting for them to return (`mcall`,
//!   `morestack`), and then the stack ends there.
//! - Other functions that set the stack pointer to whatever they like have no rules from there on.
//!
//! The frame pointer is said to be saved where the code that saves it is seen. Table and code are read where they are needed
//! ([`Bytes`]): in large programs they take a hundred megabytes. Not here: names, lines; aarch64, whose table is alike.

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

/// The caller's program counter where the frame pointer may be 0 because there is none: it then is 0 too.
pub const CALLER_IF_ANY: &[u8] = &[
    0x76, 0x00, 0x28, 0x04, 0x00, // bra +4 if rbp is not 0
    0x30, 0x2f, 0x03, 0x00, // 0, and to the end
    0x76, 0x08, 0x06, // the word at rbp + 8
];

/// The same where there is no frame: the word at rsp, unless rbp is 0.
pub const CALLER_AT_ENTRY: &[u8] = &[0x76, 0x00, 0x28, 0x04, 0x00, 0x30, 0x2f, 0x03, 0x00, 0x77, 0x00, 0x06];

/// The content of a section, wherever it is.
pub trait Bytes {
    /// Fills `into` with what is there from `offset` on, and says how many bytes it is: fewer at the end, or where they can't be read.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> usize;

    /// How many bytes there are.
    fn len(&self) -> u64;

    /// Whether there are none.
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

/// How the caller is found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The stack pointer is so far below where it was at the entry; the frame pointer is saved on top of that, or not.
    Sp { depth: u64, saved: bool },
    /// The frame pointer says it, unless it is 0.
    Fp,
    /// Stack and frame pointer are as at the entry, but for a frame pointer of 0 there is no caller.
    Entry,
    /// Nobody calls this.
    Root,
    /// It is not known.
    Unknown,
}

/// So many bytes an entry takes, more or less.
const ENTRY: usize = 56;

/// The bytes of a `.debug_frame` for a Go program. `table` is `.gopclntab`, `text` the section with the code and where it is stated to
/// be loaded. `None`: it is of another version or architecture, damaged, or not about this code.
pub fn debug_frame<B: Bytes + ?Sized>(table: &B, text: Svma, code: &B) -> Option<Vec<u8>> {
    let table = Table::read(table, Code { start: text.0, bytes: code })?;
    Some(rules(&table, Form::DebugFrame, Vec::new()))
}

/// Finds out where the table of a Go program has what, for [`function_frame`]. `None`: as for [`debug_frame`].
pub fn layout<B: Bytes + ?Sized>(table: &B, text: Svma, code: &B) -> Option<Layout> {
    Some(Table::read(table, Code { start: text.0, bytes: code })?.layout)
}

/// Where the function begins that holds an address. `None`: there is none.
pub fn function_start<B: Bytes + ?Sized>(
    layout: Layout,
    (table, text, code): (&B, Svma, &B),
    pc: Svma,
) -> Option<Svma> {
    let table = Table::of(layout, table, Code { start: text.0, bytes: code });
    function(&table, pc).map(|function| Svma(function.range.start))
}

/// Likewise the bytes of a `.debug_frame` for that function alone.
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

/// The function that holds an address. The byte before what signal handlers return to is that one's.
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

/// The same behind the entries of an `.eh_frame`, for programs with code of other languages (cgo): each table has what the other lacks.
/// An index of that section, `.eh_frame_hdr`, does not know of them.
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
    // Beforehand, as else there are two of them at some time; what is not used of it is not memory yet.
    let _ = before.try_reserve_exact(table.count().saturating_mul(ENTRY));
    let mut out = Writer::new(form, before);
    let mut rows = Vec::new();
    let mut end = 0;
    let mut functions = table.each().peekable();
    while let Some(mut function) = functions.next() {
        // None overlaps another, so there are no more rows than bytes of code.
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

/// Writes the rules of a function. `rows` is room for them.
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

/// The rows of a function.
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

/// How the caller is found with the stack pointer at this depth. `saved`, `points`: the frame pointer is saved, and points there.
fn way(function: &Function, depth: u64, saved: bool, points: bool, has_frame: bool) -> Way {
    if function.is_root() {
        return Way::Root;
    }
    match (function.writes_sp(), depth) {
        (false, _) => Way::Sp { depth, saved },
        (true, 0) if function.is_morestack() => Way::Entry,
        // As at the entry, before there is a frame and after it.
        (true, 0) if has_frame => Way::Sp { depth, saved },
        (true, 1..) if points && function.switches_stacks() => Way::Fp,
        (true, 1..) if has_frame && !points => Way::Sp { depth, saved },
        _ => Way::Unknown,
    }
}

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
//! The frame pointer is said to be saved where the code that saves it is seen. Not here: names, lines; aarch64, whose table is alike.

use alloc::vec::Vec;
use core::ops::Range;

use crate::address::Svma;

/// Go 1.18 and 1.20 (internal/abi/symtab.go). The latter put the line of a function before its flags.
const MAGICS: [(u32, usize); 2] = [(0xffff_fff0, 37), (0xffff_fff1, 41)];
const TOP_FRAME: u8 = 1;
const SP_WRITE: u8 = 2;
/// So many functions are tried before it is believed where the code begins.
const TRIED: usize = 2000;
/// So many of them are looked at at every place where it might, the places being multiples of ...
const PROBES: usize = 16;
/// ... half of what Go's linker aligns functions to.
const FUNCTION_ALIGNMENT: usize = 16;
/// At so many of these places at most all are tried.
const MAX_BASES: usize = 8;

/// The caller's program counter where the frame pointer may be 0 because there is none: it then is 0 too.
pub const CALLER_IF_ANY: &[u8] = &[
    0x76, 0x00, 0x28, 0x04, 0x00, // bra +4 if rbp is not 0
    0x30, 0x2f, 0x03, 0x00, // 0, and to the end
    0x76, 0x08, 0x06, // the word at rbp + 8
];

/// The same where there is no frame: the word at rsp, unless rbp is 0.
pub const CALLER_AT_ENTRY: &[u8] = &[0x76, 0x00, 0x28, 0x04, 0x00, 0x30, 0x2f, 0x03, 0x00, 0x77, 0x00, 0x06];

/// The table and what it refers to.
#[derive(Clone, Copy)]
struct Table<'a> {
    bytes: &'a [u8],
    functions: usize,
    names: usize,
    steps: usize,
    list: usize,
    flag: usize,
    /// What addresses count from.
    base: u64,
    code: Code<'a>,
}

/// The text section.
#[derive(Clone, Copy)]
struct Code<'a> {
    start: u64,
    bytes: &'a [u8],
}

/// A function of the table.
struct Function<'a> {
    range: Range<u64>,
    name: &'a [u8],
    flags: u8,
    steps: &'a [u8],
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

/// The bytes of a `.debug_frame` for a Go program. `table` is `.gopclntab`, `text` the section with the code and where it is stated to
/// be loaded. `None`: it is of another version or architecture, damaged, or not about this code.
pub fn debug_frame(table: &[u8], text: Svma, code: &[u8]) -> Option<Vec<u8>> {
    let table = Table::read(table, Code { start: text.0, bytes: code })?;
    Some(rules(&table, Writer::new(Form::DebugFrame, Vec::new())))
}

/// The same behind the entries of an `.eh_frame`, for programs with code of other languages (cgo): each table has what the other lacks.
/// An index of that section, `.eh_frame_hdr`, does not know of them.
pub fn eh_frame(table: &[u8], text: Svma, code: &[u8], mut before: Vec<u8>) -> Result<Vec<u8>, Vec<u8>> {
    let Some(table) = Table::read(table, Code { start: text.0, bytes: code }) else { return Err(before) };
    before.resize(before.len().next_multiple_of(4), 0);
    Ok(rules(&table, Writer::new(Form::EhFrame, before)))
}

/// Writes the rules of all functions.
fn rules(table: &Table<'_>, mut out: Writer) -> Vec<u8> {
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
        out.function(&table.code, &function);
    }
    out.bytes
}

impl<'a> Table<'a> {
    fn read(bytes: &'a [u8], code: Code<'a>) -> Option<Self> {
        let magic = u32_at(bytes, 0)?;
        let &(_, flag) = MAGICS.iter().find(|&&(known, _)| known == magic)?;
        // Instructions of one byte and pointers of eight: x86_64.
        if bytes.get(6..8)? != [1, 8] {
            return None;
        }
        let word = |index: usize| usize::try_from(u64_at(bytes, 8 + 8 * index)?).ok();
        let table = Self {
            bytes,
            functions: word(0)?,
            names: word(3)?,
            steps: word(6)?,
            list: word(7)?,
            flag,
            base: 0,
            code,
        };
        // Go 1.26 and newer leave the beginning of the code to be found elsewhere, as position-independent programs do.
        let stated = u64_at(bytes, 24).filter(|&at| at != 0);
        [stated, Some(code.start)]
            .into_iter()
            .flatten()
            .map(|base| Self { base, ..table })
            .find(Self::fits)
            .or_else(|| table.found_in_code())
    }

    /// With the base at which functions begin as the table says: where a C linker has put other code before Go's, as with cgo, it is
    /// the beginning of no section, and only symbols say it, which may be stripped.
    fn found_in_code(self) -> Option<Self> {
        let begins = |function: Function<'_>| {
            let range = function.steps().find(|&(_, depth)| depth >= 8)?.0;
            Some(range.start)
        };
        // From a base of 0 addresses are distances; the code is as long as it can be.
        let reach = Code { start: 0, bytes: self.code.bytes };
        let distances = Self { base: 0, code: reach, ..self };
        let probes: Vec<u64> = distances.each().take(TRIED).filter_map(begins).take(PROBES).collect();
        let places = (0..self.code.bytes.len() as u64).step_by(FUNCTION_ALIGNMENT);
        let is_likely = |&at: &u64| {
            let missing = |&&probe: &&u64| reach.frame(at.saturating_add(probe)).is_none();
            probes.iter().filter(missing).nth(probes.len() / 5).is_none()
        };
        let likely = places.filter(|at| !probes.is_empty() && is_likely(at)).take(MAX_BASES);
        let mut bases = likely.filter_map(|at| self.code.start.checked_add(at));
        bases.find_map(|base| Some(Self { base, ..self }).filter(Self::fits))
    }

    /// All functions that can be read.
    fn each(&self) -> impl Iterator<Item = Function<'a>> {
        (0..self.functions).map_while(|index| self.entry(index)).flatten()
    }

    /// The function of that number. The outer `None`: the list has ended.
    fn entry(&self, index: usize) -> Option<Option<Function<'a>>> {
        let at = self.list.checked_add(index.checked_mul(8)?)?;
        let (start, end) = (u32_at(self.bytes, at)?, u32_at(self.bytes, at.checked_add(8)?)?);
        let place = self.list.checked_add(u32_at(self.bytes, at.checked_add(4)?)? as usize);
        Some(place.and_then(|at| self.function(at, start, end)))
    }

    fn function(&self, at: usize, start: u32, end: u32) -> Option<Function<'a>> {
        let body = self.bytes.get(at..)?;
        let name = self.names.checked_add(u32_at(body, 4)? as usize)?;
        let name = self.bytes.get(name..)?;
        let length = name.iter().take(256).position(|&byte| byte == 0)?;
        let steps = u32_at(body, 16).filter(|&offset| offset != 0)?;
        let steps = self.bytes.get(self.steps.checked_add(steps as usize)?..)?;
        let address = |offset: u32| self.base.checked_add(offset.into());
        let range = address(start)?..address(end)?;
        let is_there =
            !range.is_empty() && range.end <= self.code.start.checked_add(self.code.bytes.len() as u64)?;
        is_there.then_some(Function { range, name: name.get(..length)?, flags: *body.get(self.flag)?, steps })
    }

    /// Whether functions begin as the table says. Nothing else tells that it is about this code at these addresses.
    fn fits(&self) -> bool {
        let (mut framed, mut seen) = (0, 0);
        for function in self.each().take(TRIED) {
            let Some((at, 8..)) =
                function.steps().map(|(range, depth)| (range.start, depth)).find(|&(_, depth)| depth > 0)
            else {
                continue;
            };
            framed += 1;
            seen += usize::from(self.code.frame(at).is_some());
        }
        framed > 0 && seen * 10 >= framed * 8
    }
}

impl Function<'_> {
    /// Whether signal handlers return to this (`sigreturn__sigaction` in runtime/sys_linux_amd64.s): the stack pointer points at what
    /// the kernel saved. It is not called, so the byte before it counts as well.
    fn returns_from_signal(&self) -> bool {
        self.name.starts_with(b"runtime.sigreturn__sigaction")
    }

    /// Where the stack pointer is how far below its place at the entry.
    fn steps(&self) -> impl Iterator<Item = (Range<u64>, u64)> {
        let (mut rest, mut pc, mut depth) = (self.steps, self.range.start, -1_i64);
        core::iter::from_fn(move || {
            let is_first = pc == self.range.start;
            let change = varint(&mut rest).filter(|&change| change != 0 || is_first)?;
            depth += i64::from(-((change & 1) as i32) ^ (change >> 1) as i32);
            let start = pc;
            pc = pc.checked_add(varint(&mut rest)?.into())?.min(self.range.end);
            (start < pc).then_some((start..pc, u64::try_from(depth).ok()?))
        })
    }
}

impl Function<'_> {
    /// How the caller is found with the stack pointer at this depth. `saved`, `points`: the frame pointer is saved, and points there.
    fn way(&self, depth: u64, saved: bool, points: bool, has_frame: bool) -> Way {
        let is_named = |name: &[u8]| self.name.starts_with(name);
        // A signal handler is called by the kernel, whose frame says what it interrupted.
        if self.flags & TOP_FRAME != 0 && !is_named(b"runtime.sigtramp") {
            return Way::Root;
        }
        match (self.flags & SP_WRITE != 0, depth) {
            (false, _) => Way::Sp { depth, saved },
            (true, 0) if is_named(b"runtime.morestack") => Way::Entry,
            // As at the entry, before there is a frame and after it.
            (true, 0) if has_frame => Way::Sp { depth, saved },
            (true, 1..) if points && (is_named(b"runtime.") || is_named(b"time.now")) => Way::Fp,
            (true, 1..) if has_frame && !points => Way::Sp { depth, saved },
            _ => Way::Unknown,
        }
    }
}

impl Code<'_> {
    fn at(&self, address: u64) -> &[u8] {
        let offset = address.checked_sub(self.start).and_then(|offset| usize::try_from(offset).ok());
        offset.and_then(|offset| self.bytes.get(offset..)).unwrap_or_default()
    }

    /// What makes a frame where the stack pointer has just moved, to `at`.
    fn frame(&self, at: u64) -> Option<Frame> {
        let frame = |saved: u64, points: u64| {
            Some(Frame { saved: at.checked_add(saved)?, points: at.checked_add(points)? })
        };
        // push rbp; mov rbp, rsp: Go 1.21 and newer.
        if self.at(at.checked_sub(1)?).starts_with(&[0x55, 0x48, 0x89, 0xe5]) {
            return frame(0, 3);
        }
        // mov [rsp + n], rbp; lea rbp, [rsp + n].
        match *self.at(at) {
            [0x48, 0x89, 0x6c, 0x24, n, 0x48, 0x8d, 0x6c, 0x24, same, ..] if n == same => frame(5, 10),
            [0x48, 0x89, 0xac, 0x24, a, b, c, d, 0x48, 0x8d, 0xac, 0x24, e, f, g, h, ..]
                if [a, b, c, d] == [e, f, g, h] =>
            {
                frame(8, 16)
            }
            _ => None,
        }
    }
}

/// From where on the frame pointer is saved, and from where on it points to what was saved.
#[derive(Clone, Copy)]
struct Frame {
    saved: u64,
    points: u64,
}

/// Offsets of rbp, rbx, r12 to r15 and the program counter in `struct ucontext`, and the stack pointer's.
const SAVED: [(u8, u8); 7] = [(6, 120), (3, 128), (12, 72), (13, 80), (14, 88), (15, 96), (16, 168)];
const SAVED_SP: u8 = 160;

/// The section that entries are for: they differ in how an entry names the one that it refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// By where that is in the section.
    DebugFrame,
    /// By how far back that is.
    EhFrame,
}

/// Writes entries.
struct Writer {
    form: Form,
    bytes: Vec<u8>,
    /// Where the entry is that usual ones refer to.
    common: usize,
    /// Where the one for what signal handlers return to is.
    signal: usize,
}

impl Writer {
    /// With the entries that all others refer to: at first the CFA is rsp + 8, and the return address is below it.
    fn new(form: Form, bytes: Vec<u8>) -> Self {
        let mut out = Self { form, common: bytes.len(), bytes, signal: 0 };
        // Version 1, no augmentation, factors 1 and -8, return addresses in column 16.
        out.entry(None, &[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1]);
        out.signal = out.bytes.len();
        // The same with the augmentation S, and all registers relative to rsp; the CFA is what is read there.
        let [low, high] = [SAVED_SP | 0x80, SAVED_SP >> 7];
        let mut body = [&[1, b'S', 0, 1, 0x78, 16, 0x0f, 4, 0x77, low, high, 0x06][..]].concat();
        for (register, offset) in SAVED {
            let (low, high) = (offset & 0x7f | 0x80, offset >> 7);
            body.extend([0x10, register, 3, 0x77, low, high]);
        }
        out.entry(None, &body);
        out
    }

    fn signal_return(&mut self, function: &Function<'_>) {
        let Some(start) = function.range.start.checked_sub(1) else { return };
        let body = [start.to_le_bytes(), (function.range.end - start).to_le_bytes()].concat();
        self.entry(Some(self.signal), &body);
    }

    /// An entry that refers to the one at `common`, or is one to refer to.
    fn entry(&mut self, common: Option<usize>, body: &[u8]) {
        let length = (body.len() + 4).next_multiple_of(4);
        self.bytes.extend((length as u32).to_le_bytes());
        let id = match (self.form, common) {
            (Form::DebugFrame, None) => u32::MAX,
            (Form::DebugFrame, Some(common)) => common as u32,
            (Form::EhFrame, None) => 0,
            (Form::EhFrame, Some(common)) => (self.bytes.len() - common) as u32,
        };
        self.bytes.extend(id.to_le_bytes());
        self.bytes.extend(body);
        // nop
        self.bytes.resize(self.bytes.len() + length - 4 - body.len(), 0);
    }

    fn function(&mut self, code: &Code<'_>, function: &Function<'_>) {
        if function.returns_from_signal() {
            return self.signal_return(function);
        }
        let frame =
            function.steps().find(|&(_, depth)| depth > 0).and_then(|(range, _)| code.frame(range.start));
        let mut rows: Vec<(Range<u64>, Way)> = Vec::new();
        for (range, depth) in function.steps() {
            let Frame { saved, points } =
                frame.filter(|_| depth >= 8).unwrap_or(Frame { saved: u64::MAX, points: u64::MAX });
            let mut start = range.start;
            for end in [saved, points, range.end] {
                let end = end.min(range.end);
                if start < end {
                    rows.push((
                        start..end,
                        function.way(depth, start >= saved, start >= points, frame.is_some()),
                    ));
                    start = end;
                }
            }
        }
        rows.chunk_by(|(_, a), (_, b)| (*a == Way::Unknown) == (*b == Way::Unknown))
            .for_each(|rows| self.rows(rows));
    }

    /// An entry of rows that follow each other.
    fn rows(&mut self, rows: &[(Range<u64>, Way)]) {
        let (Some((first, way)), Some((last, _))) = (rows.first(), rows.last()) else { return };
        if *way == Way::Unknown {
            return;
        }
        let mut body = Vec::new();
        body.extend(first.start.to_le_bytes());
        body.extend((last.end - first.start).to_le_bytes());
        let mut at = first.start;
        for (range, way) in rows {
            let ahead = range.start - at;
            if ahead > 0 {
                body.push(0x04);
                body.extend((ahead as u32).to_le_bytes());
            }
            at = range.start;
            say(*way, &mut body);
        }
        self.entry(Some(self.common), &body);
    }
}

/// The instructions of a row: all of it, whatever came before. Registers are 6, rbp, 7, rsp, and 16, the return address.
fn say(way: Way, body: &mut Vec<u8>) {
    let mut cfa = |register: u8, offset: u64| {
        body.extend([0x0c, register]);
        uleb(offset, body);
    };
    match way {
        Way::Sp { depth, saved } => {
            cfa(7, depth.saturating_add(8));
            // offset 16 and 6, or the same value of 6.
            body.extend([0x90, 1]);
            body.extend(if saved { [0x86, 2] } else { [0x08, 6] });
        }
        Way::Fp => {
            cfa(6, 16);
            by_expression(CALLER_IF_ANY, body);
            body.extend([0x86, 2]);
        }
        Way::Entry => {
            cfa(7, 8);
            by_expression(CALLER_AT_ENTRY, body);
            body.extend([0x08, 6]);
        }
        Way::Root => body.extend([0x07, 16]),
        Way::Unknown => {}
    }
}

/// The return address is what this says.
fn by_expression(expression: &[u8], body: &mut Vec<u8>) {
    body.extend([0x16, 16, expression.len() as u8]);
    body.extend(expression);
}

fn uleb(mut value: u64, body: &mut Vec<u8>) {
    while value >= 0x80 {
        body.push(value as u8 | 0x80);
        value >>= 7;
    }
    body.push(value as u8);
}

/// The next number of a table of steps.
fn varint(rest: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

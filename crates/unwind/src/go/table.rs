//! Parser of `.gopclntab`: functions, and the depth of the stack pointer in them.
//!
//! The table is untrusted input: damage only leads to missing functions.

use alloc::vec::Vec;
use core::ops::Range;

use super::bytes::Bytes;
use super::code::Code;
use crate::isa::Isa;

/// Magic numbers of Go 1.18 and 1.20, each with the offset of a function's flags (internal/abi/symtab.go). Go 1.20
/// put the function's line before its flags.
const MAGICS: [(u32, u64); 2] = [(0xffff_fff0, 37), (0xffff_fff1, 41)];
const TOP_FRAME: u8 = 1;
const SP_WRITE: u8 = 2;
/// Number of functions that are checked before a base address is accepted.
const TRIED: usize = 2000;
/// Number of functions that are checked at each candidate base address.
const PROBES: usize = 16;
/// Distance between candidate base addresses: half the alignment of functions in Go's linker.
const FUNCTION_ALIGNMENT: usize = 16;
/// Maximum number of candidates for which all functions are checked.
const MAX_BASES: usize = 8;
/// Number of bytes read of a name: the names that matter are shorter.
const NAME: usize = 32;
/// Number of bytes of a function's steps read at once.
const STEPS: usize = 32;

/// Locations of the table's parts in a file. Finding them takes a look at thousands of functions.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    functions: u64,
    names: u64,
    steps: u64,
    list: u64,
    flag: u64,
    /// Address that function addresses are relative to.
    base: u64,
    /// Architecture of the code.
    pub isa: Isa,
}

/// The table and the code that it describes.
pub(super) struct Table<'a, B: ?Sized> {
    bytes: &'a B,
    pub(super) layout: Layout,
    pub(super) code: Code<'a, B>,
}

impl<B: ?Sized> Clone for Table<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: ?Sized> Copy for Table<'_, B> {}

/// A function of the table.
pub(super) struct Function {
    pub(super) range: Range<u64>,
    name: [u8; NAME],
    flags: u8,
    steps: u64,
}

impl<'a, B: Bytes + ?Sized> Table<'a, B> {
    pub(super) fn read(bytes: &'a B, code: Code<'a, B>) -> Option<Self> {
        let magic = u32_at(bytes, 0)?;
        let &(_, flag) = MAGICS.iter().find(|&&(known, _)| known == magic)?;
        // Instruction alignment and pointer size.
        let isa = match array(bytes, 6)? {
            [1, 8] => Isa::X86_64,
            [4, 8] => Isa::Aarch64,
            _ => return None,
        };
        let word = |index: u64| u64_at(bytes, 8 + 8 * index);
        let (functions, names, steps, list) = (word(0)?, word(3)?, word(6)?, word(7)?);
        let table =
            Self { bytes, layout: Layout { functions, names, steps, list, flag, base: 0, isa }, code };
        // Go 1.26 and newer do not store the start of the code, as position-independent programs do not either.
        let stated = u64_at(bytes, 24).filter(|&at| at != 0);
        [stated, Some(code.start)]
            .into_iter()
            .flatten()
            .map(|base| table.with_base(base))
            .find(Self::fits)
            .or_else(|| table.found_in_code())
    }

    /// Creates a table whose layout is already known.
    pub(super) fn of(layout: Layout, bytes: &'a B, code: Code<'a, B>) -> Self {
        Self { bytes, layout, code }
    }

    fn with_base(self, base: u64) -> Self {
        Self { layout: Layout { base, ..self.layout }, ..self }
    }

    /// Returns the table with the base at which functions begin as the table describes. With cgo, a C linker puts
    /// other code before Go's, so the base is not the start of a section, and only symbols, which may be stripped,
    /// give it.
    fn found_in_code(self) -> Option<Self> {
        let begins = |function: Function| {
            let range = self.steps(&function).find(|&(_, depth)| depth >= 8)?.0;
            Some(range.start)
        };
        // With base 0, addresses are distances. Allow them the whole length of the code.
        let reach = Code { start: 0, bytes: self.code.bytes };
        let distances = Self { code: reach, ..self.with_base(0) };
        let probes: Vec<u64> = distances.each().take(TRIED).filter_map(begins).take(PROBES).collect();
        let places = (0..self.code.bytes.len()).step_by(FUNCTION_ALIGNMENT);
        let is_likely = |&at: &u64| {
            let missing = |&&probe: &&u64| reach.frame(self.layout.isa, at.saturating_add(probe)).is_none();
            probes.iter().filter(missing).nth(probes.len() / 5).is_none()
        };
        let likely = places.filter(|at| !probes.is_empty() && is_likely(at)).take(MAX_BASES);
        let mut bases = likely.filter_map(|at| self.code.start.checked_add(at));
        bases.find_map(|base| Some(self.with_base(base)).filter(Self::fits))
    }

    /// Returns an upper bound on the number of functions.
    pub(super) fn count(&self) -> usize {
        usize::try_from(self.layout.functions.min(self.bytes.len() / 8)).unwrap_or_default()
    }

    /// Iterates over all functions that can be read.
    pub(super) fn each(&self) -> impl Iterator<Item = Function> {
        (0..self.layout.functions).map_while(|index| self.entry(index)).flatten()
    }

    /// Finds the function that holds an address, and the next function. The list is sorted by address.
    pub(super) fn find(&self, pc: u64) -> Option<(Function, Option<Function>)> {
        let offset = pc.checked_sub(self.layout.base)?;
        let start = |index: u64| u32_at(self.bytes, self.layout.list.checked_add(index.checked_mul(8)?)?);
        // Invariant: the function is in `first..last`, and the one at `first` begins at or before the address.
        let (mut first, mut last) = (0, self.layout.functions.min(self.bytes.len() / 8));
        while last.saturating_sub(first) > 1 {
            let middle = first + (last - first) / 2;
            match u64::from(start(middle)?) <= offset {
                true => first = middle,
                false => last = middle,
            }
        }
        let function = self.entry(first)??;
        function.range.contains(&pc).then(|| (function, self.entry(first + 1).flatten()))
    }

    /// Returns the function with that number. The outer `None` means the end of the list.
    fn entry(&self, index: u64) -> Option<Option<Function>> {
        let at = self.layout.list.checked_add(index.checked_mul(8)?)?;
        let entry: [u8; 12] = array(self.bytes, at)?;
        let [start, place, end] = [u32_at(&entry[..], 0)?, u32_at(&entry[..], 4)?, u32_at(&entry[..], 8)?];
        let place = self.layout.list.checked_add(place.into());
        Some(place.and_then(|at| self.function(at, start, end)))
    }

    fn function(&self, at: u64, start: u32, end: u32) -> Option<Function> {
        let body: [u8; 20] = array(self.bytes, at)?;
        let [flags] = array(self.bytes, at.checked_add(self.layout.flag)?)?;
        let mut name = [0; NAME];
        self.bytes.read_at(self.layout.names.checked_add(u32_at(&body[..], 4)?.into())?, &mut name);
        let steps = u32_at(&body[..], 16).filter(|&offset| offset != 0)?;
        let steps = self.layout.steps.checked_add(steps.into())?;
        let address = |offset: u32| self.layout.base.checked_add(offset.into());
        let range = address(start)?..address(end)?;
        let is_there = !range.is_empty() && range.end <= self.code.end()?;
        is_there.then_some(Function { range, name, flags, steps })
    }

    /// Returns whether functions begin as the table describes. That is the only evidence that the table is about this
    /// code at these addresses.
    fn fits(&self) -> bool {
        let (mut framed, mut seen) = (0, 0);
        for function in self.each().take(TRIED) {
            let steps = self.steps(&function).map(|(range, depth)| (range.start, depth));
            let Some((at, 8..)) = { steps }.find(|&(_, depth)| depth > 0) else { continue };
            framed += 1;
            seen += usize::from(self.code.frame(self.layout.isa, at).is_some());
        }
        framed > 0 && seen * 10 >= framed * 8
    }

    /// Iterates over the address ranges of a function, each with the depth of the stack pointer below its value at
    /// the entry.
    pub(super) fn steps(&self, function: &Function) -> impl Iterator<Item = (Range<u64>, u64)> + use<'a, B> {
        let Range { start: begin, end } = function.range;
        let (mut pc, mut depth) = (begin, -1_i64);
        let unit = if self.layout.isa == Isa::Aarch64 { 4 } else { 1 };
        let mut rest = Varints { bytes: self.bytes, next: function.steps, window: [0; STEPS], read: 0..0 };
        core::iter::from_fn(move || {
            let change = rest.next().filter(|&change| change != 0 || pc == begin)?;
            depth += i64::from(-((change & 1) as i32) ^ (change >> 1) as i32);
            let start = pc;
            pc = pc.checked_add(u64::from(rest.next()?) * unit)?.min(end);
            (start < pc).then_some((start..pc, u64::try_from(depth).ok()?))
        })
    }
}

impl Function {
    fn is_named(&self, name: &[u8]) -> bool {
        self.name.starts_with(name)
    }

    /// Returns whether this is the function that signal handlers return to (`sigreturn__sigaction` in
    /// runtime/sys_linux_amd64.s). The stack pointer then points at the registers that the kernel saved. The function
    /// is not called, so the byte before it belongs to it as well.
    pub(super) fn returns_from_signal(&self) -> bool {
        self.is_named(b"runtime.sigreturn__sigaction")
    }

    /// Returns whether the function has no caller. A signal handler does not count: the kernel calls it, with a frame
    /// that holds the interrupted registers.
    pub(super) fn is_root(&self) -> bool {
        self.flags & TOP_FRAME != 0 && !self.is_named(b"runtime.sigtramp")
    }

    /// Returns whether the function sets the stack pointer to an arbitrary value.
    pub(super) fn writes_sp(&self) -> bool {
        self.flags & SP_WRITE != 0
    }

    /// Returns whether the function allocates a larger stack for a goroutine.
    pub(super) fn is_morestack(&self) -> bool {
        self.is_named(b"runtime.morestack")
    }

    /// Returns whether the function may keep the caller's frame in the frame pointer while on another stack.
    pub(super) fn switches_stacks(&self) -> bool {
        self.is_named(b"runtime.") || self.is_named(b"time.now")
    }
}

/// Iterator over consecutive variable-length numbers.
struct Varints<'a, B: ?Sized> {
    bytes: &'a B,
    /// Offset of the end of the window.
    next: u64,
    window: [u8; STEPS],
    /// Unread part of the window.
    read: Range<usize>,
}

impl<B: Bytes + ?Sized> Varints<'_, B> {
    fn byte(&mut self) -> Option<u8> {
        if self.read.is_empty() {
            self.read = 0..self.bytes.read_at(self.next, &mut self.window);
            self.next = self.next.checked_add(self.read.end as u64)?;
        }
        self.window.get(self.read.next()?).copied()
    }

    fn next(&mut self) -> Option<u32> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            value |= u32::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

fn array<const N: usize>(bytes: &(impl Bytes + ?Sized), at: u64) -> Option<[u8; N]> {
    let mut found = [0; N];
    (bytes.read_at(at, &mut found) == N).then_some(found)
}

fn u32_at(bytes: &(impl Bytes + ?Sized), at: u64) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &(impl Bytes + ?Sized), at: u64) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

//! Code that V8 has compiled: by Sparkplug, Maglev or TurboFan. The object of its code is found from an address in its instructions, backwards, so that it is
//! the code that runs, and not the newest of its function.

use crate::compiled::CompiledCode;
use crate::function::identity;
use crate::{CodeId, ScriptPlace, Unreadable};

use super::heap::{Heap, Tagged};
use super::layout::{CodeLayout, Start};
use super::positions::{self, Entry, Place};
use super::shared;

/// A function that is gone: nothing is at this address.
const GONE: CodeId = CodeId { at: 0, identity: 0 };
/// Instructions begin at multiples of this.
const ALIGNMENT: u64 = 32;
/// Bytes before the instructions that may lead to the code.
const HEADER: usize = 64;
/// Most bytes of instructions that are searched through.
const MAX_CODE: u64 = 4 << 20;
/// Most words that look like objects on the way.
const MAX_CANDIDATES: u32 = 1 << 14;
/// Bytes that are read at once, if there are as many.
const BLOCKS: [u64; 2] = [1 << 16, 1 << 12];
/// Most functions in one piece of code.
const MAX_FUNCTIONS: usize = 1 << 16;
/// Most calls that are inlined into each other.
const MAX_DEPTH: usize = 64;
/// Bytes of an inlined call in the data for deoptimizing.
const CALL_BYTES: usize = 16;

/// The code object of instructions.
struct Found {
    code: Tagged,
    start: u64,
    size: u32,
}

impl Found {
    /// The identity of a code object: its address, and hashed the addresses of its tables and of its instructions.
    fn id(&self, heap: Heap<'_>) -> Result<CodeId, Unreadable> {
        let at = self.code.address().ok_or(Unreadable(self.code.0))?;
        let layout = &heap.layout.code;
        let words = [
            heap.field(self.code, layout.deoptimization)?.0,
            heap.field(self.code, layout.positions)?.0,
            self.start,
            self.size.into(),
        ];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Ok(CodeId { at, identity: identity(&bytes, &[!0; 4]) })
    }
}

/// Reads the compiled code at an address.
pub(super) fn read(heap: Heap<'_>, at: u64) -> Result<CompiledCode, Unreadable> {
    let found = find(heap, at)?;
    let range = found.start..found.start.saturating_add(found.size.into());
    let layout = &heap.layout.code;
    let entries = heap.positions(heap.field(found.code, layout.positions)?)?;
    let optimized = Inlined::read(heap, heap.field(found.code, layout.deoptimization)?)?;
    let places = entries.into_iter().map(|Entry { offset, place }| (offset, optimized.positions(place)));
    Ok(CompiledCode::new(range, found.id(heap)?, places))
}

/// Whether compiled code is still where it was.
pub(super) fn has(heap: Heap<'_>, code: &CompiledCode) -> bool {
    let found = found(heap, &heap.layout.code, Tagged(code.id().at | 1));
    found.is_some_and(|found| found.id(heap) == Ok(code.id()) && found.start == code.range().start)
}

/// Searches for the code whose instructions contain an address.
fn find(heap: Heap<'_>, at: u64) -> Result<Found, Unreadable> {
    let mut block = Block { heap, start: 0, bytes: Vec::new(), candidates: MAX_CANDIDATES };
    let mut start = at - at % ALIGNMENT;
    let last = at.saturating_sub(MAX_CODE);
    while start > last {
        if let Some(found) = block.code_of(start)?
            && at - start < found.size.into()
        {
            return Ok(found);
        }
        start -= ALIGNMENT;
    }
    Err(Unreadable(at))
}

/// Memory before the address that is searched for.
struct Block<'m> {
    heap: Heap<'m>,
    start: u64,
    bytes: Vec<u8>,
    /// Number of words that may still be looked at as objects.
    candidates: u32,
}

impl Block<'_> {
    /// The code whose instructions begin at an address.
    fn code_of(&mut self, start: u64) -> Result<Option<Found>, Unreadable> {
        let layout = &self.heap.layout.code;
        let is_start = |code: &Found| code.start == start;
        if let Start::Inside(offset) = layout.start {
            let object = Tagged(start.wrapping_sub(offset.into()) | 1);
            let map = Tagged(self.word(object.0 & !1)?);
            let is_code = is_likely(map) && self.is_code(object)?;
            return Ok(is_code.then(|| found(self.heap, layout, object)).flatten().filter(is_start));
        }
        for before in (8..=HEADER as u64).step_by(8) {
            let word = Tagged(self.word(start.wrapping_sub(before))?);
            if is_likely(word) && self.is_code(word)? {
                return Ok(found(self.heap, layout, word).filter(is_start));
            }
        }
        Ok(None)
    }

    /// Whether a word that looks like it leads to a code object.
    fn is_code(&mut self, word: Tagged) -> Result<bool, Unreadable> {
        self.candidates = self.candidates.checked_sub(1).ok_or(Unreadable(word.0))?;
        Ok(self.heap.is(word, self.heap.layout.code.kind))
    }

    /// The word at an address. Reads the memory before the address in blocks, as the search leads there.
    fn word(&mut self, at: u64) -> Result<u64, Unreadable> {
        let is_inside = |start: u64, bytes: &[u8]| {
            at.checked_sub(start).is_some_and(|from| from.saturating_add(8) <= bytes.len() as u64)
        };
        if !is_inside(self.start, &self.bytes) {
            // The memory before the code may not be mapped.
            let is_read = BLOCKS.iter().any(|&size| self.read_before(at.saturating_add(8), size));
            if !is_read {
                self.bytes.clear();
                return Err(Unreadable(at));
            }
        }
        let from = (at - self.start) as usize;
        let word = self.bytes.get(from..).and_then(<[u8]>::first_chunk);
        word.map(|word| u64::from_le_bytes(*word)).ok_or(Unreadable(at))
    }

    /// Reads the memory that ends with an address, from a multiple of the size on.
    fn read_before(&mut self, end: u64, size: u64) -> bool {
        let last = end.saturating_sub(1);
        self.start = last - last % size;
        self.bytes = vec![0; (end - self.start).max(8) as usize];
        self.start = end - self.bytes.len() as u64;
        self.heap.memory.read(self.start, &mut self.bytes)
    }
}

/// Whether a word looks like one that leads to an object of a process.
fn is_likely(word: Tagged) -> bool {
    word.0 & 3 == 1 && word.0 >> 48 == 0 && word.0 >> 16 != 0
}

fn found(heap: Heap<'_>, layout: &CodeLayout, code: Tagged) -> Option<Found> {
    let start = match layout.start {
        Start::Inside(offset) => code.address()?.wrapping_add(offset.into()),
        Start::At(offset) => heap.field(code, offset).ok()?.0,
    };
    let size = heap.field(code, layout.size).ok()?.0 as u32;
    Some(Found { code, start, size })
}

/// The functions of optimized code: its own, and those inlined.
struct Inlined {
    own: CodeId,
    calls: Vec<Call>,
}

/// A call that was inlined.
struct Call {
    /// The place of the call.
    place: Place,
    function: Option<CodeId>,
}

impl Inlined {
    /// Reads the data for deoptimizing. Fails if there is none, as for code without optimizations.
    fn read(heap: Heap<'_>, data: Tagged) -> Result<Inlined, Unreadable> {
        let layout = &heap.layout.code;
        // The function is behind the inlined calls in old versions, before them in new ones: it is the only one in the array itself.
        let near = layout.inlinings.saturating_sub(1);
        let own = shared_of(heap, heap.element(data, near)?).ok_or(Unreadable(data.0))?;
        let literals = heap.element(data, layout.literals)?;
        let calls = heap.bytes(heap.element(data, layout.inlinings)?, MAX_FUNCTIONS * CALL_BYTES)?;
        let call = |bytes: &[u8; CALL_BYTES]| {
            let (place, function) =
                (bytes.first_chunk().copied(), bytes.get(8..).and_then(<[u8]>::first_chunk));
            let function = function.and_then(|index| u32::try_from(i32::from_le_bytes(*index)).ok());
            let function = function.and_then(|index| heap.element(literals, index).ok());
            Call {
                place: Place::of(i64::from_le_bytes(place.unwrap_or_default())),
                function: function.and_then(|function| shared_of(heap, function)),
            }
        };
        Ok(Inlined { own, calls: calls.as_chunks().0.iter().map(call).collect() })
    }

    /// The positions at a place, innermost first. Empty if it is not known.
    fn positions(&self, mut place: Place) -> Vec<ScriptPlace> {
        let mut all = Vec::new();
        for _ in 0..MAX_DEPTH {
            let Some(index) = place.call else {
                all.push(position(self.own, place.at));
                return all;
            };
            let Some(call) = self.calls.get(index as usize) else { break };
            all.push(position(call.function.unwrap_or(GONE), place.at));
            place = call.place;
        }
        Vec::new()
    }
}

/// The function that a literal is, or wraps.
fn shared_of(heap: Heap<'_>, literal: Tagged) -> Option<CodeId> {
    let kind = heap.kind(literal).ok()?;
    let shared = if Some(kind) == heap.layout.shared.wrapper { heap.slot(literal, 0).ok()? } else { literal };
    heap.is(shared, heap.layout.shared.kind).then(|| shared::id(heap, shared).ok()).flatten()
}

fn position(code: CodeId, at: Option<u32>) -> ScriptPlace {
    ScriptPlace { code, offset: positions::in_text(at), is_entry: false, is_generator: false }
}

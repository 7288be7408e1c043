//! The code heaps of a process: which blob an address is in.
//!
//! A heap is divided into segments of one size. A byte for each says how many segments to go back to where its blob begins, in steps if they are many.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::memory::word_in;
use crate::{CodeId, Memory, Unreadable};

use super::blob::{Blob, Kind};
use super::layout::Layout;

/// Most heaps; there are three.
const MAX_HEAPS: u32 = 16;
/// Bytes of a heap's structure that are read.
const HEAP_BYTES: usize = 512;
/// A segment that is free.
const FREE: u8 = 0xff;
/// Bytes of the map of segments that are read at once.
const MAP_BYTES: u64 = 4096;
/// Most steps back to the beginning of a blob: the largest heap has 2 GiB.
const MAX_STEPS: usize = 1 << 17;
/// Most blobs that are kept.
const MAX_KEPT: usize = 1 << 16;

/// A heap.
#[derive(Clone, Debug)]
struct Heap {
    addresses: Range<u64>,
    segments: u64,
    segment_bits: u32,
}

/// The code of a process, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct CodeHeaps {
    heaps: Vec<Heap>,
    /// Blobs by their address.
    blobs: BTreeMap<u64, Blob>,
    /// Functions of compiled code, by its blob's address.
    functions: HashMap<u64, CodeId>,
    /// Code of the interpreter that is entered by calls.
    pub(super) entries: Option<Vec<Range<u64>>>,
    /// Methods that were interpreted, by the address of their `Method`.
    methods: HashMap<u64, CodeId>,
}

impl CodeHeaps {
    /// The blob that contains an address. `None`: no heap does.
    pub(super) fn blob(
        &mut self,
        memory: &dyn Memory,
        (layout, bias): (&Layout, u64),
        at: u64,
    ) -> Result<Option<&Blob>, Unreadable> {
        if self.heaps.is_empty() {
            self.heaps = heaps(memory, layout, bias)?;
        }
        let Some(heap) = self.heaps.iter().find(|heap| heap.addresses.contains(&at)) else { return Ok(None) };
        let known = self.blobs.range(..=at).next_back().map(|(_, blob)| blob);
        let known = known.filter(|blob| blob.code.contains(&at));
        if let Some(known) =
            known.filter(|known| !known.may_be_freed() || known.is_still_there(memory, layout))
        {
            return Ok(self.blobs.get(&known.at));
        }
        let blob = Blob::read(memory, layout, heap.start_of_block(memory, at)?)?;
        if !blob.code.contains(&at) {
            return Err(Unreadable(at));
        }
        self.keep(blob.clone());
        Ok(self.blobs.get(&blob.at))
    }

    /// Keeps a blob in the place of those that were in its memory.
    fn keep(&mut self, blob: Blob) {
        if self.blobs.len() >= MAX_KEPT {
            self.blobs.clear();
            self.functions.clear();
        }
        let old: Vec<u64> = self.blobs.range(blob.at..blob.code.end).map(|(&at, _)| at).collect();
        for at in old.into_iter().chain([blob.at]) {
            self.blobs.remove(&at);
            self.functions.remove(&at);
        }
        self.blobs.insert(blob.at, blob);
    }

    /// One heap with these addresses.
    #[cfg(test)]
    pub(super) fn span(&mut self, addresses: Range<u64>, segment_bits: u32) -> &mut CodeHeaps {
        self.heaps = vec![Heap { addresses, segments: 0, segment_bits }];
        self
    }

    /// The address of its map of segments.
    #[cfg(test)]
    pub(super) fn segments_at(&mut self, at: u64) {
        self.heaps.iter_mut().for_each(|heap| heap.segments = at);
    }

    /// Whether an address is in one of the heaps.
    pub(super) fn contain(&self, at: u64) -> bool {
        self.heaps.iter().any(|heap| heap.addresses.contains(&at))
    }

    /// The function of a compiled blob; `read` reads it at the first call.
    pub(super) fn function(
        &mut self,
        start: u64,
        read: impl FnOnce() -> Result<CodeId, Unreadable>,
    ) -> Result<CodeId, Unreadable> {
        if let Some(&known) = self.functions.get(&start) {
            return Ok(known);
        }
        let function = read()?;
        self.functions.insert(start, function);
        Ok(function)
    }

    /// An interpreted method, which `read` reads; as it was last seen, if the process is gone.
    pub(super) fn method(
        &mut self,
        at: u64,
        read: impl FnOnce() -> Result<CodeId, Unreadable>,
    ) -> Result<CodeId, Unreadable> {
        match read() {
            Ok(method) => {
                if self.methods.len() >= MAX_KEPT {
                    self.methods.clear();
                }
                self.methods.insert(at, method);
                Ok(method)
            }
            Err(error) => self.methods.get(&at).copied().ok_or(error),
        }
    }

    /// Whether an address is known to be in code of this kind.
    pub(super) fn is_in(&mut self, memory: &dyn Memory, of: (&Layout, u64), at: u64, kind: Kind) -> bool {
        self.blob(memory, of, at).is_ok_and(|blob| blob.is_some_and(|blob| blob.kind == kind))
    }
}

impl Heap {
    /// Address of the block that contains an address.
    fn start_of_block(&self, memory: &dyn Memory, at: u64) -> Result<u64, Unreadable> {
        let unreadable = Unreadable(at);
        let mut segment = (at - self.addresses.start) >> self.segment_bits;
        let mut part: (u64, Vec<u8>) = (0, Vec::new());
        for _ in 0..MAX_STEPS {
            let is_read = segment.checked_sub(part.0).is_some_and(|index| index < part.1.len() as u64);
            if !is_read {
                // The bytes before it: the steps lead there.
                let first = (segment + 1).saturating_sub(MAP_BYTES);
                let mut bytes = vec![0; (segment + 1 - first).min(MAP_BYTES) as usize];
                if !memory.read(self.segments.wrapping_add(first), &mut bytes) {
                    return Err(unreadable);
                }
                part = (first, bytes);
            }
            let index = usize::try_from(segment - part.0).map_err(|_| unreadable)?;
            match part.1.get(index).copied() {
                Some(0) => return Ok(self.addresses.start + (segment << self.segment_bits)),
                Some(FREE) | None => return Err(unreadable),
                Some(back) => segment = segment.checked_sub(back.into()).ok_or(unreadable)?,
            }
        }
        Err(unreadable)
    }
}

/// Reads the heaps of a process.
fn heaps(memory: &dyn Memory, layout: &Layout, bias: u64) -> Result<Vec<Heap>, Unreadable> {
    let array = memory.word(layout.heaps.wrapping_add(bias))?;
    let count = memory.word(array.wrapping_add(layout.array_length.into()))? as u32;
    let data = memory.word(array.wrapping_add(layout.array_data.into()))?;
    if count == 0 || count > MAX_HEAPS {
        return Err(Unreadable(array));
    }
    (0..count)
        .map(|index| heap(memory, layout, memory.word(data.wrapping_add(8 * u64::from(index)))?))
        .collect()
}

fn heap(memory: &dyn Memory, layout: &Layout, at: u64) -> Result<Heap, Unreadable> {
    let mut bytes = [0; HEAP_BYTES];
    let layout = &layout.heap;
    let fields = [layout.low, layout.high, layout.segments, layout.segment_bits];
    let length = fields.into_iter().max().map_or(0, |last| last as usize + 8).min(HEAP_BYTES);
    let Some(head) = bytes.get_mut(..length).filter(|_| at != 0) else { return Err(Unreadable(at)) };
    if !memory.read(at, head) {
        return Err(Unreadable(at));
    }
    let [low, high, segments, segment_bits] = fields.map(|field| word_in(&bytes, field));
    let segment_bits = segment_bits as u32;
    if low == 0 || low >= high || !(4..=20).contains(&segment_bits) {
        return Err(Unreadable(at));
    }
    Ok(Heap { addresses: low..high, segments, segment_bits })
}

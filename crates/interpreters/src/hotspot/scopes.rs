//! Scopes of compiled code: which method, and which calls inlined into it, an instruction was made from.
//!
//! A table leads from places in the code, those where a thread may be stopped or return to, to the innermost scope, and each scope to the one around it.
//! Instructions before such a place count as its.

use crate::compiled::CompiledCode;
use crate::function::UNKNOWN;
use crate::memory::word_in;
use crate::{CodeId, Memory, ScriptPlace, Unreadable};

use std::collections::HashMap;

use super::blob::{Blob, Kind};
use super::layout::{Layout, Metadata, Scopes};
use super::methods;
use super::numbers::Numbers;

/// Bytes of an entry of the table: a place in the code, the offset of its scope, and two others.
const ENTRY: usize = 16;
/// Most bytes of the table.
const MAX_TABLE: u64 = 4 << 20;
/// Most bytes of scopes.
const MAX_SCOPES: u64 = 8 << 20;
/// Most scopes around each other.
const MAX_DEPTH: usize = 64;
/// Most bytes of a blob's description.
const MAX_HEAD: usize = 1 << 10;

/// Tables of a piece of code.
struct Tables {
    table: Vec<u8>,
    scopes: Vec<u8>,
    /// Address of the pointers to methods.
    metadata: u64,
}

/// Reads the compiled code in a blob.
pub(super) fn read(memory: &dyn Memory, layout: &Layout, blob: &Blob) -> Result<CompiledCode, Unreadable> {
    if blob.kind != Kind::Compiled {
        return Err(Unreadable(blob.at));
    }
    let Tables { table, scopes, metadata } = tables(memory, layout, blob)?;
    let mut reader = Reader { memory, layout, scopes: &scopes, metadata, known: HashMap::new() };
    let mut places = Vec::new();
    // The code up to a place, from behind the place before.
    let mut begin = 0;
    let (entries, _) = table.as_chunks::<ENTRY>();
    for entry in entries {
        let (at, scope) = (word_in(entry, 0) as u32 as i32, word_in(entry, 4) as u32 as i32);
        let Ok(at) = u32::try_from(at) else { continue };
        places.push((begin, reader.chain(scope)));
        begin = at.saturating_add(1);
    }
    places.push((begin, Vec::new()));
    Ok(CompiledCode::new(blob.code.clone(), blob.id(), places))
}

fn tables(memory: &dyn Memory, layout: &Layout, blob: &Blob) -> Result<Tables, Unreadable> {
    let mut head = vec![0; (layout.compiled.bytes as usize).min(MAX_HEAD)];
    if !memory.read(blob.at, &mut head) {
        return Err(Unreadable(blob.at));
    }
    let (table, scopes, scopes_end) = match layout.compiled.scopes {
        Scopes::Inside { data, table, table_end } => {
            let at = |field: super::statements::Field| blob.at.wrapping_add(field.value(&head));
            let scopes = word_in(&head, data);
            (at(table)..at(table_end), scopes, at(table))
        }
        Scopes::Apart { pointer, table, data } => {
            let start = word_in(&head, pointer);
            let at = |field: super::statements::Field| start.wrapping_add(field.value(&head));
            // The end is not stated in the same way in all versions; numbers end each scope.
            (at(table)..at(data), at(data), at(data).wrapping_add(MAX_SCOPES))
        }
    };
    let metadata = match layout.compiled.metadata {
        Metadata::Inside(offset) => blob.at.wrapping_add(offset.value(&head)),
        Metadata::InData(data, offset) => {
            blob.at.wrapping_add(data.value(&head)).wrapping_add(offset.value(&head))
        }
        Metadata::Apart { pointer, before } => word_in(&head, pointer).wrapping_add(before.value(&head)),
    };
    let table_bytes = table.end.wrapping_sub(table.start);
    if table_bytes > MAX_TABLE {
        return Err(Unreadable(table.start));
    }
    let mut bytes = vec![0; table_bytes as usize];
    if !memory.read(table.start, &mut bytes) {
        return Err(Unreadable(table.start));
    }
    let scopes = up_to(memory, scopes, scopes_end, &bytes)?;
    Ok(Tables { table: bytes, scopes, metadata })
}

/// Reads scopes from `start` on, as far as the table leads into them and the last may reach.
fn up_to(memory: &dyn Memory, start: u64, end: u64, table: &[u8]) -> Result<Vec<u8>, Unreadable> {
    /// Bytes of the numbers of a scope that are needed.
    const SCOPE: u64 = 16;
    let last =
        table.as_chunks::<ENTRY>().0.iter().map(|entry| word_in(entry, 4) as u32).filter(|&at| at < 1 << 31);
    let last = u64::from(last.max().unwrap_or(0));
    let whole = end.wrapping_sub(start).min(last + SCOPE).min(MAX_SCOPES);
    for length in [whole, whole.min(last + 8), whole.min(last + 3)] {
        let mut bytes = vec![0; length as usize];
        if memory.read(start, &mut bytes) {
            return Ok(bytes);
        }
    }
    Err(Unreadable(start))
}

struct Reader<'r> {
    memory: &'r dyn Memory,
    layout: &'r Layout,
    scopes: &'r [u8],
    metadata: u64,
    /// Methods by index.
    known: HashMap<u32, Option<CodeId>>,
}

impl Reader<'_> {
    /// The positions of a scope and those around it, innermost first. Empty if one of them can't be read.
    fn chain(&mut self, scope: i32) -> Vec<ScriptPlace> {
        let mut all = Vec::new();
        let mut next = u32::try_from(scope).unwrap_or(0);
        for _ in 0..MAX_DEPTH {
            if next == 0 {
                return all;
            }
            let Some((outer, place)) = self.scope(next) else { break };
            all.push(place);
            next = outer;
        }
        Vec::new()
    }

    /// The offset of the scope around a scope, or 0, and its position.
    fn scope(&mut self, at: u32) -> Option<(u32, ScriptPlace)> {
        let bytes = self.scopes.get(at as usize..)?;
        let mut numbers = Numbers::new(bytes, self.layout.compiled.excludes_zero);
        let (outer, method, bytecode) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let code = self.method(method)?;
        // One more than the index; that before the first bytecode is 0.
        let offset = bytecode.saturating_sub(1).min(UNKNOWN);
        Some((outer, ScriptPlace { code, offset, is_entry: false, is_generator: false }))
    }

    fn method(&mut self, index: u32) -> Option<CodeId> {
        let Self { memory, layout, metadata, .. } = *self;
        *self.known.entry(index).or_insert_with(|| {
            let slot = metadata.wrapping_add(8 * u64::from(index.checked_sub(1)?));
            methods::id(memory, layout, memory.word(slot).ok()?).ok()
        })
    }
}

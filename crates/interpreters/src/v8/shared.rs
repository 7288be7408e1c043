//! Functions as V8 describes them: `SharedFunctionInfo` and `ScopeInfo`, which all closures of a function have in common.

use crate::function::{SourceLines, identity, read_same};
use crate::memory::head;
use crate::{CodeId, Function, Unreadable};

use super::heap::{Heap, Tagged};
use super::kernel::NUMBERED;
use super::layout::{SHARED_BYTES, ScopeLayout, V8Layout};
use super::sources::Sources;

/// Longest name, in characters.
const MAX_NAME: u64 = 4096;
/// Locals in contexts whose names are in the scope itself; more are in a table.
const MAX_INLINE_LOCALS: u32 = 75;

type Head = [u8; SHARED_BYTES];

/// Reads a function, if the memory still matches `id`.
pub(super) fn read(heap: Heap<'_>, sources: &Sources, id: CodeId) -> Result<Function, Unreadable> {
    let layout = heap.layout;
    read_same(
        heap.memory,
        id,
        |bytes| identity_of(heap, id.at, bytes),
        |_| {
            let shared = Tagged(id.at | 1);
            if heap.kind(shared)? != layout.shared.kind {
                return Err(Unreadable(id.at));
            }
            function(heap, sources, shared)
        },
    )
}

/// Identity of the function at an address.
pub(super) fn id(heap: Heap<'_>, shared: Tagged) -> Result<CodeId, Unreadable> {
    let at = shared.address().ok_or(Unreadable(shared.0))?;
    Ok(CodeId { at, identity: identity_of(heap, at, &head(heap.memory, at)?) })
}

/// The identity of a function by its words, of which the last is the number of its script: memory is used again, and then all other words may be the
/// same.
fn identity_of(heap: Heap<'_>, at: u64, bytes: &Head) -> u32 {
    let V8Layout { shared, script, .. } = heap.layout;
    let number =
        heap.field(Tagged(at | 1), shared.script).and_then(|of| heap.field(heap.moved(of), script.number));
    let number = number.map_or(0, |number| (number.0 >> 32) as u32) | NUMBERED;
    let mut bytes = *bytes;
    if let Some(last) = bytes.last_chunk_mut() {
        *last = u64::from(number).to_le_bytes();
    }
    identity(&bytes, &heap.layout.identity())
}

fn function(heap: Heap<'_>, sources: &Sources, shared: Tagged) -> Result<Function, Unreadable> {
    let scope = scope(heap, heap.field(shared, heap.layout.shared.name)?)?;
    let script = heap.field(shared, heap.layout.shared.script)?;
    // V8's own functions, such as forEach, have no script.
    if !heap.is(script, heap.layout.script.kind) {
        return Ok(Function::without_lines(scope.name, String::new(), 0));
    }
    // Text that was passed to eval or Function has no name; errors call it so.
    let file = heap.string(heap.field(script, heap.layout.script.name)?, MAX_NAME)?;
    let file = file.filter(|file| !file.is_empty()).unwrap_or_else(|| "<anonymous>".to_owned());
    let file = file.strip_prefix("file://").map(str::to_owned).unwrap_or(file);
    let lines = SourceLines {
        instructions: bytecode_positions(heap, shared).unwrap_or_default(),
        ends: Some(sources.line_ends(heap, script).unwrap_or_default()),
    };
    let first_line = scope.start.map_or(0, |start| lines.line_of(start));
    let name = match &*scope.name {
        "" => anonymous(&file, first_line),
        name => name.to_owned(),
    };
    Ok(Function { text: Some(lines), ..Function::without_lines(name, file, first_line) })
}

/// A function without a name is identified by its place.
fn anonymous(file: &str, line: u32) -> String {
    let file = file.rsplit('/').next().unwrap_or_default();
    match (file, line) {
        ("", _) => "(anonymous)".to_owned(),
        (file, 0) => format!("(anonymous {file})"),
        (file, line) => format!("(anonymous {file}:{line})"),
    }
}

/// The name of a function, and the place in the source text where it begins.
#[derive(Default)]
struct Scope {
    name: String,
    start: Option<u32>,
}

/// Reads a name, or the description of a scope that has one.
fn scope(heap: Heap<'_>, named: Tagged) -> Result<Scope, Unreadable> {
    if let Some(name) = heap.string(named, MAX_NAME)? {
        return Ok(Scope { name, start: None });
    }
    if !heap.is(named, heap.layout.scope.kind) {
        return Ok(Scope::default());
    }
    let ScopeLayout { locals, first, .. } = heap.layout.scope;
    let locals = heap.slot(named, locals)?.integer().and_then(|locals| u32::try_from(locals).ok());
    let locals = locals.ok_or(Unreadable(named.0))?;
    // A name and its properties for each local; many locals have one table of names.
    let names = if locals < MAX_INLINE_LOCALS { locals } else { 1 };
    let mut at = first.saturating_add(names).saturating_add(locals);
    // The scope of a module has its number of variables first.
    if heap.slot(named, at)?.integer().is_some_and(|count| count != 0) {
        at = at.saturating_add(1);
    }
    let mut name = heap.string(heap.slot(named, at)?, MAX_NAME)?.unwrap_or_default();
    // Behind its name is the place of the variable with this name, then the name that V8 has inferred from an assignment.
    let inferred = heap.slot(named, at.saturating_add(2))?;
    if name.is_empty() {
        name = heap.string(inferred, MAX_NAME)?.unwrap_or_default();
    }
    // Since V8 12 the start is in the fixed part, before that behind the names.
    let start = match first {
        5.. => heap.slot(named, 3)?,
        _ if inferred.address().is_some() => heap.slot(named, at.saturating_add(3))?,
        _ => inferred,
    };
    Ok(Scope { name, start: start.integer().and_then(|start| u32::try_from(start).ok()) })
}

/// The places from which the bytecode of a function was made. V8 makes this table only when it needs it.
fn bytecode_positions(heap: Heap<'_>, shared: Tagged) -> Result<Vec<(u32, u32)>, Unreadable> {
    let bytecode = bytecode(heap, shared)?;
    let entries = heap.positions(heap.field(bytecode, heap.layout.bytecode.positions)?)?.into_iter();
    // A frame counts from the tagged address of the bytecode's object.
    let before = heap.layout.bytecode.data.wrapping_sub(1);
    Ok(entries.filter_map(|entry| Some((entry.offset.wrapping_add(before), entry.place.at?))).collect())
}

/// The bytecode of a function: its data, or what that leads to if it was compiled without optimizations, or is debugged.
pub(super) fn bytecode(heap: Heap<'_>, shared: Tagged) -> Result<Tagged, Unreadable> {
    /// Offset in a function of its data, the same in all versions.
    const DATA: u32 = 8;
    let data = heap.field(shared, DATA)?;
    if heap.is(data, heap.layout.bytecode.kind) {
        return Ok(data);
    }
    let inside = (0..4).filter_map(|index| heap.slot(data, index).ok());
    inside.into_iter().find(|word| heap.is(*word, heap.layout.bytecode.kind)).ok_or(Unreadable(data.0))
}

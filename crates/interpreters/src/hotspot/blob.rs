//! Blobs: pieces of code that HotSpot has made, each behind a description of itself.

use std::ops::Range;

use crate::memory::word_in;
use crate::{CodeId, Memory, Unreadable};

use super::layout::{CodeBounds, Layout};
use super::statements::text;

/// Most bytes of a description and of what is before it.
const MAX_BYTES: usize = 1 << 10;
/// Most words of a frame.
const MAX_FRAME: u64 = 1 << 17;

/// The kind of a piece of code, which decides its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A method, or the wrapper of a native one.
    Compiled,
    /// Code with frames of a stated size, such as the calls from compiled code into the virtual machine.
    Framed,
    /// The interpreter.
    Interpreter,
    /// Code that jumps on to a method, and leaves the stack alone.
    Bare,
    /// Assembly of all kinds, mostly with frame pointers.
    Stub,
}

/// A piece of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blob {
    pub(super) at: u64,
    pub(super) kind: Kind,
    pub(super) code: Range<u64>,
    /// Size of its frames in bytes.
    pub(super) frame: u64,
    /// The first address at which its frame is set up.
    pub(super) frame_complete: u64,
    /// `Method*` of a compiled one.
    pub(super) method: u64,
    /// Number of the compilation.
    compile_id: u32,
}

impl Blob {
    /// Reads the blob in a block of a heap.
    pub(super) fn read(memory: &dyn Memory, layout: &Layout, block: u64) -> Result<Blob, Unreadable> {
        let bytes = head(memory, layout, block)?;
        let at = block.wrapping_add(layout.heap.block_bytes.into());
        let (is_used, rest) = split(layout, &bytes);
        let name = text(memory, word_in(rest, layout.blob.name))?;
        let frame = layout.blob.frame_size.value(rest);
        let has_frame = (2..=MAX_FRAME).contains(&frame);
        let kind = match &*name {
            "nmethod" | "native nmethod" if has_frame => Kind::Compiled,
            "Interpreter" => Kind::Interpreter,
            "vtable chunks" => Kind::Bare,
            name if name.contains("adapters") => Kind::Bare,
            _ if has_frame => Kind::Framed,
            _ => Kind::Stub,
        };
        let mut blob = Blob::fields(layout, at, rest).filter(|_| is_used).ok_or(Unreadable(at))?;
        blob.kind = kind;
        Ok(blob)
    }

    /// The fields of a blob, whose kind is not known.
    fn fields(layout: &Layout, at: u64, bytes: &[u8]) -> Option<Blob> {
        let code = match layout.blob.code {
            CodeBounds::Addresses(begin, end) => begin.value(bytes)..end.value(bytes),
            CodeBounds::Offsets(begin, end) => {
                at.checked_add(begin.value(bytes))?..at.checked_add(end.value(bytes))?
            }
        };
        let size = layout.blob.size.value(bytes);
        let is_inside = at < code.start && code.start < code.end && code.end <= at.checked_add(size)?;
        let compiled = &layout.compiled;
        is_inside.then(|| Blob {
            at,
            kind: Kind::Stub,
            frame: 8 * layout.blob.frame_size.value(bytes).min(MAX_FRAME),
            frame_complete: frame_complete(layout, &code, bytes),
            method: word_in(bytes, compiled.method),
            compile_id: compiled.compile_id.value(bytes) as u32,
            code,
        })
    }

    /// Compiled code at an address.
    #[cfg(test)]
    pub(super) fn anything(at: u64) -> Blob {
        let code = at..at.saturating_add(1000);
        Blob { at, kind: Kind::Compiled, frame: 64, frame_complete: at, method: at, compile_id: 1, code }
    }

    /// Identity of compiled code, which differs from that of later code in the same place.
    pub(super) fn id(&self) -> CodeId {
        CodeId { at: self.at, identity: self.compile_id }
    }

    /// Whether the blob may be freed while the process runs.
    pub(super) fn may_be_freed(&self) -> bool {
        self.kind == Kind::Compiled
    }

    /// Whether the same code is still there. Memory that can't be read is that of a process which is gone.
    pub(super) fn is_still_there(&self, memory: &dyn Memory, layout: &Layout) -> bool {
        let Ok(bytes) = head(memory, layout, self.at.wrapping_sub(layout.heap.block_bytes.into())) else {
            return true;
        };
        let (is_used, rest) = split(layout, &bytes);
        let now = Blob::fields(layout, self.at, rest);
        is_used && now.is_some_and(|now| Blob { kind: self.kind, ..now } == *self)
    }
}

/// The first address at which the frame is set up: an offset in the code. That of code that never has one is negative.
fn frame_complete(layout: &Layout, code: &Range<u64>, bytes: &[u8]) -> u64 {
    let field = layout.blob.frame_complete;
    let offset = field.value(bytes);
    let is_negative = offset >> (8 * field.size.clamp(1, 8) - 1) != 0;
    if is_negative { code.start } else { code.start.saturating_add(offset) }
}

/// Reads the beginning of a block: its header, and the description of the blob, as much of it as there is.
fn head(memory: &dyn Memory, layout: &Layout, block: u64) -> Result<Vec<u8>, Unreadable> {
    let before = layout.heap.block_bytes;
    let whole = (before + layout.blob.bytes.max(layout.compiled.bytes)) as usize;
    let least = (before + layout.blob.bytes) as usize;
    let mut bytes = vec![0; whole.min(MAX_BYTES)];
    if memory.read(block, &mut bytes) {
        return Ok(bytes);
    }
    bytes.truncate(least);
    if memory.read(block, &mut bytes) { Ok(bytes) } else { Err(Unreadable(block)) }
}

/// Whether a block is in use, and the bytes behind its header.
fn split<'b>(layout: &Layout, bytes: &'b [u8]) -> (bool, &'b [u8]) {
    let is_used = bytes.get(layout.heap.block_used as usize).is_some_and(|&used| used == 1);
    (is_used, bytes.get(layout.heap.block_bytes as usize..).unwrap_or_default())
}

//! Functions of interpreted programs, read from their code objects.

use std::sync::Arc;

use crate::memory::{Memory, Unreadable, head};
use crate::python::{LineTable, line_at};

/// Identity of the code of a function in which a thread was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeId {
    /// Address of the code object.
    pub at: u64,
    /// Hash of the parts of a code object that never change while it exists. Memory is reused, and a different code object has a different hash.
    pub identity: u32,
}

/// A function of an interpreted program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name, qualified with the enclosing classes and functions.
    pub name: String,
    /// File as the interpreter names it.
    pub file: String,
    /// First line.
    pub first_line: u32,
    /// Line table in the interpreter's own format: the readable prefix of it.
    pub(crate) lines: Vec<u8>,
    /// Format of `lines`.
    pub(crate) line_table: LineTable,
    /// Whether `lines` is the whole table.
    pub(crate) has_all_lines: bool,
    /// Offset of the instructions from the start of the code object, in bytes; 0: instructions are counted from 0.
    pub(crate) instructions: u64,
    /// Instruction before which the function only sets up its frame.
    pub(crate) first_traceable: u64,
    /// Lines by the place in the source text, if the interpreter keeps that instead of lines.
    pub(crate) text: Option<SourceLines>,
}

/// In the `at` passed to [`Function::line`]: the rest is a place in the source text rather than an instruction.
pub(crate) const IN_TEXT: u32 = 1 << 31;

/// In the `at` passed to [`Function::line`] of such a function: the instruction is not known.
pub(crate) const UNKNOWN: u32 = IN_TEXT - 1;

/// Places in the source text of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceLines {
    /// Instructions in ascending order, and the place from which each, and those up to the next, were made.
    pub(crate) instructions: Vec<(u32, u32)>,
    /// Ends of the text's lines. Empty if the text is not known. `None`: the places are lines.
    pub(crate) ends: Option<Arc<[u32]>>,
}

impl SourceLines {
    /// The line of a place, from 1 on; 0 if the text is not known.
    pub(crate) fn line_of(&self, place: u32) -> u32 {
        let Some(ends) = &self.ends else { return place };
        let before = ends.partition_point(|&end| end < place);
        if ends.is_empty() { 0 } else { u32::try_from(before + 1).unwrap_or(0) }
    }

    /// The line of an instruction, or of a place; 0 if it is not known.
    fn line(&self, at: u32) -> u32 {
        if at & IN_TEXT != 0 {
            return self.line_of(at & !IN_TEXT);
        }
        if at == UNKNOWN {
            return 0;
        }
        let after = self.instructions.partition_point(|&(begin, _)| begin <= at);
        let place = after.checked_sub(1).and_then(|index| self.instructions.get(index));
        place.map_or(0, |&(_, place)| self.line_of(place))
    }
}

/// Hashes the immutable parts of a code object: words of it, each with a mask. The BPF programs compute the same hash
/// (crates/capture-bpf/bpf/script.h).
pub(crate) fn identity(words: &[u8], masks: &[u64]) -> u32 {
    let hash = words.as_chunks::<8>().0.iter().zip(masks).fold(0_u64, |hash, (word, mask)| {
        let hash = (hash ^ (u64::from_le_bytes(*word) & mask)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^ hash >> 29
    });
    (hash >> 32) as u32
}

/// Makes a function from the first bytes of its code object. Fails unless the identity matches both before and after.
pub(crate) fn read_same<const N: usize>(
    memory: &dyn Memory,
    id: CodeId,
    identity_of: impl Fn(&[u8; N]) -> u32,
    make: impl FnOnce(&[u8; N]) -> Result<Function, Unreadable>,
) -> Result<Function, Unreadable> {
    let same = || {
        let bytes = head(memory, id.at)?;
        if identity_of(&bytes) == id.identity { Ok(bytes) } else { Err(Unreadable(id.at)) }
    };
    let function = make(&same()?)?;
    // The code object may have been freed while it was read.
    same().map(|_| function)
}

/// Instruction number of a function that has not started.
const NOT_BEGUN: u32 = u32::MAX;

impl Function {
    /// A function without a line table. The `at` passed to [`Function::line`] is then the line itself.
    pub(crate) fn without_lines(name: String, file: String, first_line: u32) -> Self {
        let (lines, line_table) = (Vec::new(), LineTable::Direct);
        Self {
            name,
            file,
            first_line,
            lines,
            line_table,
            has_all_lines: true,
            instructions: 0,
            first_traceable: 0,
            text: None,
        }
    }

    /// Whether the whole line table was read.
    pub fn has_all_lines(&self) -> bool {
        self.has_all_lines
    }

    /// Line of the instruction at this byte offset from the start of the code object, or with this number if the interpreter counts instructions. 0
    /// if it has no line or the line is unknown.
    pub fn line(&self, at: u32) -> u32 {
        if let Some(text) = &self.text {
            return text.line(at);
        }
        let offset = match self.line_table {
            LineTable::Direct => return at,
            LineTable::Locations => u64::from(at).saturating_sub(self.instructions),
            _ if at == NOT_BEGUN => return self.first_line,
            // Counted in bytes.
            LineTable::Lnotab => at.into(),
            // Counted in units of two bytes.
            LineTable::Ranges => 2 * u64::from(at),
        };
        line_at(self.line_table, &self.lines, self.first_line, offset).unwrap_or(0)
    }

    /// Whether the function has started at this instruction. Before that, it appears in no traceback.
    pub fn has_begun(&self, at: u32) -> bool {
        u64::from(at) >= self.first_traceable
    }
}

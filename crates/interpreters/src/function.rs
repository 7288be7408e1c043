//! Functions of interpreted programs, read from their code objects.

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
        }
    }

    /// Whether the whole line table was read.
    pub fn has_all_lines(&self) -> bool {
        self.has_all_lines
    }

    /// Line of the instruction at this byte offset from the start of the code object, or with this number if the interpreter counts instructions. 0
    /// if it has no line or the line is unknown.
    pub fn line(&self, at: u32) -> u32 {
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

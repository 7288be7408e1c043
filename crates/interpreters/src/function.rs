//! Functions of interpreted programs, as their code says.

use crate::memory::{Memory, Unreadable, head};
use crate::python::{LineTable, line_at};

/// Code of a function that a thread was seen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeId {
    /// Where it was.
    pub at: u64,
    /// A hash of what does not change in code as long as it is there: memory is used again, and other code has another one.
    pub identity: u32,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, with the classes and functions that it is in.
    pub name: String,
    /// The file as the interpreter names it.
    pub file: String,
    /// The line that it begins in.
    pub first_line: u32,
    /// Which line an instruction is of, in the interpreter's own form: as much from the beginning as could be read.
    pub(crate) lines: Vec<u8>,
    /// Which form that is.
    pub(crate) line_table: LineTable,
    /// All of it could be read.
    pub(crate) has_all_lines: bool,
    /// Where its instructions begin, in bytes from where its code is; 0: they are counted from 0.
    pub(crate) instructions: u64,
    /// Before this one it only sets itself up.
    pub(crate) first_traceable: u64,
}

/// A hash of what does not change in code: as much of some words as masks let through. The kernel's programs do the same
/// (crates/capture-bpf/bpf/python.h).
pub(crate) fn identity(words: &[u8], masks: &[u64]) -> u32 {
    let hash = words.as_chunks::<8>().0.iter().zip(masks).fold(0_u64, |hash, (word, mask)| {
        let hash = (hash ^ (u64::from_le_bytes(*word) & mask)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^ hash >> 29
    });
    (hash >> 32) as u32
}

/// Makes a function of the first bytes of its code, if that is the code that is meant, before and after.
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
    // It may have gone while it was read.
    same().map(|_| function)
}

/// The number of an instruction of a function of which none has run.
const NOT_BEGUN: u32 = u32::MAX;

impl Function {
    /// One of which the interpreter says no more; where an instruction is told, it is its line.
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

    /// Whether the lines of all instructions are known.
    pub fn has_all_lines(&self) -> bool {
        self.has_all_lines
    }

    /// The line of the instruction so many bytes from where the code is, or of this number where the interpreter counts them; 0 if
    /// it has none, or it is not known.
    pub fn line(&self, at: u32) -> u32 {
        let offset = match self.line_table {
            LineTable::Direct => return at,
            LineTable::Locations => u64::from(at).saturating_sub(self.instructions),
            _ if at == NOT_BEGUN => return self.first_line,
            // It counts bytes.
            LineTable::Lnotab => at.into(),
            // It counts units of two bytes.
            LineTable::Ranges => 2 * u64::from(at),
        };
        line_at(self.line_table, &self.lines, self.first_line, offset).unwrap_or(0)
    }

    /// Whether it has begun when it is at this instruction: before, it is in no traceback.
    pub fn has_begun(&self, at: u32) -> bool {
        u64::from(at) >= self.first_traceable
    }
}

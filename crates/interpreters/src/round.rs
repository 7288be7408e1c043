//! Where the frames of an interpreted program are, before it is known what they are called.

use crate::CodeId;

/// A round of an interpreter's loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalLoopFrame {
    /// An address on the stack in the native frame that runs it; `None`: it is not known.
    pub at: Option<u64>,
    /// Its frames, innermost first.
    pub frames: Vec<ScriptPlace>,
}

/// Where a frame of an interpreted program was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptPlace {
    /// In which code.
    pub code: CodeId,
    /// At which instruction: so many bytes from where the code is.
    pub offset: u32,
    /// It is the last of its round of the interpreter's loop.
    pub is_entry: bool,
    /// It is a generator's.
    pub is_generator: bool,
}

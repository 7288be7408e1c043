//! Script frames as positions in code, before they are resolved to names.

use crate::CodeId;

/// An eval frame: one native call of the interpreter's evaluation loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalLoopFrame {
    /// An address within it on the native stack, if that is known.
    pub at: Option<u64>,
    /// Script frames in it, innermost first.
    pub frames: Vec<ScriptPlace>,
}

/// Position of a script frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptPlace {
    /// The code that it runs.
    pub code: CodeId,
    /// The current instruction, in bytes from the start of the code.
    pub offset: u32,
    /// Whether it is the outermost of its eval frame.
    pub is_entry: bool,
    /// Whether it belongs to a generator.
    pub is_generator: bool,
}

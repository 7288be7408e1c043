//! From registers and stack memory to the list of frames.

use crate::address::Avma;
use crate::cache::Cache;
use crate::code::CodeMap;
use crate::memory::Memory;
use crate::x86_64::Registers;

/// A frame that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walked {
    /// The program counter: as sampled, or the return address, or where a signal struck.
    pub pc: Avma,
    /// Whether `pc` is a return address, so that its call ends just before it. False for the first frame and for what
    /// a signal interrupted.
    pub is_return: bool,
    /// How the frame was found.
    pub found: Method,
    /// The stack address that `pc` was read from; 0 where it did not come from memory.
    pub slot: Avma,
}

/// How a frame was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// It is the program counter that the walk began with.
    Sampled,
    /// By call-frame information.
    Cfi,
    /// By the frame-pointer convention, because call-frame information is missing.
    FramePointer,
}

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The outermost frame was reached: it says that it has no caller, or its return address is 0.
    Root,
    /// A rule points above what was copied of the stack.
    BeyondCopy,
    /// A rule points at memory that can't be read.
    StackUnreadable,
    /// No unwind information for the last frame, and no frame pointer helped.
    NoUnwindInfo,
    /// The unwind information for the last frame is damaged or asks for something unknown.
    BadUnwindInfo,
    /// The last frame's program counter is in no executable mapping.
    NotMapped,
    /// The file of the last frame could not be opened.
    FileUnreadable,
    /// The last frame's rule needs a register that is not known.
    RegisterUnknown,
    /// The last frame's caller would not be further up the stack.
    NotAdvancing,
    /// There are more frames than the limit.
    TooManyFrames,
}

/// Finds the callers of `start`, innermost first. `frames` is cleared first and gets at most `limit` frames, the first
/// of which is `start` itself. The last frame is the one that the returned reason is about.
pub fn walk<C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    cache: &mut Cache,
    start: &Registers,
    limit: usize,
    frames: &mut Vec<Walked>,
) -> End {
    let _ = (code, memory, cache);
    frames.clear();
    if limit == 0 {
        return End::TooManyFrames;
    }
    frames.push(Walked { pc: Avma(start.ip()), is_return: false, found: Method::Sampled, slot: Avma(0) });
    End::NoUnwindInfo
}

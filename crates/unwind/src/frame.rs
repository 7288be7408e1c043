//! What a walk yields: frames, how far each is to be trusted, and why there are no more.

use crate::address::Avma;
use crate::memory::ReadError;
use crate::method::{Method, Trust};

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
    /// The last frame's return address has been replaced by a probe on returns (uretprobe).
    ProbedReturn,
    /// The file of the last frame could not be opened.
    FileUnreadable,
    /// The last frame's rule needs a register that is not known.
    RegisterUnknown,
    /// The last frame's caller would not be further up the stack.
    NotAdvancing,
    /// There are more frames than the limit.
    TooManyFrames,
}

impl From<ReadError> for End {
    fn from(error: ReadError) -> End {
        match error {
            ReadError::BeyondCopy => End::BeyondCopy,
            ReadError::Unreadable => End::StackUnreadable,
        }
    }
}

/// How far each frame of a walk is to be trusted, innermost first: no further than any frame before it.
pub fn trust(frames: &[Walked]) -> impl Iterator<Item = Trust> {
    frames.iter().scan(Trust::Certain, |so_far, frame| {
        *so_far = frame.found.trust().min(*so_far);
        Some(*so_far)
    })
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn no_frame_is_trusted_further_than_those_before_it() {
        let frame = |found| Walked { pc: Avma(1), is_return: true, found, slot: Avma(8) };
        let methods = [Method::Sampled, Method::Cfi, Method::Signal, Method::FramePointer, Method::Cfi];
        let frames: Vec<Walked> = methods.into_iter().chain([Method::Scan, Method::Cfi]).map(frame).collect();
        let expected =
            [Trust::Certain, Trust::Stated, Trust::Stated, Trust::Assumed, Trust::Assumed, Trust::Guessed];
        assert!(trust(&frames).eq(expected.into_iter().chain([Trust::Guessed])));
        assert!(Trust::Guessed < Trust::Assumed && Trust::Stated < Trust::Certain);
    }
}

//! Results of a walk: the frames, how reliable each is, and the reason why the walk ended.

use crate::address::Avma;
use crate::memory::ReadError;
use crate::method::{Method, Trust};

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walked {
    /// Program counter: the sampled one, a return address, or the one that a signal interrupted.
    pub pc: Avma,
    /// Whether `pc` is a return address, so that its call ends just before it. False for the first frame and for an
    /// interrupted one.
    pub is_return: bool,
    /// Method by which the frame was found.
    pub found: Method,
    /// Stack address that `pc` was read from; 0 if it did not come from memory.
    pub slot: Avma,
}

impl Walked {
    /// An address within the running instruction, or within the call that has not returned.
    pub fn call(&self) -> Avma {
        self.pc.offset(-i64::from(self.is_return))
    }
}

/// Reason why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The outermost frame was reached: its rule says that it has no caller, or its return address is 0.
    Root,
    /// A rule points above the copied part of the stack.
    BeyondCopy,
    /// A rule points at unreadable memory.
    StackUnreadable,
    /// The last frame has no unwind information, and following the frame pointer failed.
    NoUnwindInfo,
    /// The unwind information of the last frame is damaged or uses an unknown feature.
    BadUnwindInfo,
    /// The last frame's program counter is not in an executable mapping.
    NotMapped,
    /// The last frame's return address has been replaced by a probe on returns (uretprobe).
    ProbedReturn,
    /// The file of the last frame could not be opened.
    FileUnreadable,
    /// The last frame's rule needs an unknown register.
    RegisterUnknown,
    /// The last frame's caller would not be further up the stack.
    NotAdvancing,
    /// The number of frames exceeds the limit.
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

/// Returns the reliability of each frame of a walk, innermost first. No frame is more reliable than the frames before
/// it.
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

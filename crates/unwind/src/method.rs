//! How a frame was found, and how far that is to be trusted.
//!
//! The method is the walker's, frame by frame. Trust follows from it and from the frames further in: a walk that went
//! wrong once is wrong from there on. Not here: the methods themselves.

use crate::walk::Walked;

/// How a frame was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// It is the program counter that the walk began with.
    Sampled,
    /// By call-frame information.
    Cfi,
    /// From the registers that the kernel saved when a signal struck: the frame was interrupted, it did not call.
    Signal,
    /// By convention, because call-frame information is missing: through the frame pointer, or, for code that a
    /// sample or a signal struck before it touched the stack, from the top of the stack.
    FramePointer,
    /// The first word further up the stack that could be a return address.
    Scan,
}

/// How far a frame is to be trusted. Ordered: what is greater deserves more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// A guess, checked as far as the code tells: frames may be missing before this one, or it may have returned
    /// already.
    Guessed,
    /// By a convention that this code may not keep. That the next frame is code was checked; one frame before this one
    /// may be missing.
    Assumed,
    /// By what the file, or the kernel, says that the code does. Wrong only where that is wrong.
    Stated,
    /// A fact: the sampled program counter.
    Certain,
}

impl Method {
    /// How far a frame found this way is to be trusted if the one further in can be.
    pub const fn trust(self) -> Trust {
        match self {
            Method::Sampled => Trust::Certain,
            Method::Cfi | Method::Signal => Trust::Stated,
            Method::FramePointer => Trust::Assumed,
            Method::Scan => Trust::Guessed,
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
    use crate::address::Avma;

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

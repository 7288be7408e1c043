//! The method by which a frame was found, and how reliable the result is.
//!
//! The walker chooses the method for each frame. Trust follows from it and from the frames further in: once a walk
//! goes wrong, all later frames are wrong ([`trust`](fn@crate::trust)). The implementations of the methods are
//! elsewhere.

/// Method by which a frame was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// The program counter that the walk began with.
    Sampled,
    /// By call-frame information.
    Cfi,
    /// From the registers that the kernel saved for a signal: the frame was interrupted, it did not call.
    Signal,
    /// By convention, because call-frame information is missing: through the frame pointer, or from the top of the
    /// stack, for code that a sample or a signal interrupted before it touched the stack.
    FramePointer,
    /// By scanning: the first word further up the stack that could be a return address.
    Scan,
}

/// Reliability of a frame, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// A guess, checked as far as code allows. Frames may be missing before this one, or it may have returned
    /// already.
    Guessed,
    /// Found by a convention that the code may not follow. The next frame was checked to be code; one frame before
    /// this one may be missing.
    Assumed,
    /// Found by the rules that the file or the kernel states for the code. Wrong only if those are wrong.
    Stated,
    /// A fact: the sampled program counter.
    Certain,
}

impl Method {
    /// Returns the reliability of a frame found by this method, if the frames further in are reliable.
    pub const fn trust(self) -> Trust {
        match self {
            Method::Sampled => Trust::Certain,
            Method::Cfi | Method::Signal => Trust::Stated,
            Method::FramePointer => Trust::Assumed,
            Method::Scan => Trust::Guessed,
        }
    }
}

//! How a frame was found, and how far that is to be trusted.
//!
//! The method is the walker's, frame by frame. Trust follows from it and from the frames further in: a walk that went
//! wrong once is wrong from there on ([`trust`](fn@crate::trust)). Not here: the methods themselves.

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

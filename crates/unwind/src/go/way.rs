//! The ways in which a function's caller is found.

/// Method to find the caller.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The stack pointer is `depth` bytes below its value at the entry. `saved`: the frame pointer is saved, on x86_64 just above the
    /// frame. `frame`: on aarch64, the distance of the saved return address from the stack pointer at the entry, 0 if it is in the link
    /// register; the saved frame pointer is just below it.
    Sp { depth: u64, frame: u64, saved: bool },
    /// Through the frame pointer; on x86_64, if that is 0, the function has no caller. `frame` as above.
    Fp { frame: u64 },
    /// Stack and frame pointer are as at the entry; if the frame pointer is 0, the function has no caller.
    Entry,
    /// The function has no caller.
    Root,
    /// Unknown.
    Unknown,
}

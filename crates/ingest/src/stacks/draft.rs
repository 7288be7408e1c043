//! A stack that is being put together, and how it ends.

use plumb_profile::{DsoId, Found, FrameId, StackId, Truncation};
use plumb_unwind::{End, Method};

/// How the user part of a stack ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// At its root.
    Root,
    /// There is no user part, by nature: a kernel thread, or a task that has no memory any more.
    Absent,
    /// Before its root.
    Truncation(Truncation, Option<DsoId>),
}

/// The frames of a stack, as far as they are there.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) leaf_first: Vec<FrameId>,
    /// How many of them, the innermost, are the kernel's.
    pub(crate) kernel_frames: usize,
    /// The stack that the last of them was called from, if that is not the root.
    pub(crate) base: Option<StackId>,
    /// So many of the outermost frames are those of the thread's last sample, and not in `leaf_first`.
    pub(crate) kept: usize,
}

/// The reason for which a walk ended before the root.
pub(crate) fn cut_of(end: End) -> Option<Truncation> {
    Some(match end {
        End::Root => return None,
        End::BeyondCopy => Truncation::CopyTooShort,
        End::StackUnreadable => Truncation::StackUnreadable,
        End::NoUnwindInfo => Truncation::NoUnwindInfo,
        End::BadUnwindInfo => Truncation::BadUnwindInfo,
        End::NotMapped => Truncation::NotMapped,
        End::ProbedReturn => Truncation::ProbedReturn,
        End::FileUnreadable => Truncation::FileUnreadable,
        End::RegisterUnknown => Truncation::RegisterUnknown,
        End::NotAdvancing => Truncation::NotAdvancing,
        End::TooManyFrames => Truncation::TooManyFrames,
    })
}

/// The profile's word for how the unwinder found a frame.
pub(crate) fn found_of(method: Method) -> Found {
    match method {
        Method::Sampled => Found::Sampled,
        Method::Cfi => Found::Cfi,
        Method::Signal => Found::Signal,
        Method::FramePointer => Found::FramePointer,
        Method::Scan => Found::Scan,
    }
}

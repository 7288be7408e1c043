//! A stack under construction, and how it ends.

use plumb_profile::{DsoId, Found, Frame, FrameId, Profile, StackId, Truncation};
use plumb_unwind::{End, Method};

/// The end of the user part of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// At its root.
    Root,
    /// No user part, by nature: a kernel thread, or a task that has no memory any more.
    Absent,
    /// Before its root.
    Truncation(Truncation, Option<DsoId>),
}

/// The frames of a stack so far.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) leaf_first: Vec<FrameId>,
    /// Number of innermost frames that belong to the kernel.
    pub(crate) kernel_frames: usize,
    /// The caller of the last of them, if that is not the root.
    pub(crate) base: Option<StackId>,
    /// Number of outermost frames that equal those of the thread's last sample, and are not in `leaf_first`.
    pub(crate) kept: usize,
}

impl Draft {
    /// Appends a marker that says how the stack ends, unless it ends at its root.
    pub(crate) fn mark(&mut self, profile: &mut Profile, ending: Ending) {
        if let Ending::Truncation(cut, blamed) = ending {
            self.leaf_first.push(profile.frames.add(Frame::marker(cut, blamed)));
        }
    }
}

/// The reason why unwinding ended before the root.
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

/// The profile's term for the method that found a frame.
pub(crate) fn found_of(method: Method) -> Found {
    match method {
        Method::Sampled => Found::Sampled,
        Method::Cfi => Found::Cfi,
        Method::Signal => Found::Signal,
        Method::FramePointer => Found::FramePointer,
        Method::Scan => Found::Scan,
    }
}

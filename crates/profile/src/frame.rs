//! A level of a stack: an address in a file, or the reason why the stack ends.

use crate::dso::DsoId;
use crate::table::id;

id!(
    /// A distinct frame.
    FrameId
);

/// An address in the address space of the frame's [`Dso`](crate::Dso).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Address(pub u64);

/// One level of a stack. Equal frames are stored once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// User code, kernel code or a marker.
    pub kind: FrameKind,
    /// The file; for a marker the file that caused it, if any. `None`: an address without a mapping.
    pub dso: Option<DsoId>,
    /// The sampled program counter: for a caller this is the *return* address, one past its call. Use
    /// [`Frame::lookup`] to find the function. 0 for markers.
    pub address: Address,
    /// Whether `address` is a return address.
    pub is_return: bool,
    /// Method by which the frame was found.
    pub found: Found,
}

impl Frame {
    /// Creates a marker with the reason why the stack ends.
    pub fn marker(cut: Truncation, blamed: Option<DsoId>) -> Self {
        Frame {
            kind: FrameKind::Truncation(cut),
            dso: blamed,
            address: Address(0),
            is_return: false,
            found: Found::Sampled,
        }
    }

    /// Returns the address to look up: inside the call instruction for a return address.
    pub fn lookup(&self) -> Address {
        Address(self.address.0.saturating_sub(self.is_return.into()))
    }

    /// Returns the reason, if this frame is a marker.
    pub fn cut(&self) -> Option<Truncation> {
        match self.kind {
            FrameKind::Truncation(cut) => Some(cut),
            FrameKind::User | FrameKind::Kernel => None,
        }
    }
}

/// The kind of code of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// User code.
    User,
    /// Kernel code, on behalf of the process or of the kernel itself.
    Kernel,
    /// Not code: the outermost frame of a truncated user stack, with the reason.
    Truncation(Truncation),
}

/// The method by which a frame was found, from most to least reliable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Found {
    /// The sampled program counter itself, reported by the kernel, or part of an imported profile.
    Sampled,
    /// By unwind information.
    Cfi,
    /// From the registers that the kernel saved when a signal arrived: the frame was interrupted and did not call.
    Signal,
    /// By the frame-pointer convention, if unwind information is missing.
    FramePointer,
    /// Copied from earlier samples of the thread whose stack words agree where both could be read.
    Stitched,
    /// By scanning the stack for words that look like return addresses.
    Scan,
}

/// The reason why a user stack is truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Truncation {
    /// The stack is deeper than the part of it that the kernel copied.
    CopyTooShort,
    /// The file has no unwind information for the address, and no frame pointer helped.
    NoUnwindInfo,
    /// The file's unwind information is damaged or asks for something unknown.
    BadUnwindInfo,
    /// Code in anonymous memory (JIT): no unwind information exists, and no frame pointer helped.
    JitCode,
    /// The return address is in no mapping: the stack is corrupt, or a mapping was missed.
    NotMapped,
    /// A return probe (uretprobe) of another tool has replaced the return address.
    ProbedReturn,
    /// The file could not be opened, so its unwind information could not be read.
    FileUnreadable,
    /// The stack memory to which the unwind rules point could not be read.
    StackUnreadable,
    /// The stack continues on another stack than the copied one: that of a goroutine or a coroutine, or the one interrupted by a signal
    /// handler on a stack of its own.
    OtherStack,
    /// A rule needs a register whose value is not known.
    RegisterUnknown,
    /// The stack does not advance: it refers to itself.
    NotAdvancing,
    /// More frames than the recorder's limit.
    TooManyFrames,
    /// The sample came without user registers or stack (an imported profile without them).
    NoUserStack,
    /// The stack is of an architecture that is not unwound here (an imported profile, a 32-bit process).
    OtherArchitecture,
    /// Callees are missing, not callers: rare and old calls in a recording that runs for hours.
    Folded,
}

impl Truncation {
    /// All reasons.
    pub const ALL: [Truncation; 15] = [
        Truncation::CopyTooShort,
        Truncation::NoUnwindInfo,
        Truncation::BadUnwindInfo,
        Truncation::JitCode,
        Truncation::NotMapped,
        Truncation::ProbedReturn,
        Truncation::FileUnreadable,
        Truncation::StackUnreadable,
        Truncation::OtherStack,
        Truncation::RegisterUnknown,
        Truncation::NotAdvancing,
        Truncation::TooManyFrames,
        Truncation::NoUserStack,
        Truncation::OtherArchitecture,
        Truncation::Folded,
    ];

    /// Stable name, for files and machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Truncation::CopyTooShort => "copy-too-short",
            Truncation::NoUnwindInfo => "no-unwind-info",
            Truncation::BadUnwindInfo => "bad-unwind-info",
            Truncation::JitCode => "jit-code",
            Truncation::NotMapped => "not-mapped",
            Truncation::ProbedReturn => "probed-return",
            Truncation::FileUnreadable => "file-unreadable",
            Truncation::StackUnreadable => "stack-unreadable",
            Truncation::OtherStack => "other-stack",
            Truncation::RegisterUnknown => "register-unknown",
            Truncation::NotAdvancing => "not-advancing",
            Truncation::TooManyFrames => "too-many-frames",
            Truncation::NoUserStack => "no-user-stack",
            Truncation::OtherArchitecture => "other-architecture",
            Truncation::Folded => "folded",
        }
    }

    /// Returns the reason called `name`.
    pub fn from_name(name: &str) -> Option<Truncation> {
        Truncation::ALL.into_iter().find(|cut| cut.name() == name)
    }

    /// Returns the reason with the words `text`, which is what other formats keep of a marker.
    pub fn from_text(text: &str) -> Option<Truncation> {
        Truncation::ALL.into_iter().find(|cut| cut.text() == text)
    }

    /// Returns a short description for people, shown in place of the missing callers.
    pub fn text(self) -> &'static str {
        match self {
            Truncation::CopyTooShort => "stack deeper than its copy",
            Truncation::NoUnwindInfo => "no unwind information",
            Truncation::BadUnwindInfo => "damaged unwind information",
            Truncation::JitCode => "JIT code without unwind information",
            Truncation::NotMapped => "return address in no mapping",
            Truncation::ProbedReturn => "return address replaced by a uretprobe",
            Truncation::FileUnreadable => "file could not be read",
            Truncation::StackUnreadable => "stack memory not readable",
            Truncation::OtherStack => "callers on another stack, which was not copied",
            Truncation::RegisterUnknown => "register not known",
            Truncation::NotAdvancing => "stack points at itself",
            Truncation::TooManyFrames => "frame limit reached",
            Truncation::NoUserStack => "no user stack recorded",
            Truncation::OtherArchitecture => "another architecture, whose stacks are not unwound",
            Truncation::Folded => "rare calls of long ago",
        }
    }
}

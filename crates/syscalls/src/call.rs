//! A traced system call, and descriptions of the memory to copy for its arguments.
//!
//! Elsewhere: tracing calls and copying memory (capture-bpf), the meaning of the bytes (`decode`).

use crate::{Abi, Outcome};

/// A traced system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemCall<'a> {
    /// Begin, in nanoseconds of the monotonic clock.
    pub begin_ns: u64,
    /// End of the call, or the time at which it was found unfinished.
    pub end_ns: u64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Name of the thread when the call began.
    pub comm: &'a [u8],
    /// ABI that `number` belongs to.
    pub abi: Abi,
    /// System call number.
    pub number: u32,
    /// Arguments.
    pub args: [u64; 6],
    /// Outcome of the call.
    pub end: CallEnd,
    /// The call began before the trace: `begin_ns` equals its end.
    pub is_late: bool,
    /// The call was requested; otherwise it was traced only to track descriptors.
    pub is_shown: bool,
    /// Copied memory.
    pub pieces: Vec<Piece<'a>>,
}

/// Outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// Completed with this outcome.
    Returned(Outcome),
    /// Still in progress.
    Unfinished,
    /// Ended together with its thread.
    ThreadEnded,
}

impl SystemCall<'_> {
    /// Return value, if the call returned without an error.
    pub fn value(&self) -> Option<i64> {
        match self.end {
            CallEnd::Returned(Outcome::Value(value)) => Some(value),
            _ => None,
        }
    }

    /// Error number, if the call failed.
    pub fn error(&self) -> Option<u32> {
        match self.end {
            CallEnd::Returned(Outcome::Error(number)) => Some(number),
            _ => None,
        }
    }

    /// Latency in nanoseconds, if the begin of the call is known.
    pub fn latency_ns(&self) -> Option<u64> {
        (!self.is_late).then(|| self.end_ns.saturating_sub(self.begin_ns))
    }

    /// The memory copied for the [`Take`] with this index among the call's takes.
    pub fn piece(&self, take: usize) -> Option<&Piece<'_>> {
        self.pieces.iter().find(|piece| piece.take == take)
    }
}

/// Memory that was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Index of its [`Take`] among the call's takes.
    pub take: usize,
    /// The memory is longer than the copied bytes.
    pub is_cut: bool,
    /// The bytes; of a string, without the terminating NUL.
    pub bytes: &'a [u8],
}

/// Memory to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take {
    /// Location of the address.
    pub at: At,
    /// Kind of the memory.
    pub what: What,
    /// Whether to copy it when the call has succeeded, rather than when it begins.
    pub at_end: bool,
}

/// Location of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// An argument.
    Argument(u8),
    /// A field in the memory copied for an earlier take.
    Field {
        /// Index of the other take.
        take: u8,
        /// Offset of the field, below 64.
        place: u16,
    },
}

/// Kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A NUL-terminated string.
    String {
        /// Byte limit, including the NUL.
        most: u16,
    },
    /// A NULL-terminated array of addresses of strings.
    List,
    /// Elements of one size.
    Elements {
        /// Size of an element in bytes.
        size: u16,
        /// Number of elements.
        count: Count,
        /// Byte limit of all elements.
        most: u16,
    },
}

/// Location of the number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// One element.
    One,
    /// An argument.
    Argument(u8),
    /// A 32-bit integer at the address in this argument.
    Behind(u8),
    /// The call's return value.
    Result,
    /// A 64-bit field at this offset of the structure that the address was taken from.
    Field(u16),
}

//! A system call as it was seen, and what of the memory that it points at is worth copying.
//!
//! Not here: how calls are seen and memory is copied (capture-bpf), what the bytes mean (`decode`).

use crate::{Abi, Outcome};

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemCall<'a> {
    /// When it began, in nanoseconds of the monotonic clock.
    pub begin_ns: u64,
    /// When it ended, or was found not to have.
    pub end_ns: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Name of the thread when the call began.
    pub comm: &'a [u8],
    /// How its number is meant.
    pub abi: Abi,
    /// Its number.
    pub number: u32,
    /// Its arguments.
    pub args: [u64; 6],
    /// What became of it.
    pub end: CallEnd,
    /// It had begun before anybody looked: `begin_ns` is its end.
    pub is_late: bool,
    /// It is asked for; else it is only of use to know what descriptors are.
    pub is_shown: bool,
    /// Memory that was copied.
    pub pieces: Vec<Piece<'a>>,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// It returned.
    Returned(Outcome),
    /// It has not ended yet.
    Unfinished,
    /// Its thread has ended in it.
    ThreadEnded,
}

impl SystemCall<'_> {
    /// What it gave back, if it returned without an error.
    pub fn value(&self) -> Option<i64> {
        match self.end {
            CallEnd::Returned(Outcome::Value(value)) => Some(value),
            _ => None,
        }
    }

    /// Its error.
    pub fn error(&self) -> Option<u32> {
        match self.end {
            CallEnd::Returned(Outcome::Error(number)) => Some(number),
            _ => None,
        }
    }

    /// How long it took, if that is known.
    pub fn latency_ns(&self) -> Option<u64> {
        (!self.is_late).then(|| self.end_ns.saturating_sub(self.begin_ns))
    }

    /// The piece that was copied for a [`Take`] by its place among the call's.
    pub fn piece(&self, take: usize) -> Option<&Piece<'_>> {
        self.pieces.iter().find(|piece| piece.take == take)
    }
}

/// Memory that was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// For which [`Take`] of the call, by its place.
    pub take: usize,
    /// There is more of it.
    pub is_cut: bool,
    /// The bytes; of a string without its zero.
    pub bytes: &'a [u8],
}

/// Memory to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take {
    /// What says where it is.
    pub at: At,
    /// What it is.
    pub what: What,
    /// Whether it is there when the call has succeeded, and not when it begins.
    pub at_end: bool,
}

/// What says where memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// An argument.
    Argument(u8),
    /// An address at this place in what was copied for another take, which is before it.
    Field {
        /// The other take.
        take: u8,
        /// The place, below 64.
        place: u16,
    },
}

/// What memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Bytes up to a zero, at most so many.
    String {
        /// The most bytes, with the zero.
        most: u16,
    },
    /// A list of addresses of strings that ends with a zero.
    List,
    /// Elements of one size.
    Elements {
        /// Bytes of one.
        size: u16,
        /// How many there are.
        count: Count,
        /// The most bytes.
        most: u16,
    },
}

/// What says how many elements there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// There is one.
    One,
    /// An argument.
    Argument(u8),
    /// 32 bits that an argument has the address of.
    Behind(u8),
    /// What the call gives back.
    Result,
    /// 64 bits at this place of what the address was taken from.
    Field(u16),
}

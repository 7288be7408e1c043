//! Definitions shared by the program that traces system calls and its loader: which calls are wanted, and the record sent for each call.
//!
//! `cargo run -p xtask -- codegen` turns this file into `bpf/calls.h`, as it does `src/wire/`; the same rules hold.

/// Distinct system call numbers; a larger number counts as the last of them.
pub const NUMBERS: u32 = 512;
/// Entries of the table of wanted calls: first the 64-bit calls, then those of 32-bit programs.
pub const SPECS: u32 = 1024;
/// The most pieces of memory that are copied for one call.
pub const TAKES: u32 = 6;
/// The most bytes of one piece.
pub const PIECE_BYTES: u32 = 1024;
/// Bytes of a piece's head.
pub const PIECE_HEAD: u32 = 8;
/// The largest offset at which a piece may begin.
pub const PIECES_ROOM: u32 = 2048;
/// Bytes for all pieces: the last may begin at [`PIECES_ROOM`].
pub const DATA_BYTES: u32 = 3080;
/// The most strings of a list.
pub const LIST: u32 = 16;
/// The most bytes of one string of a list, with its terminating zero; a power of two.
pub const LIST_BYTES: u32 = 64;

/// Addresses and counts that refer to other pieces lie within this many bytes from the start of a piece; a power of two.
pub const FIELDS_BYTES: u32 = 64;

/// Bit of [`Wanted::what`]: calls are sent unless a filter drops them.
pub const WANT_SHOW: u32 = 1;
/// Bit of [`Wanted::what`]: successful calls are sent even if a filter drops them.
pub const WANT_TRACK: u32 = 2;
/// Bit of [`Wanted::what`]: the call executes another program.
pub const WANT_IS_EXEC: u32 = 4;
/// Bit of [`Wanted::what`]: the call returns in the child process too.
pub const WANT_IS_FORK: u32 = 8;

/// [`Take::how`]: bytes up to a zero byte.
pub const HOW_STRING: u8 = 1;
/// [`Take::how`]: [`Take::count`] times [`Take::size`] bytes.
pub const HOW_BYTES: u8 = 2;
/// [`Take::how`]: a list of string addresses that ends with a zero. The strings are copied with their zeros.
pub const HOW_LIST: u8 = 3;

/// [`Take::count`]: the result of the call is the number of elements.
pub const COUNT_RESULT: u8 = 6;
/// [`Take::count`]: there is one element.
pub const COUNT_ONE: u8 = 7;
/// [`Take::count`]: the 32-bit count is in memory at an address; this value plus an argument's number says which argument is the
/// address.
pub const COUNT_AT: u8 = 8;
/// [`Take::count`]: the count is the 64-bit word at [`Take::count_field`] of the other piece.
pub const COUNT_FIELD: u8 = 16;

/// No offset in a piece.
pub const NO_FIELD: u16 = 0xffff;

/// State of a piece: its bytes were read when the call began.
pub const PIECE_AT_BEGIN: u8 = 1;
/// State of a piece: its bytes were read when the call ended.
pub const PIECE_AT_END: u8 = 2;
/// Bit of a piece's state: the piece is truncated.
pub const PIECE_CUT: u8 = 128;

/// Flag of a call: it has not ended.
pub const CALL_UNFINISHED: u32 = 1;
/// Flag of a call: its thread has ended during it.
pub const CALL_THREAD_ENDED: u32 = 2;
/// Flag of a call: it had begun before tracing did, so its begin time is its end time.
pub const CALL_LATE: u32 = 4;
/// Flag of a call: made by a 32-bit program.
pub const CALL_COMPAT: u32 = 8;
/// Flag of a call: no filter drops it.
pub const CALL_SHOWN: u32 = 16;

/// Value in the task storage of followed processes: the process is followed.
pub const FOLLOW_NOW: u32 = 1;
/// Value in the same storage: the process is followed from its next exec on.
pub const FOLLOW_FROM_EXEC: u32 = 2;

/// Index of a counter: wanted calls that have ended, or will never end.
pub const CALLS_SEEN: u32 = 0;
/// Index of a counter: those of [`CALLS_SEEN`] that did not fit into the ring.
pub const CALLS_DROPPED: u32 = 1;
/// Index of a counter: calls that a filter dropped.
pub const CALLS_KEPT: u32 = 2;
/// Index of a counter: calls for which no memory was available when they began. They are reported as late.
pub const CALLS_NO_MEMORY: u32 = 3;
/// Index of a counter: tracked calls that did not fit into the ring and are not in [`CALLS_DROPPED`].
pub const CALLS_UNTRACKED: u32 = 4;
/// Index of a counter: system calls of all processes that ran the programs, if these are counted.
pub const CALLS_MET: u32 = 5;

/// A piece of memory to copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Take {
    /// Number of the argument that holds the address, or of the piece that does if [`Take::field`] is set.
    pub arg: u8,
    /// Way of reading the memory: one of the `HOW_` constants.
    pub how: u8,
    /// Whether to copy when the call ends, if it succeeds, rather than when it begins.
    pub at_end: u8,
    /// Source of the number of elements: an argument's number or one of the `COUNT_` constants.
    pub count: u8,
    /// Bytes of an element.
    pub size: u16,
    /// The most bytes to copy.
    pub most: u16,
    /// Offset of the address in another piece; [`NO_FIELD`]: the address is an argument.
    pub field: u16,
    /// Offset of the count in another piece, or [`NO_FIELD`].
    pub count_field: u16,
}

/// The parts of a system call that the loader wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Wanted {
    /// `WANT_` bits; 0: the call is not wanted.
    pub what: u32,
    /// Number of pieces of memory to copy.
    pub takes: u32,
    /// The pieces.
    pub take: [Take; TAKES as usize],
}

/// A system call of a thread: kept until the call ends, then sent without the unused end of `data`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Call {
    /// Begin time, by the monotonic clock.
    pub begin_ns: u64,
    /// End time, by the same clock.
    pub end_ns: u64,
    /// Return value.
    pub result: i64,
    /// Arguments.
    pub args: [u64; 6],
    /// System call number.
    pub number: u32,
    /// `CALL_` flags.
    pub flags: u32,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Name of the thread when it began.
    pub comm: [u8; 16],
    /// Whether the call has begun and has not been sent.
    pub open: u32,
    /// Bit set of the pieces that could not be read when the call began.
    pub missed: u32,
    /// Used bytes of `data`.
    pub bytes: u32,
    /// Offset in `data` of the last piece whose address was an argument.
    pub last: u32,
    /// The pieces, each with a head.
    pub data: [u8; DATA_BYTES as usize],
}

/// The head of a piece, at a multiple of eight bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Piece {
    /// Index of the piece in [`Wanted::take`].
    pub take: u8,
    /// State: `PIECE_` constants.
    pub state: u8,
    /// Zero.
    pub zero: u16,
    /// Bytes of the piece.
    pub bytes: u32,
}

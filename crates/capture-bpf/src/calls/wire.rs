//! What the program that sees system calls and its loader share: which calls are wanted, and what is sent of one.
//!
//! `cargo run -p xtask -- codegen` turns this file into `bpf/calls.h`, as it does `src/wire/`; the same rules hold.

/// Numbers of system calls that are told apart; what is above counts as the last of them.
pub const NUMBERS: u32 = 512;
/// Entries of the table of what is wanted: calls of the machine's own programs, then those of 32-bit programs.
pub const SPECS: u32 = 1024;
/// The most pieces of memory that are copied of one call.
pub const TAKES: u32 = 6;
/// The most bytes of one piece.
pub const PIECE_BYTES: u32 = 1024;
/// The head of a piece.
pub const PIECE_HEAD: u32 = 8;
/// A piece may begin up to here.
pub const PIECES_ROOM: u32 = 2048;
/// Room for all of them: the last may begin at the end.
pub const DATA_BYTES: u32 = 3080;
/// The most strings of a list.
pub const LIST: u32 = 16;
/// The most bytes of one of them, with its zero; a power of two.
pub const LIST_BYTES: u32 = 64;

/// Addresses and counts that lead to other pieces are in so many bytes of a piece; a power of two.
pub const FIELDS_BYTES: u32 = 64;

/// Bit of [`Wanted::what`]: calls are sent if no filter keeps them.
pub const WANT_SHOW: u32 = 1;
/// Bit of [`Wanted::what`]: calls that succeed are sent whatever filters say.
pub const WANT_TRACK: u32 = 2;
/// Bit of [`Wanted::what`]: a call that begins another program.
pub const WANT_IS_EXEC: u32 = 4;
/// Bit of [`Wanted::what`]: a call that returns in the child too.
pub const WANT_IS_FORK: u32 = 8;

/// How memory is taken: up to a zero byte.
pub const HOW_STRING: u8 = 1;
/// So many bytes.
pub const HOW_BYTES: u8 = 2;
/// A list of addresses of strings, which ends with a zero: the strings with their zeros.
pub const HOW_LIST: u8 = 3;

/// [`Take::count`]: elements are counted by the result of the call.
pub const COUNT_RESULT: u8 = 6;
/// There is one element.
pub const COUNT_ONE: u8 = 7;
/// They are counted by the 32 bits that this and an argument's number more says the address of.
pub const COUNT_AT: u8 = 8;
/// They are counted by the 64 bits at [`Take::count_field`] of the other piece.
pub const COUNT_FIELD: u8 = 16;

/// No place in a piece.
pub const NO_FIELD: u16 = 0xffff;

/// State of a piece: so much could be read when the call began.
pub const PIECE_AT_BEGIN: u8 = 1;
/// When it ended.
pub const PIECE_AT_END: u8 = 2;
/// Bit of a piece's state: there is more of it.
pub const PIECE_CUT: u8 = 128;

/// Flag of a call: it has not ended.
pub const CALL_UNFINISHED: u32 = 1;
/// Flag of a call: its thread has ended in it.
pub const CALL_THREAD_ENDED: u32 = 2;
/// Flag of a call: it had begun before anybody looked; its beginning is its end.
pub const CALL_LATE: u32 = 4;
/// Flag of a call: of a 32-bit program.
pub const CALL_COMPAT: u32 = 8;
/// Flag of a call: no filter keeps it.
pub const CALL_SHOWN: u32 = 16;

/// Value in the storage of followed processes: it is followed.
pub const FOLLOW_NOW: u32 = 1;
/// It will be, from its next exec on.
pub const FOLLOW_FROM_EXEC: u32 = 2;

/// Index of a counter: calls that are wanted and have ended, or will not.
pub const CALLS_SEEN: u32 = 0;
/// Of these, those that found no room in the ring.
pub const CALLS_DROPPED: u32 = 1;
/// Those that filters kept.
pub const CALLS_KEPT: u32 = 2;
/// Calls whose beginning found no memory: they are seen as late.
pub const CALLS_NO_MEMORY: u32 = 3;
/// Tracked calls that found no room in the ring, and are not among those above.
pub const CALLS_UNTRACKED: u32 = 4;
/// System calls of everybody that the programs ran for, if these are counted.
pub const CALLS_MET: u32 = 5;

/// A piece of memory to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Take {
    /// Which argument says where it is, or which piece, if [`Take::field`] is one.
    pub arg: u8,
    /// How it is taken.
    pub how: u8,
    /// Whether when the call ends, if it succeeds, and not when it begins.
    pub at_end: u8,
    /// What says how many elements there are.
    pub count: u8,
    /// Bytes of an element.
    pub size: u16,
    /// The most bytes.
    pub most: u16,
    /// The address is at this place of another piece; [`NO_FIELD`]: it is an argument.
    pub field: u16,
    /// Place of the count, likewise.
    pub count_field: u16,
}

/// What is wanted of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Wanted {
    /// Bits; 0: it is not.
    pub what: u32,
    /// How many pieces of memory.
    pub takes: u32,
    /// Which.
    pub take: [Take; TAKES as usize],
}

/// A system call of a thread: what is remembered of it until it ends, and what is sent then, but for the data that is not
/// there.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Call {
    /// When it began, by the monotonic clock.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// What it gave back.
    pub result: i64,
    /// Its arguments.
    pub args: [u64; 6],
    /// Its number.
    pub number: u32,
    /// Flags.
    pub flags: u32,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Name of the thread when it began.
    pub comm: [u8; 16],
    /// Whether it has begun and not been sent.
    pub open: u32,
    /// Which pieces could not be read when it began: by bits.
    pub missed: u32,
    /// Bytes of data.
    pub bytes: u32,
    /// Where in it the last piece is whose address was an argument.
    pub last: u32,
    /// Pieces, each with a head.
    pub data: [u8; DATA_BYTES as usize],
}

/// The head of a piece. It begins at a multiple of eight bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Piece {
    /// Which of the wanted.
    pub take: u8,
    /// State.
    pub state: u8,
    /// Zero.
    pub zero: u16,
    /// Its bytes.
    pub bytes: u32,
}

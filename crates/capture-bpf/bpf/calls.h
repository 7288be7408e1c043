/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Made of src/calls/wire.rs, where it is said what all this means: cargo run -p xtask -- codegen */
#ifndef PLUMB_CALLS_H
#define PLUMB_CALLS_H

#define NUMBERS 512u
#define SPECS 1024u
#define TAKES 6u
#define PIECE_BYTES 1024u
#define PIECE_HEAD 8u
#define PIECES_ROOM 2048u
#define DATA_BYTES 3080u
#define LIST 16u
#define LIST_BYTES 64u
#define FIELDS_BYTES 64u
#define WANT_SHOW 1u
#define WANT_TRACK 2u
#define WANT_IS_EXEC 4u
#define WANT_IS_FORK 8u
#define HOW_STRING 1u
#define HOW_BYTES 2u
#define HOW_LIST 3u
#define COUNT_RESULT 6u
#define COUNT_ONE 7u
#define COUNT_AT 8u
#define COUNT_FIELD 16u
#define NO_FIELD 0xffffu
#define PIECE_AT_BEGIN 1u
#define PIECE_AT_END 2u
#define PIECE_CUT 128u
#define CALL_UNFINISHED 1u
#define CALL_THREAD_ENDED 2u
#define CALL_LATE 4u
#define CALL_COMPAT 8u
#define CALL_SHOWN 16u
#define FOLLOW_NOW 1u
#define FOLLOW_FROM_EXEC 2u
#define CALLS_SEEN 0u
#define CALLS_DROPPED 1u
#define CALLS_KEPT 2u
#define CALLS_NO_MEMORY 3u
#define CALLS_UNTRACKED 4u
#define CALLS_MET 5u

struct Take {
    u8 arg;
    u8 how;
    u8 at_end;
    u8 count;
    u16 size;
    u16 most;
    u16 field;
    u16 count_field;
};
_Static_assert(sizeof(struct Take) == 12, "Take");

struct Wanted {
    u32 what;
    u32 takes;
    struct Take take[TAKES];
};
_Static_assert(sizeof(struct Wanted) == 80, "Wanted");

struct Call {
    u64 begin_ns;
    u64 end_ns;
    s64 result;
    u64 args[6];
    u32 number;
    u32 flags;
    u32 pid;
    u32 tid;
    u8 comm[16];
    u32 open;
    u32 missed;
    u32 bytes;
    u32 last;
    u8 data[DATA_BYTES];
};
_Static_assert(sizeof(struct Call) == 3200, "Call");

struct Piece {
    u8 take;
    u8 state;
    u16 zero;
    u32 bytes;
};
_Static_assert(sizeof(struct Piece) == 8, "Piece");

#endif

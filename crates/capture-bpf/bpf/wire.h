/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Made of src/wire/, where it is said what all this means: cargo run -p xtask -- codegen */
#ifndef PLUMB_WIRE_H
#define PLUMB_WIRE_H

#define MAX_FRAMES 4096u
#define MAX_KERNEL_FRAMES 127u
#define CHUNK_BYTES 8388608u
#define MAX_CHUNKS 64u
#define MAX_MAPPINGS 64u
#define COPIED_TEXTS 4u
#define HINTS 128u
#define MAX_SPACES 4096u
#define MAX_FILES 8192u
#define MAX_PIECES 256u
#define TABLE_PIECES 8u
#define SEGMENTS 4u
#define MAX_SCRIPT_FRAMES 1024u
#define TOLD 16384u
#define SCRIPT_FRAME_BYTES 112u
#define SCRIPT_IDENTITY_WORDS 16u
#define SCRIPT_WORDS 20u
#define MAX_LAYOUTS 64u
#define CACHED_RULES 8192u
#define WINDOW_BYTES 1024u
#define WINDOW_ROOM 1032u
#define NO_WINDOW 0x8000000000000000ull
#define FILE_BITS 13u
#define FILE_NONE 0u
#define FILE_VDSO 1u
#define FILE_FIRST 2u
#define KIND_PLT 64u
#define KIND_SIGNAL 65u
#define KIND_SWITCH 66u
#define KIND_SP_WORD 67u
#define KIND_FP_WORD 68u
#define DRAP 0x8000u
#define STATE_UNKNOWN 0u
#define STATE_ASKED 1u
#define STATE_READY 2u
#define STATE_NONE 3u
#define STATE_MEMORY 4u
#define SCANNED_WORDS 512u
#define SCANNED_FRAMES 4u

struct Mapping {
    u64 start;
    u64 offset;
    u32 pages;
    u32 file;
};
_Static_assert(sizeof(struct Mapping) == 24, "Mapping");

struct CopiedText {
    u64 start;
    u64 offset;
    u32 file;
    u32 zero;
};
_Static_assert(sizeof(struct CopiedText) == 24, "CopiedText");

struct CopiedTexts {
    struct CopiedText all[COPIED_TEXTS];
};
_Static_assert(sizeof(struct CopiedTexts) == 96, "CopiedTexts");

struct Space {
    u64 mm;
    u64 birth;
    u64 script;
    u32 entered;
    u32 zero;
    u8 hints[HINTS];
    struct Mapping mappings[MAX_MAPPINGS];
};
_Static_assert(sizeof(struct Space) == 1696, "Space");

struct CachedRule {
    u64 mark;
    u64 rule;
};
_Static_assert(sizeof(struct CachedRule) == 16, "CachedRule");

struct RuleCache {
    struct CachedRule rules[CACHED_RULES];
};
_Static_assert(sizeof(struct RuleCache) == 131072, "RuleCache");

struct Window {
    u64 begin;
    u8 bytes[WINDOW_ROOM];
};
_Static_assert(sizeof(struct Window) == 1040, "Window");

struct FileKey {
    u64 inode;
    u64 size;
    u32 device;
    u32 generation;
};
_Static_assert(sizeof(struct FileKey) == 24, "FileKey");

struct Segment {
    u64 begin;
    u64 end;
    u64 delta;
};
_Static_assert(sizeof(struct Segment) == 24, "Segment");

struct File {
    u32 state;
    u32 chunk;
    u64 base;
    u64 end;
    u32 rules_at;
    u32 pages_at;
    u32 rows_at;
    u32 pages;
    u32 rows;
    u32 used;
    u32 next;
    u32 layout;
    u64 script;
    struct Segment segments[SEGMENTS];
};
_Static_assert(sizeof(struct File) == 160, "File");

struct ScriptLayout {
    u64 identity[SCRIPT_IDENTITY_WORDS];
    u32 identity_at;
    u32 code_bytes;
    u32 reader;
    u32 zero;
    u32 words[SCRIPT_WORDS];
};
_Static_assert(sizeof(struct ScriptLayout) == 224, "ScriptLayout");
#define CODE_BYTES 240u
#define NAME_BYTES 256u
#define FILE_BYTES 384u
#define LINES_BYTES 2048u
#define LINK_WORDS 32u
#define MESSAGE_SAMPLE 1u
#define MESSAGE_WANT 2u
#define MESSAGE_SPENT 3u
#define MESSAGE_CODE 4u
#define MESSAGE_TIME_OFF 5u
#define MESSAGE_HANDED_OVER 6u
#define MESSAGE_REGISTERS 7u
#define USER_REGISTERS 32u
#define MESSAGE_IN_CGROUP 8u
#define CGROUP_BYTES 1024u
#define CGROUP_LONG 32u
#define REGISTERS_INTERVAL_NS 4000000ull
#define UNTIL_EXEC 0u
#define UNTIL_END 1u
#define SAMPLE_IN_KERNEL 1u
#define SAMPLE_NO_USER 2u
#define SAMPLE_SCRIPT_CUT 4u
#define SAMPLE_STACK_ONLY 8u
#define SAMPLE_SCRIPT_ONLY 16u
#define NO_CALL 0xffffffffu
#define FRAME_NO_RETURN 0x8000000000000000ull
#define FRAME_LOOP 0x4000000000000000ull
#define FRAME_SCANNED 0x2000000000000000ull
#define FRAME_ASSUMED 0x1000000000000000ull
#define SCRIPT_ENTRY 1ull
#define SCRIPT_GENERATOR 2ull
#define SCRIPT_ROUND 4ull

struct Head {
    u32 kind;
    u32 cpu;
    u64 time_ns;
    u32 pid;
    u32 tid;
};
_Static_assert(sizeof(struct Head) == 24, "Head");

struct Sample {
    struct Head head;
    u64 period;
    u64 key;
    u32 user;
    u32 kernel;
    u32 flags;
    u32 script;
    u32 event;
    u32 call;
};
_Static_assert(sizeof(struct Sample) == 64, "Sample");

struct Want {
    struct Head head;
    u64 address;
    u32 file;
    u32 zero;
};
_Static_assert(sizeof(struct Want) == 40, "Want");

struct Code {
    struct Head head;
    u64 at;
    u64 name_at;
    u64 file_at;
    u64 lines_at;
    u32 identity;
    u32 code_bytes;
    u32 name_bytes;
    u32 file_bytes;
    u32 lines_bytes;
    u32 link_words;
    u64 links[LINK_WORDS];
    u8 code[CODE_BYTES];
    u8 name[NAME_BYTES];
    u8 file[FILE_BYTES];
    u8 lines[LINES_BYTES];
};
_Static_assert(sizeof(struct Code) == 3264, "Code");

struct Spent {
    struct Head head;
    u64 runtime_ns;
    u32 until;
    u32 zero;
};
_Static_assert(sizeof(struct Spent) == 40, "Spent");

struct InCgroup {
    struct Head head;
    u32 bytes;
    u32 zero;
};
_Static_assert(sizeof(struct InCgroup) == 32, "InCgroup");

struct HandedOver {
    struct Head head;
    u32 call;
    u32 zero;
};
_Static_assert(sizeof(struct HandedOver) == 32, "HandedOver");

struct Registers {
    struct Head head;
    u64 ip;
    u64 values[USER_REGISTERS];
    u32 event;
    u32 zero;
};
_Static_assert(sizeof(struct Registers) == 296, "Registers");

struct TimeOff {
    struct Head head;
    u64 key;
    u64 out_ns;
    u64 blocked_ns;
    u64 waited_ns;
};
_Static_assert(sizeof(struct TimeOff) == 56, "TimeOff");
#define MAX_COUNTS 16384u
#define DRAFTS 2u
#define COUNTER_OTHERS 0u
#define COUNTER_WHY 0u
#define COUNTERS 20u
#define WHY_UNMAPPED 1u
#define WHY_ANONYMOUS 2u
#define WHY_NO_TABLE 3u
#define WHY_ODD 4u
#define WHY_UNREADABLE 5u
#define WHY_NOT_ADVANCING 6u
#define WHY_TOO_DEEP 7u
#define WHY_EXEC 8u
#define WHY_NO_REGISTER 9u
#define WHY_ROOT 10u
#define WHY_RING_FULL 11u
#define WHY_NESTED 12u

struct Control {
    u64 since_ns;
    u32 follows_some;
    u32 began;
    u32 off_cpu;
    u32 ends;
};
_Static_assert(sizeof(struct Control) == 24, "Control");
#define MAX_PLACES 64u
#define PLACE_BURST 1000ull
#define PLACE_SCOPED 1u
#define PLACE_IN_KERNEL 2u
#define PLACE_LIMITED 4u
#define PLACE_OVER 8u

struct Place {
    u64 period;
    u64 interval_ns;
    u64 samples;
    u64 first_ns;
    u32 call;
    u32 flags;
};
_Static_assert(sizeof(struct Place) == 40, "Place");

struct Tally {
    u64 passed;
    u64 since;
    u64 gap;
    u64 last_ns;
    u64 lost;
};
_Static_assert(sizeof(struct Tally) == 40, "Tally");

struct CountKey {
    u64 key;
    u32 pid;
    u32 tid;
};
_Static_assert(sizeof(struct CountKey) == 16, "CountKey");

struct Count {
    u64 samples;
    u64 period;
    u64 time_ns;
};
_Static_assert(sizeof(struct Count) == 24, "Count");
#define MAX_OFF 65536u
#define OFF_SHORT 16u
#define OFF_SHORT_NS 17u
#define OFF_LOST 18u
#define OFF_LOST_NS 19u
#define OFF_NO_STACK 0ull
#define OFF_COPY 1ull
#define OFF_SINCE_BEGIN 2ull
#define OFF_KERNEL_FRAMES 64u
#define OFF_RUNNABLE 1u
#define OFF_HAS_USER 2u
#define OFF_HAS_USER_32 4u
#define PACE_BITS 27u
#define PACE_FIRST 1024ull
#define PACE_LAST 1073741824ull

struct Off {
    u64 out_ns;
    u64 woken_ns;
    u64 delay_ns;
    u64 charged_ns;
    u64 key;
    u32 pid;
    u32 ahead_ns;
};
_Static_assert(sizeof(struct Off) == 48, "Off");

struct OffThread {
    u32 pid;
    u32 tid;
    u64 time_ns;
    u32 flags;
    u32 kernel_frames;
    u32 call;
    u32 zero;
    u64 ip;
    u64 thread_pointer;
    u64 registers[USER_REGISTERS];
    u64 kernel[OFF_KERNEL_FRAMES];
};
_Static_assert(sizeof(struct OffThread) == 816, "OffThread");

struct ReplacedReturn {
    u32 tid;
    u32 zero;
    u64 at;
    u64 pc;
};
_Static_assert(sizeof(struct ReplacedReturn) == 24, "ReplacedReturn");

struct Pace {
    u64 since_ns;
    u64 last_ns;
    u64 switched_ns;
    u64 interval;
    u64 sums[2];
    u64 gaps[2];
    u32 stacks;
    u32 zero;
};
_Static_assert(sizeof(struct Pace) == 72, "Pace");
#define COMM_BYTES 16u
#define MAX_THREADS 16384u
#define STAT_CALLS 0u
#define STAT_USER 1u
#define STAT_KERNEL 2u
#define STAT_LOST 3u
#define STAT_LOST_NS 4u

struct ThreadKey {
    u32 tid;
    u8 comm[COMM_BYTES];
};
_Static_assert(sizeof(struct ThreadKey) == 20, "ThreadKey");

struct ThreadTime {
    u64 runtime_ns;
    u64 threads;
};
_Static_assert(sizeof(struct ThreadTime) == 16, "ThreadTime");
#define FAULTS_DROPPED 0u

struct Fault {
    u64 time_ns;
    u64 address;
    u32 pid;
    u32 tid;
};
_Static_assert(sizeof(struct Fault) == 24, "Fault");

#endif

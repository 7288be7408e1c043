/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Made of src/callsums/wire.rs, where it is said what all this means: cargo run -p xtask -- codegen */
#ifndef PLUMB_CALLSUMS_H
#define PLUMB_CALLSUMS_H

#define SUM_NUMBERS 512u
#define SUM_OTHERS 511u
#define BUCKETS 40u
#define TEXT_BYTES 64u
#define MAX_SUMS 16384u
#define MAX_ERRORS 16384u
#define PER_CALL 0u
#define PER_THREAD 1u
#define PER_PROCESS 2u
#define PER_FILE 3u
#define PER_PROCESS_ALONE 4u
#define MAX_PROCESS_SUMS 65536u
#define PARTS 8u
#define PART_BYTES 32u
#define MAX_NAMES 16384u
#define COUNT_NOW 1u
#define COUNT_FROM_EXEC 2u
#define CALL_FORKS 1u
#define CALL_TAKES_FILE 2u
#define CALL_TEXT_SHIFT 8u
#define SUM_MINOR 0u
#define SUM_MAJOR 1u
#define SUM_VOLUNTARY 2u
#define SUM_INVOLUNTARY 3u
#define SUM_ENDED 4u
#define SUM_LOST 5u

struct SumKey {
    u32 number;
    u32 who;
    u64 file;
};
_Static_assert(sizeof(struct SumKey) == 16, "SumKey");

struct ProcessCall {
    u32 number;
    u32 pid;
    u64 start_ns;
};
_Static_assert(sizeof(struct ProcessCall) == 16, "ProcessCall");

struct ProcessSum {
    u64 calls;
    u64 cpu_ns;
};
_Static_assert(sizeof(struct ProcessSum) == 16, "ProcessSum");

struct NameKey {
    u64 file;
    u32 device;
    u32 zero;
};
_Static_assert(sizeof(struct NameKey) == 16, "NameKey");

struct Part {
    u8 text[PART_BYTES];
};
_Static_assert(sizeof(struct Part) == 32, "Part");

struct Name {
    struct Part system;
    struct Part parts[PARTS];
};
_Static_assert(sizeof(struct Name) == 288, "Name");

struct ErrorKey {
    struct SumKey sum;
    u32 error;
    u32 zero;
};
_Static_assert(sizeof(struct ErrorKey) == 24, "ErrorKey");

struct Sum {
    u64 calls;
    u64 failed;
    u64 given;
    u64 timed;
    u64 wall_ns;
    u64 blocked_ns;
    u64 preempted_ns;
    u64 queued_ns;
    u64 longest_ns;
    u64 longest_end_ns;
    s64 longest_result;
    u64 longest_args[6];
    u32 longest_pid;
    u32 longest_tid;
    u8 longest_text[TEXT_BYTES];
    u64 buckets[BUCKETS];
};
_Static_assert(sizeof(struct Sum) == 528, "Sum");

struct InCall {
    u64 begin_ns;
    u64 out_ns;
    u64 woken_ns;
    u64 blocked_ns;
    u64 preempted_ns;
    u64 queued_ns;
    u64 was_preempted;
};
_Static_assert(sizeof(struct InCall) == 56, "InCall");

struct Before {
    u64 minor;
    u64 major;
    u64 voluntary;
    u64 involuntary;
};
_Static_assert(sizeof(struct Before) == 32, "Before");

#endif

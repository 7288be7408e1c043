/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Traces each system call of followed threads: begin and end, arguments and result, and the memory that the arguments point at.
 *
 * A call is assembled in its thread's storage and sent as it ends. The reader is not woken for each call: it polls often enough, and
 * is woken when the ring is a quarter full.
 *
 * Linux 7.0 and newer preempt programs at tracepoints, and skip a program for all threads of a CPU on which a preempted thread is in it
 * (commit a46023d5616e). There each program has a second one, which does what the first was skipped for. */
#include "kernel.h"
#include "wire.h"
#include "calls.h"
#include "follow.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set before loading: calls that take less time, or do not fail, are counted and not sent. */
const volatile u64 min_ns = 0;
const volatile u32 failed_only = 0;
const volatile u32 ring_bytes = 0;
/* Process of the reader. If all processes are followed, tracing its own calls would cause an endless loop. */
const volatile u32 own_pid = 0;
/* Whether the calls of all processes are counted, from which the programs' overhead is computed. */
const volatile u32 counts_met = 0;

/* include/linux/err.h */
#define MAX_ERRNO 4095

struct {
    UINT(type, BPF_MAP_TYPE_RINGBUF);
    UINT(max_entries, 1 << 24);
} ring SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, SPECS);
    TYPE(key, u32);
    TYPE(value, struct Wanted);
} wanted SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_TASK_STORAGE);
    UINT(map_flags, BPF_F_NO_PREALLOC);
    TYPE(key, int);
    TYPE(value, struct Call);
} calls SEC(".maps");

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
    struct task_struct *parent = (struct task_struct *)ctx[0];
    struct task_struct *child = (struct task_struct *)ctx[1];
    inherit(parent, child);
    return 0;
}

/* Appends one piece of memory to `call`. */
APART int take(struct Call *call, struct Take *take, u32 number, u32 at_end)
{
    if (!call || !take)
        return 0;
    u32 at = call->bytes;
    if (at > PIECES_ROOM)
        return 0;
    u64 address = 0, count = 1;
    u32 last = call->last;
    if (take->field != NO_FIELD) {
        if (last > PIECES_ROOM || call->data[last] != take->arg) {
            call->missed |= 1 << (number & 31);
            return 0;
        }
        address = *(u64 *)(call->data + last + PIECE_HEAD + (take->field & (FIELDS_BYTES - 1)));
    } else if (take->arg < 6) {
        address = call->args[take->arg];
    }
    if (!address)
        return 0;
    u32 by = take->count;
    if (by == COUNT_FIELD) {
        if (last > PIECES_ROOM)
            return 0;
        count = *(u64 *)(call->data + last + PIECE_HEAD + (take->count_field & (FIELDS_BYTES - 1)));
    } else if (by >= COUNT_AT && by < COUNT_AT + 6) {
        u32 length = 0;
        if (bpf_probe_read_user(&length, sizeof(length), (void *)call->args[by - COUNT_AT]))
            return 0;
        count = length;
    } else if (by == COUNT_RESULT) {
        count = call->result;
    } else if (by < 6) {
        count = call->args[by];
    }
    u32 most = take->most;
    if (most > PIECE_BYTES)
        most = PIECE_BYTES;
    struct Piece *piece = (struct Piece *)(call->data + at);
    u8 *to = call->data + at + PIECE_HEAD;
    u32 length = 0, state = at_end ? PIECE_AT_END : PIECE_AT_BEGIN;
    long error = 0;
    if (take->how == HOW_STRING) {
        error = bpf_probe_read_user_str(to, most, (void *)address);
        if (error > 0) {
            length = error - 1;
            if (error == most)
                state |= PIECE_CUT;
            error = 0;
        }
    } else if (take->how == HOW_LIST) {
        for (u32 i = 0; i < LIST; i++) {
            u64 string = 0;
            if (bpf_probe_read_user(&string, sizeof(string), (void *)(address + 8 * i))) {
                error = i ? 0 : -1;
                state |= PIECE_CUT;
                break;
            }
            if (!string)
                break;
            if (i == LIST - 1 || length > PIECE_BYTES - LIST_BYTES) {
                state |= PIECE_CUT;
                break;
            }
            long read = bpf_probe_read_user_str(to + length, LIST_BYTES, (void *)string);
            if (read < 0) {
                error = read;
                break;
            }
            length += read;
        }
    } else {
        u64 bytes = count > PIECE_BYTES ? PIECE_BYTES + 1 : count * take->size;
        if (bytes > most) {
            bytes = most;
            state |= PIECE_CUT;
        }
        length = at_most(bytes, PIECE_BYTES);
        error = bpf_probe_read_user(to, length, (void *)address);
    }
    if (error) {
        call->missed |= 1 << (number & 31);
        return 0;
    }
    if (length > PIECE_BYTES)
        length = PIECE_BYTES;
    piece->take = number;
    piece->state = state;
    piece->zero = 0;
    piece->bytes = length;
    if (take->field == NO_FIELD)
        call->last = at;
    call->bytes = at + PIECE_HEAD + ((length + 7) & ~7u);
    return 0;
}

/* Copies the pieces that are wanted at the beginning of a call, or at its end. Pieces that were not in memory at the beginning are
 * copied at the end, as the kernel has loaded them by then. */
INLINE void take_all(struct Call *call, struct Wanted *what, u32 at_end)
{
    u32 missed = call->missed;
    call->missed = 0;
    for (u32 i = 0; i < TAKES && i < what->takes; i++) {
        struct Take *one = &what->take[i];
        if (at_end ? (one->at_end && call->result >= 0) || missed & 1 << i : !one->at_end)
            take(call, one, i, at_end);
    }
}

INLINE struct Wanted *what_of(u32 number, u32 compat)
{
    u32 index = (number < NUMBERS ? number : NUMBERS - 1) + (compat ? NUMBERS : 0);
    return bpf_map_lookup_elem(&wanted, &index);
}

INLINE void fill(struct Call *call, struct task_struct *task, struct user_pt_regs *regs, u32 number, u32 compat)
{
    call->number = number;
    call->flags = compat ? CALL_COMPAT : 0;
    call->pid = NUMBER(task->tgid);
    call->tid = NUMBER(task->pid);
    call_arguments(call->args, regs, compat);
    call->missed = 0;
    call->bytes = 0;
    call->last = DATA_BYTES;
    bpf_probe_read_kernel(call->comm, sizeof(call->comm), &task->comm);
}

INLINE void count(u32 index)
{
    u64 *counter = bpf_map_lookup_elem(&counters, &index);
    if (counter)
        __sync_fetch_and_add(counter, 1);
}

/* Sends a call, unless a filter drops it. */
INLINE void send(struct Call *call, u32 what)
{
    int failed = call->result < 0 && call->result >= -MAX_ERRNO;
    int shown = what & WANT_SHOW && elapsed_ns(call->end_ns, call->begin_ns) >= min_ns && (!failed_only || failed);
    int tracked = what & WANT_TRACK && call->result >= 0;
    if (what & WANT_SHOW) {
        count(CALLS_SEEN);
        if (!shown)
            count(CALLS_KEPT);
    }
    if (!shown && !tracked)
        return;
    if (shown)
        call->flags |= CALL_SHOWN;
    u32 bytes = call->bytes;
    if (bytes > DATA_BYTES)
        bytes = DATA_BYTES;
    u64 size = bytes + __builtin_offsetof(struct Call, data);
    u64 before = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
    u64 wake = before < ring_bytes / 4 && before + size + 8 >= ring_bytes / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
    if (bpf_ringbuf_output(&ring, call, size, wake))
        count(shown ? CALLS_DROPPED : CALLS_UNTRACKED);
}

/* Claims a call for sending. Either the thread itself or the request for unfinished calls gets it, not both. */
INLINE int is_taken(struct Call *call)
{
    return __sync_val_compare_and_swap(&call->open, 1, 0) == 1;
}

/* struct pt_regs *regs, long id */
INLINE int enter(u64 *ctx, int again)
{
    struct Control *control = the_control();
    if (!control || !control->began)
        return 0;
    if (counts_met && !again)
        count(CALLS_MET);
    struct task_struct *task = bpf_get_current_task_btf();
    u32 number = ctx[1];
    u32 compat = IS_COMPAT(task);
    struct Wanted *what = what_of(number, compat);
    if (!what || !(what->what & (WANT_SHOW | WANT_TRACK | WANT_IS_EXEC)))
        return 0;
    if (control->follows_some) {
        u32 *follows = process_mark(task);
        if (!follows || (*follows == FOLLOW_FROM_EXEC && !(what->what & WANT_IS_EXEC)))
            return 0;
    } else if ((u32)NUMBER(task->tgid) == own_pid) {
        return 0;
    }
    struct Call *call = bpf_task_storage_get(&calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!call) {
        count(CALLS_NO_MEMORY);
        return 0;
    }
    if (again && call->open)
        return 0;
    fill(call, task, (struct user_pt_regs *)ctx[0], number, compat);
    if (what->takes && !compat)
        take_all(call, what, 0);
    call->begin_ns = bpf_ktime_get_ns();
    call->open = 1;
    return 0;
}

SEC("tp_btf/sys_enter")
int on_enter(u64 *ctx)
{
    return enter(ctx, 0);
}

SEC("tp_btf/sys_enter")
int on_enter_again(u64 *ctx)
{
    return enter(ctx, 1);
}

/* Returns whether the call began in an earlier run of the programs, so that its end was not seen. */
INLINE int is_stale(struct Call *call)
{
    struct Control *control = the_control();
    return control && call->begin_ns < control->since_ns;
}

/* Sends a call whose beginning was not seen: as it ends, or unfinished if `flags` say so. */
INLINE void late(struct task_struct *task, struct user_pt_regs *regs, s64 result, u32 flags)
{
    u64 now = bpf_ktime_get_ns();
    u32 number = CALL_NUMBER(regs), compat = IS_COMPAT(task);
    struct Wanted *what = what_of(number, compat);
    /* A new thread returns from a call that it never made. */
    if (!what || !what->what || (!flags && what->what & (WANT_IS_FORK | WANT_IS_EXEC)))
        return;
    struct Control *control = the_control();
    if (!control)
        return;
    if (control->follows_some) {
        u32 *follows = process_mark(task);
        if (!follows || *follows == FOLLOW_FROM_EXEC)
            return;
    } else if ((u32)NUMBER(task->tgid) == own_pid) {
        return;
    }
    struct Call *call = bpf_task_storage_get(&calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!call)
        return;
    fill(call, task, regs, number, compat);
    call->begin_ns = call->end_ns = now;
    call->result = result;
    call->flags |= CALL_LATE | flags;
    if (what->takes && !compat && !flags) {
        call->missed = ~0;
        take_all(call, what, 1);
    }
    send(call, what->what);
}

/* struct pt_regs *regs, long ret */
INLINE int leave(u64 *ctx)
{
    u64 now = bpf_ktime_get_ns();
    struct task_struct *task = bpf_get_current_task_btf();
    struct Call *call = bpf_task_storage_get(&calls, task, 0, 0);
    if (call && is_stale(call)) {
        call->open = 0;
        call = 0;
    }
    if (!call) {
        struct Control *control = the_control();
        if (control && control->began)
            late(task, (struct user_pt_regs *)ctx[0], ctx[1], 0);
        return 0;
    }
    if (!is_taken(call))
        return 0;
    call->end_ns = now;
    call->result = ctx[1];
    struct Wanted *what = what_of(call->number, call->flags & CALL_COMPAT);
    if (!what)
        return 0;
    if (what->what & WANT_IS_EXEC) {
        u32 *follows = process_mark(task);
        if (call->result && follows && *follows == FOLLOW_FROM_EXEC)
            return 0;
        if (follows)
            *follows = FOLLOW_NOW;
    }
    if (what->takes && !(call->flags & CALL_COMPAT))
        take_all(call, what, 1);
    send(call, what->what);
    return 0;
}

SEC("tp_btf/sys_exit")
int on_exit(u64 *ctx)
{
    return leave(ctx);
}

/* A call that the first has sent is open no more. */
SEC("tp_btf/sys_exit")
int on_exit_again(u64 *ctx)
{
    return leave(ctx);
}

INLINE void unfinished(struct Call *call, u32 flags)
{
    struct Wanted *what = what_of(call->number, call->flags & CALL_COMPAT);
    if (is_stale(call) || !what || !is_taken(call))
        return;
    call->end_ns = bpf_ktime_get_ns();
    call->result = 0;
    call->flags |= CALL_UNFINISHED | flags;
    send(call, flags ? what->what : what->what & WANT_SHOW);
}

/* struct task_struct *task */
SEC("tp_btf/sched_process_exit")
int on_end(u64 *ctx)
{
    struct Call *call = bpf_task_storage_get(&calls, bpf_get_current_task_btf(), 0, 0);
    if (call)
        unfinished(call, CALL_THREAD_ENDED);
    return 0;
}

/* struct bpf_iter_meta *meta, struct task_struct *task: sends the calls that have not ended. For a thread that has been asleep since
 * before the recording, the registers contain the call, if it is in one. Not when a whole machine is recorded: there most threads
 * sleep. */
SEC("iter/task")
int on_ask(u64 *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx[1];
    if (!task)
        return 0;
    struct Call *call = bpf_task_storage_get(&calls, task, 0, 0);
    if (call) {
        unfinished(call, 0);
        return 0;
    }
    struct Control *control = the_control();
    struct user_pt_regs *regs = (struct user_pt_regs *)bpf_task_pt_regs(task);
    /* A zombie has only the registers of its last call. */
    u32 state = NUMBER(task->__state);
    if (control && control->follows_some && state && !(state & TASK_DEAD) && !(NUMBER(task->flags) & PF_KTHREAD) && CALL_NUMBER(regs) >= 0)
        late(task, regs, 0, CALL_UNFINISHED);
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Aggregated system calls of followed threads: their number, failures and return values, and their duration on and off the CPU.
 *
 * Nothing is sent: user space reads the sums. Programs at system calls run only in a thread's own context, and the kernel runs none of
 * them twice on a CPU at once, so no other program interrupts one while it adds to its CPU's sums. Where the kernel preempts programs
 * (trace.bpf.c), a second one does what the first was skipped for.
 *
 * Page faults and context switches are the kernel's own counts: no program runs at them. */
#include "kernel.h"
#include "wire.h"
#include "callsums.h"
#include "follow.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set before loading. */
const volatile u32 per = PER_CALL;
/* Number of the call that returns to code that a signal interrupted. Its registers have no call number any more when it ends. */
const volatile u32 sigreturn = 0;

/* include/linux/err.h */
#define MAX_ERRNO 4095

struct {
    UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    UINT(max_entries, SUM_NUMBERS);
    TYPE(key, u32);
    TYPE(value, struct Sum);
} sums SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_PERCPU_HASH);
    UINT(max_entries, MAX_SUMS);
    UINT(map_flags, BPF_F_NO_PREALLOC);
    TYPE(key, struct SumKey);
    TYPE(value, struct Sum);
} sums_apart SEC(".maps");

/* The initial value of a sum, which is too large for the stack. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct Sum);
} nothing SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_HASH);
    UINT(max_entries, MAX_ERRORS);
    UINT(map_flags, BPF_F_NO_PREALLOC);
    TYPE(key, struct ErrorKey);
    TYPE(value, u64);
} errors SEC(".maps");

/* Properties of each system call number: CALL_ bits. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, SUM_NUMBERS);
    TYPE(key, u32);
    TYPE(value, u32);
} known SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_TASK_STORAGE);
    UINT(map_flags, BPF_F_NO_PREALLOC);
    TYPE(key, int);
    TYPE(value, struct InCall);
} in_call SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_TASK_STORAGE);
    UINT(map_flags, BPF_F_NO_PREALLOC);
    TYPE(key, int);
    TYPE(value, struct Before);
} before SEC(".maps");

/* The last task that a CPU met, and whether it is counted: looking that up takes as long as all the rest of a counted call. */
struct met_last {
    u64 task;
    u32 pid;
    u32 generation;
    u32 counts;
    u32 zero;
};

struct {
    UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    UINT(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct met_last);
} met SEC(".maps");

/* Changes whenever a task that was met may be counted differently from now on: at an exec, and before the recorder begins, which is
 * when it says which processes it follows. */
u32 generation = 0;

INLINE int is_counted(struct task_struct *task)
{
    struct Control *control = the_control();
    if (!control || !control->began)
        return 0;
    if (!control->follows_some)
        return 1;
    u32 *how = process_mark(task);
    return how && *how == COUNT_NOW;
}

/* Returns what is_counted does, mostly without a lookup. */
INLINE int is_counted_again(struct task_struct *task)
{
    u32 zero = 0;
    struct Control *control = the_control();
    struct met_last *last = bpf_map_lookup_elem(&met, &zero);
    if (!last || !control || !control->began)
        return 0;
    u32 now = generation;
    if (last->task == (u64)task && last->pid == (u32)NUMBER(task->pid) && last->generation == now)
        return last->counts;
    last->counts = is_counted(task);
    last->task = (u64)task;
    last->pid = NUMBER(task->pid);
    last->generation = now;
    return last->counts;
}

INLINE u32 number_of(struct task_struct *task, struct user_pt_regs *regs)
{
    s64 number = CALL_NUMBER(regs);
    if (number < 0)
        return sigreturn;
    if (number >= SUM_OTHERS || IS_COMPAT(task))
        return SUM_OTHERS;
    return number;
}

#include "sumfiles.h"

/* Fills in the key under which a call is counted. Returns whether it is counted. */
INLINE int key_of(struct task_struct *task, u32 number, struct user_pt_regs *regs, struct SumKey *key)
{
    key->number = number;
    key->who = 0;
    key->file = 0;
    if (per == PER_THREAD)
        key->who = NUMBER(task->pid);
    else if (per == PER_PROCESS)
        key->who = NUMBER(task->tgid);
    else if (per == PER_FILE)
        return file_of(task, number, CALL_ARGUMENT_0(regs), key);
    return 1;
}

INLINE struct Sum *sum_of(struct SumKey *key)
{
    if (per == PER_CALL)
        return bpf_map_lookup_elem(&sums, &key->number);
    struct Sum *sum = bpf_map_lookup_elem(&sums_apart, key);
    if (sum)
        return sum;
    u32 zero = 0;
    struct Sum *none = bpf_map_lookup_elem(&nothing, &zero);
    if (none)
        bpf_map_update_elem(&sums_apart, key, none, BPF_NOEXIST);
    return bpf_map_lookup_elem(&sums_apart, key);
}

INLINE void count_error(struct SumKey *sum, u32 error)
{
    struct ErrorKey key = { .sum = *sum, .error = error };
    u64 *count = bpf_map_lookup_elem(&errors, &key);
    if (!count) {
        u64 none = 0;
        bpf_map_update_elem(&errors, &key, &none, BPF_NOEXIST);
        count = bpf_map_lookup_elem(&errors, &key);
    }
    if (count)
        __sync_fetch_and_add(count, 1);
}

/* Returns whether a call creates a thread. The new thread returns 0 from that call, which it never made. */
INLINE int forks(u32 number)
{
    u32 *what = bpf_map_lookup_elem(&known, &number);
    return what && *what & CALL_FORKS;
}

/* Counts a call that has ended. Returns its sum, or 0 if it has none. */
INLINE struct Sum *counted(struct task_struct *task, u32 number, struct user_pt_regs *regs, s64 result)
{
    if (!result && forks(number))
        return 0;
    struct SumKey key;
    if (!key_of(task, number, regs, &key))
        return 0;
    struct Sum *sum = sum_of(&key);
    if (!sum) {
        add(SUM_LOST, 1);
        return 0;
    }
    sum->calls++;
    if (result > 0) {
        sum->given += result;
    } else if (result < 0 && result >= -MAX_ERRNO) {
        sum->failed++;
        count_error(&key, -result);
    }
    return sum;
}

/* struct pt_regs *regs, long ret */
SEC("tp_btf/sys_exit")
int on_count(u64 *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct user_pt_regs *regs = (struct user_pt_regs *)ctx[0];
    if (is_counted_again(task))
        counted(task, number_of(task, regs), regs, ctx[1]);
    return 0;
}

INLINE int enter(int again)
{
    struct task_struct *task = bpf_get_current_task_btf();
    /* Only counted threads have this storage. */
    struct InCall *call = bpf_task_storage_get(&in_call, task, 0, 0);
    if (!call) {
        if (!is_counted(task))
            return 0;
        call = bpf_task_storage_get(&in_call, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
        if (!call)
            return 0;
    }
    if (again && call->begin_ns)
        return 0;
    call->blocked_ns = 0;
    call->preempted_ns = 0;
    call->queued_ns = 0;
    call->out_ns = 0;
    call->begin_ns = bpf_ktime_get_ns();
    return 0;
}

/* struct pt_regs *regs, long id */
SEC("tp_btf/sys_enter")
int on_enter(u64 *ctx)
{
    return enter(0);
}

SEC("tp_btf/sys_enter")
int on_enter_again(u64 *ctx)
{
    return enter(1);
}

/* Returns the position of the highest set bit, counted from 0. */
INLINE u32 log2_of(u64 value)
{
    u32 bits = 0;
#define HALVE(n) if (value >> n) { value >>= n; bits += n; }
    HALVE(32) HALVE(16) HALVE(8) HALVE(4) HALVE(2) HALVE(1)
#undef HALVE
    return bits;
}

/* Records the longest call with its arguments, which are still in the registers. */
INLINE void remember(struct Sum *sum, struct task_struct *task, struct user_pt_regs *regs, u64 now, u32 number)
{
    sum->longest_end_ns = now;
    sum->longest_pid = NUMBER(task->tgid);
    sum->longest_tid = NUMBER(task->pid);
    call_arguments(sum->longest_args, regs, 0);
    sum->longest_text[0] = 0;
    u32 *what = bpf_map_lookup_elem(&known, &number);
    u32 text = what ? *what >> CALL_TEXT_SHIFT : 0;
    u64 at = text == 1 ? CALL_ARGUMENT_0(regs) : text == 2 ? CALL_ARGUMENT_1(regs) : 0;
    if (at && bpf_probe_read_user_str(sum->longest_text, TEXT_BYTES, (void *)at) < 0)
        sum->longest_text[0] = 0;
}

/* Accounts for the time off the CPU of a thread that was switched out in a call and runs again. */
INLINE void is_back(struct InCall *call, u64 now)
{
    u64 off = elapsed_ns(now, call->out_ns);
    if (call->was_preempted) {
        call->preempted_ns += off;
    } else {
        u64 queued = call->woken_ns ? elapsed_ns(now, call->woken_ns) : 0;
        call->queued_ns += queued;
        call->blocked_ns += elapsed_ns(off, queued);
    }
    call->out_ns = 0;
}

#include "processsums.h"

INLINE int leave(u64 *ctx, int again)
{
    u64 now = bpf_ktime_get_ns();
    struct task_struct *task = bpf_get_current_task_btf();
    struct user_pt_regs *regs = (struct user_pt_regs *)ctx[0];
    struct InCall *call = bpf_task_storage_get(&in_call, task, 0, 0);
    if (again ? !call || !call->begin_ns : !call && !is_counted(task))
        return 0;
    u32 number = number_of(task, regs);
    if (per == PER_PROCESS_ALONE)
        return count_for_process(task, number, ctx[1], call, now);
    struct Sum *sum = counted(task, number, regs, ctx[1]);
    if (!call || !call->begin_ns)
        return 0;
    u64 wall = elapsed_ns(now, call->begin_ns);
    call->begin_ns = 0;
    /* The kernel does not report every switch (offcpu.h), but here the thread runs again. */
    if (call->out_ns)
        is_back(call, now);
    if (!sum)
        return 0;
    sum->timed++;
    sum->wall_ns += wall;
    if (call->blocked_ns | call->preempted_ns | call->queued_ns) {
        sum->blocked_ns += call->blocked_ns;
        sum->preempted_ns += call->preempted_ns;
        sum->queued_ns += call->queued_ns;
    }
    u32 bucket = log2_of(wall);
    if (bucket < BUCKETS)
        sum->buckets[bucket]++;
    if (wall > sum->longest_ns) {
        sum->longest_ns = wall;
        sum->longest_result = ctx[1];
        remember(sum, task, regs, now, number);
    }
    return 0;
}

/* struct pt_regs *regs, long ret */
SEC("tp_btf/sys_exit")
int on_time(u64 *ctx)
{
    return leave(ctx, 0);
}

/* The first leaves no call that has begun. */
SEC("tp_btf/sys_exit")
int on_time_again(u64 *ctx)
{
    return leave(ctx, 1);
}

SEC("tp_btf/sched_wakeup")
int on_wakeup(u64 *ctx)
{
    struct InCall *call = bpf_task_storage_get(&in_call, (struct task_struct *)ctx[0], 0, 0);
    if (call && call->out_ns && !call->woken_ns)
        call->woken_ns = bpf_ktime_get_ns();
    return 0;
}

/* bool preempt, prev, next, unsigned prev_state (the last since Linux 5.18) */
SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
    struct InCall *out = bpf_task_storage_get(&in_call, (struct task_struct *)ctx[1], 0, 0);
    if (out && out->begin_ns) {
        out->out_ns = bpf_ktime_get_ns();
        out->woken_ns = 0;
        out->was_preempted = ctx[0] & 0xff || !(u32)ctx[3];
    }
    struct InCall *in = bpf_task_storage_get(&in_call, (struct task_struct *)ctx[2], 0, 0);
    if (in && in->out_ns)
        is_back(in, bpf_ktime_get_ns());
    return 0;
}

#include "sumlives.h"

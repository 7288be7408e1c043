/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Time that threads spend off the CPU, the part of it that is run-queue wait, and the stack.
 *
 * A followed thread that is switched out is remembered until it runs again. Its stack does not change in between. While few threads
 * leave the CPU, the stack is walked as the thread leaves, so that it is also known of threads that do not come back; otherwise as the
 * thread comes back, if its time is one that gets a stack. Times are counted by stack, as samples are. For a stack that can't be
 * walked a record with a copy is written.
 *
 * Every nanosecond is counted once: for its own stack, for the next stack that is taken after many short times, as too short, or as
 * lost.
 *
 * Elsewhere: the walk (walk.h); times that had begun before the recording, or are still going on as it ends (offlooks.h). */
#ifndef PLUMB_OFFCPU_H
#define PLUMB_OFFCPU_H

/* Set before loading: shorter times, in nanoseconds, are only counted; the most stacks of a CPU in its window of time; whether stacks
 * are walked, or all copied. */
const volatile u64 min_ns = 0;
const volatile u32 most_stacks = 1;
const volatile u32 walks = 1;

/* Upper bound for a charge ahead of a switch: the time of one switch is far less. */
#define MOST_AHEAD_NS 1000000ull

/* By thread: the threads that are or were off the CPU. */
struct {
    UINT(type, BPF_MAP_TYPE_HASH);
    UINT(max_entries, MAX_OFF);
    UINT(map_flags, BPF_F_NO_PREALLOC);
    TYPE(key, u32);
    TYPE(value, struct Off);
} off SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    UINT(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct Pace);
} paces SEC(".maps");

/* The events that write records with stack copies. */
struct {
    UINT(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
    UINT(max_entries, 1024);
    UINT(key_size, 4);
    UINT(value_size, 4);
} copiers SEC(".maps");

INLINE struct Pace *the_pace(void)
{
    u32 zero = 0;
    return bpf_map_lookup_elem(&paces, &zero);
}

/* Notes that a stack is taken. The interval between stacks grows while they are too many, and shrinks while they are few. */
APART int note_stack(u64 now)
{
    struct Pace *pace = the_pace();
    if (!pace)
        return 0;
    u64 windows = elapsed_ns(now, pace->since_ns) >> PACE_BITS;
    pace->last_ns = now;
    if (windows) {
        if (2 * pace->stacks > most_stacks)
            windows--;
        pace->interval = windows < 32 ? pace->interval >> windows : 0;
        if (pace->interval < PACE_FIRST)
            pace->interval = 0;
        pace->since_ns = now;
        pace->stacks = 0;
    }
    pace->stacks++;
    if (pace->stacks <= most_stacks)
        return 0;
    if (pace->interval < PACE_LAST)
        pace->interval = pace->interval ? 2 * pace->interval : PACE_FIRST;
    pace->since_ns = now;
    pace->stacks = 0;
    return 0;
}

/* Returns the sum at which the next stack is due. Gaps vary, because with equal gaps alternating times would be sampled unevenly. */
INLINE u64 next_gap(struct Pace *pace)
{
    return pace->interval / 2 + (bpf_get_prandom_u32() * pace->interval >> 32);
}

/* Returns the time that a stack represents if it is taken for a thread that was off for `time`; 0: take no stack. `kind` 0 is blocked
 * time, 1 run-queue wait.
 *
 * Times are laid end to end, and a stack is taken where a gap ends, for the gap. Long times are treated alike: if they were exempt
 * while the interval is short, short times would get the sum that long ones had accumulated before. */
APART u64 share(u32 kind, u64 time)
{
    struct Pace *pace = the_pace();
    if (!pace || !time)
        return time;
    kind &= 1;
    u64 interval = pace->interval, sum = pace->sums[kind] + time, gap = pace->gaps[kind];
    if (!interval) {
        pace->sums[kind] = 0;
        pace->gaps[kind] = 0;
        return sum;
    }
    if (!gap)
        gap = next_gap(pace);
    u64 due = 0;
    if (sum >= gap) {
        due = gap + (sum - gap) / interval * interval;
        gap = next_gap(pace);
        if (sum - due >= gap) {
            due += gap;
            gap = next_gap(pace);
        }
    }
    pace->sums[kind] = sum - due;
    pace->gaps[kind] = gap;
    return due;
}

/* Walks the stack of the current task, and sends it unless that was recently done. Returns its key, or OFF_COPY; with `later`,
 * OFF_NO_STACK if the walk may succeed when the task comes back. */
INLINE u64 look_at_stack(void *ctx, struct task_struct *task, struct Control *control, int later)
{
    if (!walks)
        return OFF_COPY;
    struct walking walking = {};
    u32 why = WHY_NESTED;
    u64 key = OFF_COPY;
    walking.draft = claim(&walking.walk.slot);
    if (walking.draft) {
        walking.begun = begin_where_left(&walking.walk, task);
        why = take(ctx, task, &walking, SAMPLE_IN_KERNEL | SAMPLE_STACK_ONLY, 0, 0);
        if (why == WHY_ROOT)
            key = walking.draft->sample.key;
        give_back(walking.draft);
    }
    /* The tables have been requested. */
    if (later && (why == WHY_NO_TABLE || why == WHY_UNMAPPED))
        return OFF_NO_STACK;
    if (control->began)
        add(COUNTER_WHY + (why & 15), 1);
    return key;
}

INLINE int copy_stack(void *ctx)
{
    u64 nothing = 0;
    return bpf_perf_event_output(ctx, &copiers, BPF_F_CURRENT_CPU, &nothing, sizeof(nothing));
}

/* Returns the CPU time that a task that leaves was charged for before it had come back. Where a thread is woken and preempts another
 * one, or ends idling, the kernel does not read the clock again as it switches (`rq_clock_skip_update`): then the CPU time begins with
 * the wakeup, some 15 us earlier. That time is not off-CPU time, but this is known only now, so the next time off is reported shorter
 * by as much. */
INLINE u32 charged_ahead(struct Off *known, u64 charged, u64 now)
{
    if (!known || known->out_ns)
        return 0;
    u64 ahead = charged - now - known->charged_ns;
    /* The difference is negative if the task was charged less because of interrupts. */
    return ahead < MOST_AHEAD_NS ? ahead : 0;
}

/* The current task is switched out: bool preempt, prev, next, unsigned prev_state (the last since Linux 5.18). `comes_back`: its return
 * is reported too. */
INLINE void goes(u64 *ctx, int comes_back)
{
    struct task_struct *task = bpf_get_current_task_btf();
    u32 tid = NUMBER(task->pid), state = ctx[3];
    struct Control *control = the_control();
    struct Pace *pace = the_pace();
    if (!pace || !control || !control->off_cpu)
        return;
    u64 now = bpf_ktime_get_ns(), key = OFF_NO_STACK;
    pace->switched_ns = now;
    if (!tid || !is_followed(control, task))
        return;
    if (state & TASK_DEAD) {
        bpf_map_delete_elem(&off, &tid);
        return;
    }
    if (now - pace->last_ns >= pace->interval) {
        note_stack(now);
        key = look_at_stack(ctx, task, control, comes_back);
        if (key == OFF_COPY && !comes_back && control->began)
            copy_stack(ctx);
    }
    /* Before the recording begins, it is not decided which processes are followed. */
    if (!control->began)
        return;
    u64 could_run = ctx[0] & 0xff || !state;
    struct Off one = { .out_ns = now, .woken_ns = could_run ? now : 0, .key = key, .pid = NUMBER(task->tgid) };
    one.charged_ns = NUMBER(task->se.sum_exec_runtime);
    if (comes_back)
        one.delay_ns = OPTIONAL(task->sched_info.run_delay, 0);
    struct Off *known = bpf_map_lookup_elem(&off, &tid);
    one.ahead_ns = charged_ahead(known, one.charged_ns, now);
    if (known)
        *known = one;
    else if (bpf_map_update_elem(&off, &tid, &one, BPF_ANY))
        add(OFF_LOST, 1);
}

/* Counts time for a stack, in addition to what was counted for it. `end`: when the time ended. Returns whether there was space. */
INLINE int count_time(u64 key, u32 pid, u32 tid, u64 time, u64 end)
{
    struct CountKey at = { .key = key, .pid = pid, .tid = tid };
    struct Count *count = bpf_map_lookup_elem(&counts, &at);
    if (count) {
        count->time_ns = end;
        __sync_fetch_and_add(&count->period, time);
        __sync_fetch_and_add(&count->samples, 1);
        return 1;
    }
    struct Count first = { .samples = 1, .period = time, .time_ns = end };
    return !bpf_map_update_elem(&counts, &at, &first, BPF_NOEXIST);
}

/* Returns when a task that was off from `out` to `now` became runnable, by the scheduler's account of run-queue waits. */
INLINE u64 could_run_at(struct Off *one, struct task_struct *task, u64 out, u64 now)
{
    u64 delay = OPTIONAL(task->sched_info.run_delay, 0) - one->delay_ns;
    return delay < now - out ? now - delay : out;
}

/* Sends a time off the CPU. A time with the key OFF_COPY has no stack if no record follows. */
INLINE void send_time(void *ctx, struct TimeOff *time, int is_current)
{
    /* The stack may have been sent just now, and must come before the time. */
    time->head.time_ns = bpf_ktime_get_ns();
    if (bpf_ringbuf_output(&ring, time, sizeof(*time), wake())) {
        add(OFF_LOST, 1);
        add(OFF_LOST_NS, time->blocked_ns + time->waited_ns);
    } else if (is_current && time->key == OFF_COPY) {
        copy_stack(ctx);
    }
}

/* Reports that a task runs again. `is_current`: its stack can be walked. */
INLINE void is_back(void *ctx, struct task_struct *task, int is_current)
{
    u32 tid = NUMBER(task->pid);
    struct Pace *pace = the_pace();
    if (!pace)
        return;
    /* The kernel does not report every task that leaves (seen with threads of init): then the last one that it reported was another
     * task, possibly long ago. */
    u64 now = pace->switched_ns;
    pace->switched_ns = 0;
    if (!tid)
        return;
    struct Off *one = bpf_map_lookup_elem(&off, &tid);
    struct Control *control = the_control();
    if (!one || !control || !control->off_cpu)
        return;
    u64 woken = one->woken_ns, key = one->key;
    u32 pid = one->pid, ahead = one->ahead_ns;
    /* Read and cleared atomically: on_thread may count the time up to some moment and let the rest begin there. */
    u64 out = __sync_lock_test_and_set(&one->out_ns, 0);
    if (!out)
        return;
    now = now ?: bpf_ktime_get_ns();
    if (now < out)
        now = out;
    one->charged_ns -= now;
    if (is_current && !woken)
        woken = could_run_at(one, task, out, now);
    if (!woken || woken > now)
        woken = now;
    u64 blocked = woken - out, waited = now - woken;
    /* The scheduler's account of waiting does not contain that time either. */
    if (is_current)
        blocked -= blocked < ahead ? blocked : ahead;
    else
        waited -= waited < ahead ? waited : ahead;
    if (blocked < min_ns && waited < min_ns) {
        add(OFF_SHORT, 1);
        add(OFF_SHORT_NS, blocked + waited);
        return;
    }
    if (is_current) {
        blocked = share(0, blocked);
        waited = share(1, waited);
        if (!(blocked | waited))
            return;
        if (key == OFF_NO_STACK) {
            note_stack(now);
            key = look_at_stack(ctx, task, control, 0);
        }
        /* The record is written now. */
        if (key == OFF_COPY)
            out = bpf_ktime_get_ns();
    }
    if (key != OFF_COPY && (counting || key == OFF_NO_STACK)) {
        if (!blocked || count_time(key, pid, tid, blocked, woken))
            blocked = 0;
        if (!waited || count_time(key + 1, pid, tid, waited, now))
            waited = 0;
        if (!(blocked | waited))
            return;
    }
    struct TimeOff time = {
        .head = { .kind = MESSAGE_TIME_OFF, .pid = pid, .tid = tid },
        .key = key,
        .out_ns = out,
        .blocked_ns = blocked,
        .waited_ns = waited,
    };
    send_time(ctx, &time, is_current);
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
    goes(ctx, 1);
    return 0;
}

/* Runs in the task that was switched to, since Linux 6.15. */
SEC("tp_btf/sched_exit_tp")
int on_switched(u64 *ctx)
{
    is_back(ctx, bpf_get_current_task_btf(), 1);
    return 0;
}

/* Used instead of both where that tracepoint is missing, or the scheduler does not account for waiting. A stack is taken before it is
 * known for which time, and wakeups have to be observed. */
SEC("tp_btf/sched_wakeup")
int on_wakeup(u64 *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx[0];
    u32 tid = NUMBER(task->pid);
    struct Off *one = bpf_map_lookup_elem(&off, &tid);
    if (one && !one->woken_ns)
        one->woken_ns = bpf_ktime_get_ns();
    return 0;
}

SEC("tp_btf/sched_switch")
int on_switch_alone(u64 *ctx)
{
    goes(ctx, 0);
    is_back(ctx, (struct task_struct *)ctx[2], 0);
    return 0;
}

#endif

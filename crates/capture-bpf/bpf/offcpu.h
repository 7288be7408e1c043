/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* How long threads are off the processor, how much of that they could have run, and with which stack.
 *
 * A followed thread that is switched out is remembered until it runs again. Its stack is the same from then to then: it is walked when the thread goes, as long as few do, so that it is known of those that do
 * not come back; else as the thread comes back, if the time is one that gets a stack. Time is counted by stacks, as samples are. Of a
 * stack that can't be walked a record with a copy is written.
 *
 * Of threads that are off already when the recording begins nothing would be told before they run again, which one that hangs never does:
 * they are gone through then (`on_thread`), and again whenever what was measured so far is wanted: times that go on are counted up to then, and
 * begin anew.
 *
 * Every nanosecond is counted once: to its stack, to the next stack that is taken after many short times, as too short, or as lost.
 *
 * Not here: the walk. */
#ifndef PLUMB_OFFCPU_H
#define PLUMB_OFFCPU_H

/* Set before loading: what is shorter is only counted, in nanoseconds; the most stacks of a processor in its window of time; whether
 * stacks are walked, or all copied. */
const volatile u64 min_ns = 0;
const volatile u32 most_stacks = 1;
const volatile u32 walks = 1;

/* Times are counted before they end once they are as long as the first, and their stacks looked for as the second. */
#define COUNTED_EARLY_NS 1000000ull
#define LOOKED_AT_NS 1000000000ull

/* By thread: who is off, or was. */
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

/* The events that write records with copies. */
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

/* A stack is taken. Where they are too many, the interval between them grows; where they are few again, it shrinks. */
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

/* At which sum the next stack is due: not always after the same time, or times that alternate would be met unevenly. */
INLINE u64 next_gap(struct Pace *pace)
{
    return pace->interval / 2 + (bpf_get_prandom_u32() * pace->interval >> 32);
}

/* For which time a stack stands that was off for so long: `kind` 0 blocked, 1 waited. 0: it need not be taken.
 *
 * Times are laid end to end, and a stack is taken where a gap ends, for the gap. Long times are no exception: if they were left out
 * while the interval is short, what had summed up of them before would be paid by short ones. */
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

/* Walks the stack of the current task, and sends it unless that was done lately. Returns its key, or OFF_COPY; with `later`
 * OFF_NO_STACK if it may be possible then. */
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
    /* Tables are on their way. */
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

/* The current task is switched out: bool preempt, prev, next, unsigned prev_state (the last since Linux 5.18). `comes_back`: it is
 * said when it runs again. */
INLINE void goes(u64 *ctx, int comes_back)
{
    struct task_struct *task = bpf_get_current_task_btf();
    u32 tid = task->pid, state = ctx[3];
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
    /* Nobody is followed before it is said who. */
    if (!control->began)
        return;
    u64 could_run = ctx[0] & 0xff || !state;
    struct Off one = { .out_ns = now, .woken_ns = could_run ? now : 0, .key = key, .pid = task->tgid };
    if (comes_back)
        one.delay_ns = task->sched_info.run_delay;
    struct Off *known = bpf_map_lookup_elem(&off, &tid);
    if (known)
        *known = one;
    else if (bpf_map_update_elem(&off, &tid, &one, BPF_ANY))
        add(OFF_LOST, 1);
}

/* Counts time by a stack, even where it was counted before. Returns whether there was room. */
INLINE int count_time(u64 key, u32 pid, u32 tid, u64 time, u64 now)
{
    struct CountKey at = { .key = key, .pid = pid, .tid = tid };
    struct Count *count = bpf_map_lookup_elem(&counts, &at);
    if (count) {
        count->time_ns = now;
        __sync_fetch_and_add(&count->period, time);
        __sync_fetch_and_add(&count->samples, 1);
        return 1;
    }
    struct Count first = { .samples = 1, .period = time, .time_ns = now };
    return !bpf_map_update_elem(&counts, &at, &first, BPF_NOEXIST);
}

/* Since when a task could run that has been off from `out` to `now`, by the scheduler's account of waiting. */
INLINE u64 could_run_at(struct Off *one, struct task_struct *task, u64 out, u64 now)
{
    u64 delay = task->sched_info.run_delay - one->delay_ns;
    return delay < now - out ? now - delay : out;
}

/* A task runs again. `is_current`: its stack can be looked at. */
INLINE void is_back(void *ctx, struct task_struct *task, int is_current)
{
    u32 tid = task->pid;
    struct Pace *pace = the_pace();
    if (!pace)
        return;
    /* The kernel does not tell of every task that goes (seen of threads of init): the last that it told of was
     * another then, and may have been long ago. */
    u64 now = pace->switched_ns;
    pace->switched_ns = 0;
    if (!tid)
        return;
    struct Off *one = bpf_map_lookup_elem(&off, &tid);
    struct Control *control = the_control();
    if (!one || !control || !control->off_cpu)
        return;
    u64 woken = one->woken_ns, key = one->key;
    u32 pid = one->pid;
    /* At once: what of it was counted up to some moment began anew then. */
    u64 out = __sync_lock_test_and_set(&one->out_ns, 0);
    if (!out)
        return;
    now = now ?: bpf_ktime_get_ns();
    if (now < out)
        now = out;
    if (is_current && !woken)
        woken = could_run_at(one, task, out, now);
    if (!woken || woken > now)
        woken = now;
    u64 blocked = woken - out, waited = now - woken;
    if (blocked < min_ns && waited < min_ns) {
        add(OFF_SHORT, 1);
        add(OFF_SHORT_NS, now - out);
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
        /* The record comes now. */
        if (key == OFF_COPY)
            out = bpf_ktime_get_ns();
    }
    if (key != OFF_COPY && (counting || key == OFF_NO_STACK)) {
        if (!blocked || count_time(key, pid, tid, blocked, now))
            blocked = 0;
        if (!waited || count_time(key + 1, pid, tid, waited, now))
            waited = 0;
        if (!(blocked | waited))
            return;
    }
    struct TimeOff time = {
        .head = { .kind = MESSAGE_TIME_OFF, .time_ns = now, .pid = pid, .tid = tid },
        .key = key,
        .out_ns = out,
        .blocked_ns = blocked,
        .waited_ns = waited,
    };
    if (bpf_ringbuf_output(&ring, &time, sizeof(time), wake())) {
        add(OFF_LOST, 1);
        add(OFF_LOST_NS, blocked + waited);
    } else if (is_current && key == OFF_COPY) {
        /* Without a record the time has no stack. */
        copy_stack(ctx);
    }
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
    goes(ctx, 1);
    return 0;
}

/* In the task that was switched to, since Linux 6.15. */
SEC("tp_btf/sched_exit_tp")
int on_switched(u64 *ctx)
{
    is_back(ctx, bpf_get_current_task_btf(), 1);
    return 0;
}

/* Instead of both where there is no such tracepoint, or the scheduler keeps no account of waiting: a stack is taken before it is known
 * for which time, and it has to be seen when threads are woken. */
SEC("tp_btf/sched_wakeup")
int on_wakeup(u64 *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx[0];
    u32 tid = task->pid;
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

/* The one that is looked at. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct OffThread);
} off_thread SEC(".maps");

/* Where a task left user code, which is what its stack goes on from. */
INLINE void user_part(struct task_struct *task, struct OffThread *thread)
{
    if (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER) || !mm_of(task))
        return;
    /* Nothing is where DWARF's numbers are in the order of the structure. */
    struct user_pt_regs *regs = (struct user_pt_regs *)bpf_task_pt_regs(task);
    u16 code = regs->cs;
    thread->flags |= code == 0x33 ? OFF_HAS_USER : code == 0x23 ? OFF_HAS_USER_32 : 0;
    thread->ip = regs->ip;
    /* Written as the task was switched out. */
    thread->thread_pointer = task->thread.fsbase;
    u64 *to = thread->registers;
    to[0] = regs->ax, to[1] = regs->dx, to[2] = regs->cx, to[3] = regs->bx;
    to[4] = regs->si, to[5] = regs->di, to[6] = regs->bp, to[7] = regs->sp;
    to[8] = regs->r8, to[9] = regs->r9, to[10] = regs->r10, to[11] = regs->r11;
    to[12] = regs->r12, to[13] = regs->r13, to[14] = regs->r14, to[15] = regs->r15;
}

/* The key of a stack that was looked at: another one each time, as what is told of the time before may not have been read yet. */
INLINE u64 key_of_look(u64 now)
{
    return now << 2 | OFF_SINCE_BEGIN;
}

/* A time that goes on is counted up to now, and begins anew. Returns whether the thread's stack is wanted: it was not walked as it went. */
INLINE int count_so_far(struct Off *one, struct Control *control, u32 tid, u64 now)
{
    u64 out = one->out_ns;
    u32 pid = one->pid;
    /* Who waits for a processor comes back soon; of a time that has just begun the rest may not be written yet. */
    if (!out || one->woken_ns || now < out + COUNTED_EARLY_NS)
        return 0;
    if (one->key == OFF_NO_STACK || one->key == OFF_COPY) {
        if (!control->ends && now < out + LOOKED_AT_NS)
            return 0;
        /* It may come back now, and then says itself where it was. */
        one->key = key_of_look(now);
        return 1;
    }
    u64 key = one->key;
    if (!counting || __sync_val_compare_and_swap(&one->out_ns, out, now) != out)
        return 0;
    if (!count_time(key, pid, tid, now - out, now)) {
        add(OFF_LOST, 1);
        add(OFF_LOST_NS, now - out);
    }
    return 0;
}

/* Called for each thread, once the recording has begun: who goes from then on is told by `goes`, so that who is off and not known has been
 * since before. */
SEC("iter/task")
int on_thread(u64 *ctx)
{
    struct bpf_iter_meta *meta = (struct bpf_iter_meta *)ctx[0];
    struct task_struct *task = (struct task_struct *)ctx[1];
    u32 zero = 0;
    struct Control *control = the_control();
    struct OffThread *thread = bpf_map_lookup_elem(&off_thread, &zero);
    if (!task || !control || !thread || !control->began || !control->off_cpu || !is_followed(control, task))
        return 0;
    /* Of a whole machine those of the kernel that have nothing to do would be most of what is shown. */
    if (!control->follows_some && task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
        return 0;
    u32 state = task->__state, tid = task->pid;
    if (task->on_cpu || state & TASK_DEAD)
        return 0;
    u64 now = bpf_ktime_get_ns();
    struct Off *known = bpf_map_lookup_elem(&off, &tid);
    int is_known = known && known->out_ns;
    u64 key = known ? known->key : OFF_NO_STACK;
    if (is_known && !count_so_far(known, control, tid, now))
        return 0;
    struct Off one = {
        .out_ns = now,
        .woken_ns = state ? 0 : now,
        .delay_ns = task->sched_info.run_delay,
        .key = key_of_look(now),
        .pid = task->tgid,
    };
    thread->pid = task->tgid;
    thread->tid = tid;
    thread->time_ns = now;
    thread->flags = state ? 0 : OFF_RUNNABLE;
    user_part(task, thread);
    long bytes = bpf_get_task_stack(task, thread->kernel, sizeof(thread->kernel), 0);
    thread->kernel_frames = bytes > 0 ? bytes / 8 : 0;
    if (!is_known) {
        if (bpf_map_update_elem(&off, &tid, &one, BPF_NOEXIST))
            return 0;
        /* It came back meanwhile, and nobody will say so. */
        known = bpf_map_lookup_elem(&off, &tid);
        if (task->on_cpu && known && known->out_ns == now) {
            known->out_ns = 0;
            return 0;
        }
    }
    /* Where the piece that is being read has no more room it is called again for the same thread, with the next piece. */
    if (bpf_seq_write(meta->file, thread, sizeof(*thread))) {
        if (is_known)
            known->key = key;
        else
            bpf_map_delete_elem(&off, &tid);
    }
    return 0;
}

#endif

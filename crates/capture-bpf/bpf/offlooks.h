/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Looks at threads while they are off the CPU.
 *
 * Threads that are already off when the recording begins would be unknown until they run again, which a thread that hangs never does.
 * Therefore all threads are iterated over then (`on_thread`), and again whenever interim results are wanted: times that are going on
 * are counted up to that moment, and restart there.
 *
 * Elsewhere: threads that leave and come back (offcpu.h). */
#ifndef PLUMB_OFFLOOKS_H
#define PLUMB_OFFLOOKS_H

/* A time that is going on is counted once it is as long as the first, and its stack is taken once it is as long as the second. */
#define COUNTED_EARLY_NS 1000000ull
#define LOOKED_AT_NS 1000000000ull

/* The thread under examination. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct OffThread);
} off_thread SEC(".maps");

/* Fills in the user registers with which a task entered the kernel, from which its stack is walked. */
INLINE void user_part(struct task_struct *task, struct OffThread *thread)
{
    if (NUMBER(task->flags) & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER) || !mm_of(task))
        return;
    struct user_pt_regs *regs = (struct user_pt_regs *)bpf_task_pt_regs(task);
    thread->flags |= IS_USER_64(regs) ? OFF_HAS_USER : IS_USER_32(regs) ? OFF_HAS_USER_32 : 0;
    if (IS_USER_64(regs))
        thread->call = call_of(task);
    thread->ip = USER_PC(regs);
    thread->thread_pointer = THREAD_POINTER(task);
    user_registers(thread->registers, regs);
}

/* Returns the key of a stack taken from outside. Each look makes a new key, because reports about earlier times may not have been read
 * yet. */
INLINE u64 key_of_look(u64 now)
{
    return now << 2 | OFF_SINCE_BEGIN;
}

/* Counts a time that is going on up to now, and restarts it. Returns whether the thread's stack is wanted, because it was not walked as
 * the thread left. */
INLINE int count_so_far(struct Off *one, struct Control *control, u32 tid, u64 now)
{
    u64 out = one->out_ns;
    u32 pid = one->pid;
    /* A thread that waits for a CPU comes back soon; a time that has just begun may not be fully written yet. */
    if (!out || one->woken_ns || now < out + COUNTED_EARLY_NS)
        return 0;
    if (one->key == OFF_NO_STACK || one->key == OFF_COPY) {
        if (!control->ends && now < out + LOOKED_AT_NS)
            return 0;
        /* The thread may come back now, and then reports its stack itself. */
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

/* Called for each thread, once the recording has begun. From then on `goes` reports threads that leave, so a thread that is off and not
 * known has been off since before. */
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
    /* In a recording of the whole machine idle kernel threads would be most of the result. */
    if (!control->follows_some && NUMBER(task->flags) & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
        return 0;
    u32 state = NUMBER(task->__state), tid = NUMBER(task->pid);
    if (NUMBER(task->on_cpu) || state & TASK_DEAD)
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
        .delay_ns = OPTIONAL(task->sched_info.run_delay, 0),
        .charged_ns = NUMBER(task->se.sum_exec_runtime),
        .key = key_of_look(now),
        .pid = NUMBER(task->tgid),
    };
    thread->pid = NUMBER(task->tgid);
    thread->tid = tid;
    thread->time_ns = now;
    thread->flags = state ? 0 : OFF_RUNNABLE;
    thread->call = NO_CALL;
    user_part(task, thread);
    long bytes = bpf_get_task_stack(task, thread->kernel, sizeof(thread->kernel), 0);
    thread->kernel_frames = bytes > 0 ? bytes / 8 : 0;
    if (!is_known) {
        if (bpf_map_update_elem(&off, &tid, &one, BPF_NOEXIST))
            return 0;
        /* The thread came back in the last moment, and that was not reported. */
        known = bpf_map_lookup_elem(&off, &tid);
        if (NUMBER(task->on_cpu) && known && known->out_ns == now) {
            known->out_ns = 0;
            return 0;
        }
    }
    /* If the buffer of this read is full, the kernel calls this program again for the same thread, with the next buffer. */
    if (bpf_seq_write(meta->file, thread, sizeof(*thread))) {
        if (is_known)
            known->key = key;
        else
            bpf_map_delete_elem(&off, &tid);
    }
    return 0;
}

#endif

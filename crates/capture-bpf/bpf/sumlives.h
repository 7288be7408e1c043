/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Lifetimes of threads whose calls are aggregated: their counters before they are counted, from fork, exec and exit, and from the
 * threads that run as the recorder begins and ends. */
#ifndef PLUMB_SUMLIVES_H
#define PLUMB_SUMLIVES_H

INLINE struct Before so_far(struct task_struct *task)
{
    struct Before now = {
        .minor = NUMBER(task->min_flt),
        .major = NUMBER(task->maj_flt),
        .voluntary = NUMBER(task->nvcsw),
        .involuntary = NUMBER(task->nivcsw),
    };
    return now;
}

/* Excludes from the counts what a thread did until now. */
INLINE void begins(struct task_struct *task)
{
    struct Before now = so_far(task);
    bpf_task_storage_get(&before, task, &now, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

INLINE void add_task(struct task_struct *task)
{
    struct Before now = so_far(task);
    struct Before *then = bpf_task_storage_get(&before, task, 0, 0);
    if (then) {
        now.minor -= then->minor;
        now.major -= then->major;
        now.voluntary -= then->voluntary;
        now.involuntary -= then->involuntary;
    }
    add(SUM_MINOR, now.minor);
    add(SUM_MAJOR, now.major);
    add(SUM_VOLUNTARY, now.voluntary);
    add(SUM_INVOLUNTARY, now.involuntary);
}

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
    struct task_struct *parent = (struct task_struct *)ctx[0];
    struct task_struct *child = (struct task_struct *)ctx[1];
    inherit(parent, child);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    u32 *how = process_mark(task);
    if (how && *how == COUNT_FROM_EXEC) {
        *how = COUNT_NOW;
        __sync_fetch_and_add(&generation, 1);
        begins(task);
    }
    return 0;
}

SEC("tp_btf/sched_process_exit")
int on_end(u64 *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    if (is_counted(task)) {
        add(SUM_ENDED, 1);
        add_task(task);
    }
    return 0;
}

/* struct bpf_iter_meta *meta, struct task_struct *task */
SEC("iter/task")
int on_begin(u64 *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx[1];
    generation++;
    if (task)
        begins(task);
    return 0;
}

SEC("iter/task")
int on_finish(u64 *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx[1];
    if (task && is_counted(task))
        add_task(task);
    return 0;
}

#endif

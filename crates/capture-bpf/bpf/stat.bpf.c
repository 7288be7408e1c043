/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Statistics of followed processes: system calls, samples by the mode that they interrupt, and the CPU time of each thread that has
 * ended.
 *
 * Nothing is sent: user space reads the numbers. `on_call` is loaded only if calls are to be counted, because while it is attached it
 * slows every system call of the machine. */
#include "kernel.h"
#include "wire.h"
#include "follow.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct {
    UINT(type, BPF_MAP_TYPE_HASH);
    UINT(max_entries, MAX_THREADS);
    UINT(map_flags, BPF_F_NO_PREALLOC);
    TYPE(key, struct ThreadKey);
    TYPE(value, struct ThreadTime);
} threads SEC(".maps");

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
    struct task_struct *parent = (struct task_struct *)ctx[0];
    struct task_struct *child = (struct task_struct *)ctx[1];
    inherit(parent, child);
    return 0;
}

SEC("tp_btf/sys_exit")
int on_call(u64 *ctx)
{
    struct Control *control = the_control();
    if (control && control->began && is_followed(control, bpf_get_current_task_btf()))
        add(STAT_CALLS, 1);
    return 0;
}

SEC("perf_event")
int on_tick(struct bpf_perf_event_data *ctx)
{
    struct Control *control = the_control();
    if (control && control->began && is_followed(control, bpf_get_current_task_btf()))
        add(IS_USER(&ctx->regs) ? STAT_USER : STAT_KERNEL, 1);
    return 0;
}

/* The task is gone for good: at its exit the work of exiting was still to come. */
SEC("tp_btf/sched_process_free")
int on_free(u64 *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx[0];
    struct Control *control = the_control();
    if (!control || !control->began || !is_followed(control, task))
        return 0;
    struct ThreadKey key = { .tid = NUMBER(task->pid) };
    for (int i = 0; i < (int)COMM_BYTES; i++)
        key.comm[i] = task->comm[i];
    struct ThreadTime *known = bpf_map_lookup_elem(&threads, &key);
    struct ThreadTime time = { .runtime_ns = NUMBER(task->se.sum_exec_runtime), .threads = 1 };
    if (known) {
        __sync_fetch_and_add(&known->runtime_ns, time.runtime_ns);
        __sync_fetch_and_add(&known->threads, 1);
    } else if (bpf_map_update_elem(&threads, &key, &time, BPF_NOEXIST)) {
        add(STAT_LOST, 1);
        add(STAT_LOST_NS, time.runtime_ns);
    }
    return 0;
}

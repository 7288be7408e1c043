/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Page faults of followed threads: thread, address and time.
 *
 * Faults are sent one by one, including those that the kernel has on a thread's behalf. The reader is not woken for them. */
#include "kernel.h"
#include "wire.h"
#include "follow.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set before loading: process of the reader. */
const volatile u32 own_pid = 0;

/* Addresses from here on belong to the kernel. */
#define USER_END (1ull << 63)

struct {
    UINT(type, BPF_MAP_TYPE_RINGBUF);
    UINT(max_entries, 1 << 24);
} ring SEC(".maps");

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
    struct task_struct *parent = (struct task_struct *)ctx[0];
    struct task_struct *child = (struct task_struct *)ctx[1];
    inherit(parent, child);
    return 0;
}

/* At each fault on a user address, whatever code it interrupts: PERF_COUNT_SW_PAGE_FAULTS. Not at the tracepoints of faults, which only some
 * architectures have. */
SEC("perf_event")
int on_fault(struct bpf_perf_event_data *ctx)
{
    u64 address = ctx->addr;
    struct Control *control = the_control();
    struct task_struct *task = bpf_get_current_task_btf();
    if (!control || !control->began || address >= USER_END || (u32)NUMBER(task->tgid) == own_pid || !is_followed(control, task))
        return 0;
    struct Fault fault = { .time_ns = bpf_ktime_get_ns(), .address = address, .pid = NUMBER(task->tgid), .tid = NUMBER(task->pid) };
    if (bpf_ringbuf_output(&ring, &fault, sizeof(fault), BPF_RB_NO_WAKEUP))
        add(FAULTS_DROPPED, 1);
    return 0;
}

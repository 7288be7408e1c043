/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* How long threads were off the processor, and how much of that they could have run.
 *
 * A followed thread that is switched out is remembered until it is switched in again, with the moment at which it was woken
 * in between. Stacks are taken elsewhere, by a sampling event at the same switch: user space joins the two by thread and
 * time. */
#include "kernel.h"
#include "wire.h"
#include "follow.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set before loading: what is shorter is only counted, in nanoseconds. */
const volatile u64 min_ns = 0;
const volatile u32 ring_bytes = 0;

struct {
    UINT(type, BPF_MAP_TYPE_RINGBUF);
    UINT(max_entries, 1 << 22);
} ring SEC(".maps");

/* By thread: who is off. */
struct {
    UINT(type, BPF_MAP_TYPE_HASH);
    UINT(max_entries, MAX_OFF);
    UINT(map_flags, BPF_F_NO_PREALLOC);
    TYPE(key, u32);
    TYPE(value, struct Off);
} off SEC(".maps");

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
    struct task_struct *parent = (struct task_struct *)ctx[0];
    struct task_struct *child = (struct task_struct *)ctx[1];
    if (parent->tgid != child->tgid)
        inherit(parent, child);
    return 0;
}

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

INLINE void back(struct task_struct *task, u64 now)
{
    u32 tid = task->pid;
    struct Off *one = bpf_map_lookup_elem(&off, &tid);
    if (!one)
        return;
    u64 woken = one->woken_ns ? one->woken_ns : now;
    struct Block block = {
        .out_ns = one->out_ns,
        .blocked_ns = woken - one->out_ns,
        .waited_ns = now - woken,
        .pid = one->pid,
        .tid = tid,
    };
    bpf_map_delete_elem(&off, &tid);
    if (block.blocked_ns < min_ns && block.waited_ns < min_ns) {
        add(OFF_SHORT, 1);
        add(OFF_SHORT_NS, now - block.out_ns);
        return;
    }
    u64 wake = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > ring_bytes / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
    if (bpf_ringbuf_output(&ring, &block, sizeof(block), wake)) {
        add(OFF_LOST, 1);
        add(OFF_LOST_NS, now - block.out_ns);
    }
}

/* bool preempt, prev, next, unsigned prev_state (the last since Linux 5.18) */
SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
    struct task_struct *prev = (struct task_struct *)ctx[1];
    struct task_struct *next = (struct task_struct *)ctx[2];
    u64 now = bpf_ktime_get_ns();
    u32 tid = prev->pid;
    struct Control *control = the_control();
    /* Nobody is followed before it is said who. */
    if (tid && !((u32)ctx[3] & TASK_DEAD) && control && control->began && is_followed(control, prev)) {
        int could_run = ctx[0] & 0xff || !(u32)ctx[3];
        struct Off one = { .out_ns = now, .woken_ns = could_run ? now : 0, .pid = prev->tgid };
        if (bpf_map_update_elem(&off, &tid, &one, BPF_ANY))
            add(OFF_LOST, 1);
    }
    if (next->pid)
        back(next, now);
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Return addresses that return probes (uretprobes) have replaced on the stacks of all threads.
 *
 * The kernel keeps the original ones in a list for each thread. A reader stops a thread before it has the list read, since a running
 * thread changes it. */
#include "kernel.h"
#include "wire.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* struct bpf_iter_meta *meta, struct task_struct *task */
SEC("iter/task")
int on_returns(u64 *ctx)
{
    struct bpf_iter_meta *meta = (struct bpf_iter_meta *)ctx[0];
    struct task_struct *task = (struct task_struct *)ctx[1];
    struct uprobe_task *probes = 0;
    struct return_instance *instance = 0;
    if (!task || !HAS(task->utask) || !HAS(instance->orig_ret_vaddr))
        return 0;
    READ(probes, task->utask);
    if (!probes)
        return 0;
    READ(instance, probes->return_instances);
    struct ReplacedReturn replaced = { .tid = NUMBER(task->pid) };
    for (u32 i = 0; i < MAX_URETPROBE_DEPTH && instance; i++) {
        READ_NUMBER(replaced.at, instance->stack);
        READ_NUMBER(replaced.pc, instance->orig_ret_vaddr);
        /* The kernel enlarges its buffer and repeats the call for this thread. */
        if (bpf_seq_write(meta->file, &replaced, sizeof(replaced)))
            return 0;
        READ(instance, instance->next);
    }
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* System calls aggregated by process while a machine runs: only the number of calls and their CPU time, so that it costs little and the
 * map has the same size on any machine.
 *
 * Threads of a process add to the same sum. User space removes sums once their process is gone and nothing adds to them. */
#ifndef PLUMB_PROCESSSUMS_H
#define PLUMB_PROCESSSUMS_H

/* The map is allocated in full at the start, so that a new process gets an entry regardless of free memory. */
struct {
    UINT(type, BPF_MAP_TYPE_HASH);
    UINT(max_entries, MAX_PROCESS_SUMS);
    TYPE(key, struct ProcessCall);
    TYPE(value, struct ProcessSum);
} process_sums SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
/* The only field that is used here and nowhere else. */
struct task_struct___begun {
    u64 start_boottime;
};
#pragma clang attribute pop

INLINE struct ProcessSum *process_sum_of(struct task_struct *task, u32 number)
{
    /* A process number may be reused: the start time distinguishes the processes. */
    struct task_struct___begun *leader = (void *)task->group_leader;
    struct ProcessCall key = { .number = number, .pid = NUMBER(task->tgid), .start_ns = NUMBER(leader->start_boottime) };
    struct ProcessSum *sum = bpf_map_lookup_elem(&process_sums, &key);
    if (sum)
        return sum;
    struct ProcessSum none = {};
    bpf_map_update_elem(&process_sums, &key, &none, BPF_NOEXIST);
    return bpf_map_lookup_elem(&process_sums, &key);
}

/* Counts a call that has ended. `call`: its state since it began, if its beginning was seen. */
INLINE int count_for_process(struct task_struct *task, u32 number, s64 result, struct InCall *call, u64 now)
{
    u64 cpu_ns = 0;
    if (call && call->begin_ns) {
        if (call->out_ns)
            is_back(call, now);
        cpu_ns = elapsed_ns(elapsed_ns(now, call->begin_ns), call->blocked_ns + call->preempted_ns + call->queued_ns);
        call->begin_ns = 0;
    }
    if (!result && forks(number))
        return 0;
    struct ProcessSum *sum = process_sum_of(task, number);
    if (!sum) {
        add(SUM_LOST, 1);
        return 0;
    }
    __sync_fetch_and_add(&sum->calls, 1);
    __sync_fetch_and_add(&sum->cpu_ns, cpu_ns);
    return 0;
}

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* System calls summed up by process for as long as a machine runs: of each call how many there were and the time on the processor, and no more,
 * so that it costs little and the map is the same size on any machine.
 *
 * Threads of a process add to the same sum. User space takes sums out once their process is gone, when nobody adds to them. */
#ifndef PLUMB_PROCESSSUMS_H
#define PLUMB_PROCESSSUMS_H

/* All there is room for is taken at the start: an entry is found for a new process whatever memory there is. */
struct {
    UINT(type, BPF_MAP_TYPE_HASH);
    UINT(max_entries, MAX_PROCESS_SUMS);
    TYPE(key, struct ProcessCall);
    TYPE(value, struct ProcessSum);
} process_sums SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
/* What only this looks at. */
struct task_struct___begun {
    u64 start_boottime;
};
#pragma clang attribute pop

INLINE struct ProcessSum *process_sum_of(struct task_struct *task, u32 number)
{
    /* A process' number may be given to another one; when it began tells them apart. */
    struct task_struct___begun *leader = (void *)task->group_leader;
    struct ProcessCall key = { .number = number, .pid = NUMBER(task->tgid), .start_ns = NUMBER(leader->start_boottime) };
    struct ProcessSum *sum = bpf_map_lookup_elem(&process_sums, &key);
    if (sum)
        return sum;
    struct ProcessSum none = {};
    bpf_map_update_elem(&process_sums, &key, &none, BPF_NOEXIST);
    return bpf_map_lookup_elem(&process_sums, &key);
}

/* Counts a call that has ended. `call`: what is known of it from its beginning on, if that was seen. */
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

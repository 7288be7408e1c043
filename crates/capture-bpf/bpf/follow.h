/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Who is followed, what the recorder says, and counters: the same in all objects. */
#ifndef PLUMB_FOLLOW_H
#define PLUMB_FOLLOW_H

#include "kernel.h"
#include "wire.h"

struct {
    UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    UINT(max_entries, COUNTERS);
    TYPE(key, u32);
    TYPE(value, u64);
} counters SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_TASK_STORAGE);
    UINT(map_flags, BPF_F_NO_PREALLOC);
    TYPE(key, int);
    TYPE(value, u32);
} followed SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct Control);
} controls SEC(".maps");

INLINE void add(u32 index, u64 amount)
{
    u64 *counter = bpf_map_lookup_elem(&counters, &index);
    if (counter)
        *counter += amount;
}

INLINE struct Control *the_control(void)
{
    u32 zero = 0;
    return bpf_map_lookup_elem(&controls, &zero);
}

/* Whether a task is recorded: its process says so. */
INLINE int is_followed(struct Control *control, struct task_struct *task)
{
    return !control->follows_some || bpf_task_storage_get(&followed, task->group_leader, 0, 0);
}

/* Follows a process, by the first of its tasks. */
INLINE void follow(struct task_struct *leader)
{
    u32 yes = 1;
    bpf_task_storage_get(&followed, leader, &yes, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* A new process is followed if the one that forked it is. */
INLINE void inherit(struct task_struct *parent, struct task_struct *child)
{
    if (bpf_task_storage_get(&followed, parent->group_leader, 0, 0))
        follow(child);
}

#endif

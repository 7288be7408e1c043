/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Followed processes, the recorder's instructions, and counters: identical in all objects. */
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

/* Returns the mark of a task's process, which is that of its first task. The other tasks have a mark as well, because one of them that
 * execs becomes the first, and the storage of the earlier first task disappears with it (de_thread in fs/exec.c). */
INLINE u32 *process_mark(struct task_struct *task)
{
    return bpf_task_storage_get(&followed, task->group_leader, 0, 0);
}

/* Returns whether a task is recorded, which its process decides. */
INLINE int is_followed(struct Control *control, struct task_struct *task)
{
    return !control->follows_some || process_mark(task);
}

/* Follows a process, given its first task. */
INLINE void follow(struct task_struct *leader)
{
    u32 yes = 1;
    bpf_task_storage_get(&followed, leader, &yes, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Follows a new process or thread if the process that created it is followed. */
INLINE void inherit(struct task_struct *parent, struct task_struct *child)
{
    u32 *mark = process_mark(parent);
    if (mark)
        bpf_task_storage_get(&followed, child, mark, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* struct bpf_iter_meta *meta, struct task_struct *task: gives a thread that is already running the mark of its process, or none. */
SEC("iter/task")
int on_mark(u64 *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx[1];
    if (!task || NUMBER(task->pid) == NUMBER(task->tgid))
        return 0;
    u32 *mark = process_mark(task), *own = 0;
    if (mark)
        own = bpf_task_storage_get(&followed, task, mark, BPF_LOCAL_STORAGE_GET_F_CREATE);
    else
        bpf_task_storage_delete(&followed, task);
    if (mark && own)
        *own = *mark;
    return 0;
}

#endif

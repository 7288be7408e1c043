/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Reports the control group of a process as it exits: afterwards it can't be read any more, and the group of a container is soon gone
 * too.
 *
 * Uses the hierarchy of version 2, or otherwise that of perf events, in which runtimes put containers where they use version 1. Only
 * groups with a long name are reported, as those of containers are: other processes are known by their parents. */
#ifndef PLUMB_CGROUPS_H
#define PLUMB_CGROUPS_H

/* Set before loading: whether groups are reported, and the index of perf events among the controllers (cgroup_subsys_id), if it is one. */
const volatile u32 tells_cgroups = 0;
const volatile u32 has_controller = 0;
const volatile u32 perf_controller = 0;

/* The most levels of groups that are reported, and bytes of a name, which is that of a directory. */
#define CGROUP_LEVELS 12
#define CGROUP_NAME_BYTES 256

struct told_cgroup {
    struct InCgroup in;
    char names[CGROUP_BYTES];
};

/* The message under construction, per CPU. */
struct {
    UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    UINT(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct told_cgroup);
} told_cgroups SEC(".maps");

/* Copies the name of a group. Returns its bytes with the zero, or less than one on failure. */
INLINE long cgroup_name(struct cgroup_subsys_state *state, char *to, u32 size)
{
    struct cgroup *group = 0;
    struct kernfs_node *node = 0;
    const char *name = 0;
    READ(group, state->cgroup);
    READ(node, group->kn);
    READ(name, node->name);
    return bpf_probe_read_kernel_str(to, size, name);
}

/* Puts the names of a group and its ancestors into a message, if its own name is long. Returns their bytes, or 0 if it is not long. */
INLINE u64 cgroup_names(struct told_cgroup *told, struct cgroup_subsys_state *state)
{
    u64 used = 0;
    if (!state || cgroup_name(state, told->names, CGROUP_NAME_BYTES) <= CGROUP_LONG)
        return 0;
    for (int level = 0; level < CGROUP_LEVELS && state; level++) {
        used = at_most(used, CGROUP_BYTES - CGROUP_NAME_BYTES);
        long bytes = cgroup_name(state, told->names + used, CGROUP_NAME_BYTES);
        if (bytes < 1)
            break;
        used += at_most(bytes, CGROUP_NAME_BYTES);
        READ(state, state->parent);
    }
    return at_most(used, CGROUP_BYTES);
}

/* Reports the group of a process that is exiting. */
INLINE void tell_cgroup(struct task_struct *task)
{
    u32 zero = 0;
    struct told_cgroup *told = bpf_map_lookup_elem(&told_cgroups, &zero);
    if (!tells_cgroups || !told || !HAS(task->cgroups))
        return;
    struct css_set *set = 0;
    struct cgroup *group = 0;
    struct cgroup_subsys_state *state = 0;
    READ(set, task->cgroups);
    READ(group, set->dfl_cgrp);
    u64 used = cgroup_names(told, &group->self);
    if (!used && has_controller) {
        bpf_probe_read_kernel(&state, sizeof(state), (void *)&set->subsys + 8 * perf_controller);
        used = cgroup_names(told, state);
    }
    if (!used)
        return;
    told->in.head.kind = MESSAGE_IN_CGROUP;
    told->in.head.time_ns = bpf_ktime_get_ns();
    told->in.head.pid = NUMBER(task->tgid);
    told->in.head.tid = NUMBER(task->pid);
    told->in.bytes = used;
    bpf_ringbuf_output(&ring, told, sizeof(struct InCgroup) + used, BPF_RB_NO_WAKEUP);
}

#endif

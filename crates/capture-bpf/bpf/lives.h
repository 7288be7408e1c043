/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Lifetimes of processes: their mappings, from exec, fork, each change and exit, and their CPU time.
 *
 * Mappings are entered at exec (the program, its loader, the vdso), once for each sample that meets an unknown address, and from the
 * parent at fork. `on_map` removes them while the kernel changes them. At that point the kernel holds the process' mmap lock, which
 * entering a mapping needs too, so that no program can enter a mapping that is about to disappear. */
#ifndef PLUMB_LIVES_H
#define PLUMB_LIVES_H

#include "cgroups.h"

struct comm {
    char text[COMM_BYTES];
};

/* A process that execs and then has this name is followed; empty: no process. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct comm);
} awaited SEC(".maps");

/* By process: an address in an interpreter's file, as found by the recorder. */
struct {
    UINT(type, BPF_MAP_TYPE_LRU_HASH);
    UINT(max_entries, MAX_SPACES);
    TYPE(key, u32);
    TYPE(value, u64);
} interpreted SEC(".maps");

/* Sends the CPU time that a task has used. */
INLINE void say_spent(struct task_struct *task, u32 until)
{
    struct Control *control = the_control();
    if (!control || !control->began)
        return;
    struct Spent spent = {
        .head = { .kind = MESSAGE_SPENT, .time_ns = bpf_ktime_get_ns(), .pid = NUMBER(task->tgid), .tid = NUMBER(task->pid) },
        .runtime_ns = NUMBER(task->se.sum_exec_runtime),
        .until = until,
    };
    bpf_ringbuf_output(&ring, &spent, sizeof(spent), BPF_RB_NO_WAKEUP);
}

/* Requests the table of a file that is mapped at an address, once. */
INLINE void want(u32 number, u64 address, u32 pid, u32 tid)
{
    struct File *file = env_file(number);
    if (!file || number == FILE_NONE || file->state != STATE_UNKNOWN)
        return;
    struct Want want = {
        .head = { .kind = MESSAGE_WANT, .time_ns = bpf_ktime_get_ns(), .pid = pid, .tid = tid },
        .address = address,
        .file = number,
    };
    if (!bpf_ringbuf_output(&ring, &want, sizeof(want), BPF_RB_FORCE_WAKEUP))
        file->state = STATE_ASKED;
}

/* Requests the table of the file mapped at an address, before anything runs there: by the time that a sample would request it, a short
 * process is gone, and a deleted file with it. */
INLINE void want_at(struct task_struct *task, struct Space *space, u64 address)
{
    int index = mapping_at(space, address);
    if (index >= 0)
        want(space->mappings[index & (MAX_MAPPINGS - 1)].file, address, NUMBER(task->tgid), NUMBER(task->pid));
}

/* Follows a process that has exec'd the awaited program. */
INLINE void meet(struct task_struct *task)
{
    u32 zero = 0;
    struct comm *wanted = bpf_map_lookup_elem(&awaited, &zero);
    struct comm own = {};
    if (!wanted || !wanted->text[0] || bpf_get_current_comm(own.text, COMM_BYTES))
        return;
    for (int i = 0; i < (int)COMM_BYTES; i++)
        if (own.text[i] != wanted->text[i])
            return;
    follow(task->group_leader);
}

SEC("tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct mm_struct *mm = task->mm;
    if (!mm)
        return 0;
    u32 tgid = NUMBER(task->tgid);
    bpf_map_delete_elem(&interpreted, &tgid);
    bpf_map_delete_elem(&copied_texts, &tgid);
    meet(task);
    say_spent(task, UNTIL_EXEC);
    struct Control *control = the_control();
    if (!control || !is_followed(control, task))
        return 0;
    struct Space *space = new_space(tgid, (u64)mm);
    if (!space)
        return 0;
    struct user_pt_regs *regs = (struct user_pt_regs *)bpf_task_pt_regs(task);
    u64 code = NUMBER(mm->start_code);
    /* The address at which the program begins: in its loader, if it has one. */
    look(task, space, USER_PC(regs));
    if (mapping_at(space, code) < 0)
        look(task, space, code);
    look(task, space, (u64)mm->context.vdso);
    want_at(task, space, code);
    want_at(task, space, USER_PC(regs));
    return 0;
}

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
    struct task_struct *parent = (struct task_struct *)ctx[0];
    struct task_struct *child = (struct task_struct *)ctx[1];
    u32 from = NUMBER(parent->tgid), to = NUMBER(child->tgid);
    inherit(parent, child);
    if (from == to)
        return 0;
    u64 *address = bpf_map_lookup_elem(&interpreted, &from);
    if (address)
        bpf_map_update_elem(&interpreted, &to, address, BPF_ANY);
    struct CopiedTexts *texts = bpf_map_lookup_elem(&copied_texts, &from);
    if (texts)
        bpf_map_update_elem(&copied_texts, &to, texts, BPF_ANY);
    struct Space *space = bpf_map_lookup_elem(&spaces, &from);
    if (!space || space->mm != mm_of(parent))
        return 0;
    bpf_map_update_elem(&spaces, &to, space, BPF_ANY);
    space = bpf_map_lookup_elem(&spaces, &to);
    if (space) {
        space->mm = mm_of(child);
        space->birth = __sync_fetch_and_add(&last_birth, 1) + 1;
    }
    return 0;
}

/* A maple tree is written to. The mappings of a process are one: they are mapped, unmapped, moved. */
SEC("tp_btf/ma_write")
int on_map(u64 *ctx)
{
    struct ma_state *state = (struct ma_state *)ctx[1];
    struct task_struct *task = bpf_get_current_task_btf();
    struct mm_struct *mm = task->mm;
    if (!mm || state->tree != &mm->mm_mt)
        return 0;
    u32 tgid = NUMBER(task->tgid);
    struct Space *space = bpf_map_lookup_elem(&spaces, &tgid);
    if (!space || space->mm != (u64)mm)
        return 0;
    /* From now on the same addresses contain other code, so stacks must not be mixed up. */
    if (forget(space, NUMBER(state->index), NUMBER(state->last)))
        space->birth = __sync_fetch_and_add(&last_birth, 1) + 1;
    return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(u64 *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx[0];
    u32 tgid = NUMBER(task->tgid);
    if (NUMBER(task->signal->live.counter) <= 0) {
        bpf_map_delete_elem(&spaces, &tgid);
        bpf_map_delete_elem(&interpreted, &tgid);
        bpf_map_delete_elem(&copied_texts, &tgid);
        tell_cgroup(task);
    }
    return 0;
}

/* A task is gone for good, and will not run any more: at its exit the work of exiting was still to come. */
SEC("tp_btf/sched_process_free")
int on_free(u64 *ctx)
{
    say_spent((struct task_struct *)ctx[0], UNTIL_END);
    return 0;
}

#endif

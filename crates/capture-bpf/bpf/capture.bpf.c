/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Sampling with stacks walked in the kernel.
 *
 * `sample` is attached to perf's sampling events. It returns 0 for a sample that it has handled. For all others it returns 1, and perf
 * writes its own record with registers and a copy of the stack. So whatever goes wrong here costs a copy, never a sample. */
#include "kernel.h"
#include "wire.h"
#include "follow.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set before loading. */
const volatile u32 counting = 1;
const volatile u32 ring_bytes = 0;

struct {
    UINT(type, BPF_MAP_TYPE_HASH);
    UINT(max_entries, MAX_COUNTS);
    TYPE(key, struct CountKey);
    TYPE(value, struct Count);
} counts SEC(".maps");

/* Entries of the cache of recent stacks' hashes: each slot holds the last hash that maps to it. */
#define MET 1024

struct met {
    u32 hashes[MET];
};

struct {
    UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    UINT(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct met);
} met_lately SEC(".maps");

#include "drafts.h"
#include "walk.h"
#include "spaces.h"
#include "lives.h"
#include "runtimes.h"
#ifndef WITHOUT_SCRIPTS
#include "script.h"
#endif

struct walking {
    struct walk walk;
    struct Space *space;
    struct draft *draft;
    /* File number of the last frame. */
    u32 file;
    /* Whether the walk has 64-bit code to begin in, and, once a frame was found by another means than a rule, PASSED_UNRULED. */
    u32 begun;
    /* An address in an interpreter's file; 0: none met. */
    u64 script;
};

#define PASSED_UNRULED 2u

static long step(u32 index, struct walking *walking)
{
    struct walk *walk = &walking->walk;
    if (IS_SCANNING(walk)) {
        int more = scan_step(walk, walking->space);
        asm volatile("" : "+r"(more));
        return more ? 0 : 1;
    }
    undo_probe(walk);
    u64 pc = walk->pc;
    u64 frame = walk->is_return ? pc : pc | FRAME_NO_RETURN;
    if (walk->found) {
        frame |= walk->found == BY_SCAN ? FRAME_SCANNED : FRAME_ASSUMED;
        walking->begun |= PASSED_UNRULED;
    }
    walk->found = BY_RULE;
    walking->draft->frames[walk->count & (MAX_FRAMES - 1)] = frame;
    walking->draft->places[walk->count & (MAX_FRAMES - 1)] = walk->sp;
    walk->count++;
    walk->hash = (walk->hash ^ frame) * 0x9e3779b97f4a7c15ull;
    walk->hash ^= walk->hash >> 29;
    int more = walk_step(walk, walking->space);
    if (more)
        walk->why = WHY_TOO_DEEP;
    if (walk->file != walking->file) {
        walking->file = walk->file;
        struct File *file = env_file(walk->file);
        if (file && file->script)
            walking->script = walk->address;
    }
    /* The compiler knows that this is 0 or 1, the verifier does not. */
    asm volatile("" : "+r"(more));
    return more ? 0 : 1;
}

/* Begins the walk where user code entered the kernel. Returns 0 if that is not 64-bit code. */
INLINE int begin_where_left(struct walk *walk, struct task_struct *task)
{
    struct user_pt_regs *regs = (struct user_pt_regs *)bpf_task_pt_regs(task);
    if (!IS_USER_64(regs))
        return 0;
    walk->pc = USER_PC(regs);
    walk->sp = USER_SP(regs);
    walk->fp = USER_FP(regs);
#ifdef USER_LINK
    walk->link = USER_LINK(regs);
#endif
    return 1;
}

/* Begins the walk where a sample interrupted user code, or where user code entered the kernel. */
INLINE int begin_where_sampled(struct walk *walk, struct user_pt_regs *regs, struct task_struct *task)
{
    if (!IS_USER(regs))
        return begin_where_left(walk, task);
    walk->pc = USER_PC(regs);
    walk->sp = USER_SP(regs);
    u64 fp = USER_FP(regs);
    /* Otherwise the compiler merges the two loads into one through either pointer, which the verifier refuses. */
    OPAQUE(fp);
    walk->fp = fp;
#ifdef USER_LINK
    u64 link = USER_LINK(regs);
    OPAQUE(link);
    walk->link = link;
#endif
    return 1;
}

/* Uses the interpreter that the recorder has found in the process, for a walk that ends before it reaches the interpreter. */
INLINE void find_script(struct task_struct *task, struct Space *space)
{
    u32 tgid = NUMBER(task->tgid);
    u64 *address = space->script ? 0 : bpf_map_lookup_elem(&interpreted, &tgid);
    if (!address)
        return;
    if (mapping_at(space, *address) < 0)
        look(task, space, *address);
    want_at(task, space, *address);
    space->script = *address;
}

/* Walks the user stack of the current task into the draft, from where the walk was begun. Returns a WHY_ constant. */
INLINE u32 walk_user(struct task_struct *task, struct walking *walking, u32 pid, u32 tid)
{
    u32 tgid = NUMBER(task->tgid);
    u64 mm = mm_of(task);
    struct Space *space = bpf_map_lookup_elem(&spaces, &tgid);
    if (!space)
        space = new_space(tgid, mm);
    if (!space)
        return WHY_UNMAPPED;
    /* The memory is new, but the registers still are the old program's. */
    if (space->mm != mm)
        return WHY_EXEC;
    struct walk *walk = &walking->walk;
    walk->hash = space->birth;
    walk->now = bpf_ktime_get_ns() >> 30;
    walking->space = space;
    bpf_loop(MAX_FRAMES, step, walking, 0);
    if (walk->why == WHY_UNMAPPED) {
        /* Repeats the step that failed: the frame is unchanged, but already recorded. */
        if (look(task, space, walk->address) ? walk_step(walk, space) : leave_failed_call(walk, space))
            bpf_loop(MAX_FRAMES, step, walking, 0);
    }
    if (walk->why == WHY_NO_TABLE)
        want(walk->file, walk->address, pid, tid);
    if (walking->script)
        space->script = walking->script;
    else if (walk->why != WHY_ROOT || walking->begun & PASSED_UNRULED)
        find_script(task, space);
    /* The frames that were found by convention are not its callers. */
    if (walking->begun & PASSED_UNRULED && has_own_rules(space))
        return WHY_ANONYMOUS;
    /* A copy would have fewer frames. The reader recognises the truncation by the number of frames. */
    if (walk->why == WHY_TOO_DEEP && walk->count == MAX_FRAMES)
        return WHY_ROOT;
    return walk->why;
}

/* Returns the number of the system call that a task is in, or NO_CALL if it entered the kernel otherwise. */
INLINE u32 call_of(struct task_struct *task)
{
    struct user_pt_regs *regs = (struct user_pt_regs *)bpf_task_pt_regs(task);
    long call = CALL_NUMBER(regs);
    return call < 0 ? NO_CALL : (u32)call;
}

/* Mixes further frames into the hash of a stack. */
APART u64 mix(struct draft *draft, u32 first, u32 count, u64 hash)
{
    if (!draft || first > MAX_FRAMES)
        return hash;
    for (u32 i = 0; i < MAX_KERNEL_FRAMES; i++) {
        if (i >= count)
            break;
        hash = (hash ^ draft->frames[first + i]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return hash;
}

/* Returns whether a stack was recently met on this CPU. Most stacks never recur; for them no entry is made, which would cost more than
 * sending the others twice. */
INLINE int was_met(u64 hash)
{
    u32 zero = 0, rest = hash >> 32;
    struct met *met = bpf_map_lookup_elem(&met_lately, &zero);
    if (!met)
        return 0;
    u32 *at = &met->hashes[hash & (MET - 1)];
    if (*at == rest)
        return 1;
    *at = rest;
    return 0;
}

/* Counts a stack that was sent before. Returns whether it was sent. */
INLINE int counted(struct Sample *sample)
{
    struct CountKey key = { .key = sample->key, .pid = sample->head.pid, .tid = sample->head.tid };
    struct Count *count = bpf_map_lookup_elem(&counts, &key);
    if (count) {
        count->time_ns = sample->head.time_ns;
        __sync_fetch_and_add(&count->period, sample->period);
        __sync_fetch_and_add(&count->samples, 1);
        return 1;
    }
    struct Count none = {};
    if (bpf_map_update_elem(&counts, &key, &none, BPF_NOEXIST))
        sample->key = 0;
    return 0;
}

/* Returns whether the stack of a time off the CPU was recently sent. If not, registers it as sent now. */
INLINE int is_known(struct Sample *sample)
{
    struct CountKey key = { .key = sample->key, .pid = sample->head.pid, .tid = sample->head.tid };
    if (bpf_map_lookup_elem(&counts, &key))
        return 1;
    struct Count none = {};
    /* Without space for an entry the stack is sent every time. */
    bpf_map_update_elem(&counts, &key, &none, BPF_NOEXIST);
    return 0;
}

/* Returns the wakeup flag for a message: the recorder is woken once a quarter of the ring is filled. */
INLINE u64 wake(void)
{
    return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > ring_bytes / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* Puts the script frames into the draft, after the others; `script`: an address in the interpreter's file, or 0. Returns the hash of
 * the stack with them. */
INLINE u64 script_frames(struct draft *draft, struct Space *space, u64 script, u32 tgid, u64 hash)
{
#ifndef WITHOUT_SCRIPTS
    u32 layout = 0;
    u64 root = space && script ? runtime_at(space, script, &layout) : 0;
    if (root)
        return script_read_frames(draft, root, layout, space->mm ^ (u64)tgid << 48, hash);
#endif
    return hash;
}

/* Sends the script frames of a sample that is handed over, because a reader of its record can no longer find them. */
INLINE void tell_script(struct task_struct *task, struct walking *walking)
{
    struct Space *space = walking->space;
    struct draft *draft = walking->draft;
    struct Sample *sample = &draft->sample;
    if (!space || !space->script)
        return;
    sample->user = 0;
    sample->kernel = 0;
    sample->flags |= SAMPLE_SCRIPT_ONLY;
    script_frames(draft, space, space->script, NUMBER(task->tgid), 0);
    u64 words = at_most(2 * sample->script, 2 * MAX_SCRIPT_FRAMES);
    if (!words)
        return;
    sample->head.kind = MESSAGE_SAMPLE;
    sample->head.time_ns = bpf_ktime_get_ns();
    sample->head.pid = NUMBER(task->tgid);
    sample->head.tid = NUMBER(task->pid);
    bpf_ringbuf_output(&ring, sample, sizeof(struct Sample) + 8 * words, BPF_RB_NO_WAKEUP);
}

/* Handles a sample whose walk was begun. Returns WHY_ROOT, or the reason for handing it over. */
INLINE u32 take(void *ctx, struct task_struct *task, struct walking *walking, u32 sample_flags, u64 period, u32 event)
{
    struct Control *control = the_control();
    struct draft *draft = walking->draft;
    struct Sample *sample = &draft->sample;
    if (!control)
        return WHY_ODD;
    /* Kept in the sample, as the stack of a program has no room for them (512 bytes with all calls, on Linux 6.1). */
    sample->head.pid = NUMBER(task->tgid);
    sample->head.tid = NUMBER(task->pid);
    u32 flags = NUMBER(task->flags);
    sample->flags = sample_flags;
    sample->script = 0;
    sample->call = NO_CALL;
    if (flags & PF_KTHREAD || !mm_of(task)) {
        sample->flags |= SAMPLE_NO_USER;
    } else {
        u32 why = WHY_ODD;
        if (walking->begun && !(flags & (PF_USER_WORKER | PF_IO_WORKER)))
            why = walk_user(task, walking, sample->head.pid, sample->head.tid);
        if (control->began && why != WHY_ROOT) {
            tell_script(task, walking);
            return why;
        }
    }
    /* Until the recording begins, walks only serve to request tables. */
    if (!control->began)
        return WHY_ROOT;
    u32 user = walking->walk.count;
    if (user > MAX_FRAMES)
        return WHY_TOO_DEEP;
    u32 kernel = 0;
    u64 hash = walking->walk.hash;
    if (sample->flags & SAMPLE_IN_KERNEL) {
        long bytes = bpf_get_stack(ctx, &draft->frames[user], 8 * MAX_KERNEL_FRAMES, 0);
        if (bytes > 0)
            kernel = (u32)bytes >> 3;
        hash = mix(draft, user, kernel, hash);
        if (!(sample->flags & SAMPLE_NO_USER))
            sample->call = call_of(task);
    }
    sample->user = user;
    sample->kernel = kernel;
    hash = script_frames(draft, walking->space, walking->script, sample->head.pid, hash);
    sample->head.kind = MESSAGE_SAMPLE;
    sample->head.cpu = bpf_get_smp_processor_id();
    sample->head.time_ns = bpf_ktime_get_ns();
    sample->period = period;
    sample->event = event;
    /* A count covers one event and one system call. */
    hash += ((u64)sample->call << 32 | sample->event) * 0x9e3779b97f4a7c15ull;
    if (sample_flags & SAMPLE_STACK_ONLY) {
        sample->key = hash & ~1ull;
        if (is_known(sample))
            return WHY_ROOT;
    } else {
        sample->key = counting && was_met(hash) ? hash | 1 : 0;
        if (sample->key && counted(sample))
            return WHY_ROOT;
    }
    u64 words = user + kernel + 2 * sample->script;
    if (words > MAX_WORDS)
        return WHY_TOO_DEEP;
    if (bpf_ringbuf_output(&ring, sample, sizeof(struct Sample) + 8 * at_most(words, MAX_WORDS), wake())) {
        /* Removes the count: the recorder would not know the stack of this key. */
        struct CountKey key = { .key = sample->key, .pid = sample->head.pid, .tid = sample->head.tid };
        if (sample->key)
            bpf_map_delete_elem(&counts, &key);
        return WHY_RING_FULL;
    }
    return WHY_ROOT;
}

/* Sends the system call of a sample whose record the kernel writes, as the record lacks it. */
INLINE void say_call(struct task_struct *task)
{
    if (NUMBER(task->flags) & (PF_KTHREAD | PF_USER_WORKER | PF_IO_WORKER) || !mm_of(task))
        return;
    struct HandedOver in = {
        .head = { .kind = MESSAGE_HANDED_OVER, .time_ns = bpf_ktime_get_ns(), .pid = NUMBER(task->tgid), .tid = NUMBER(task->pid) },
        .call = call_of(task),
    };
    bpf_ringbuf_output(&ring, &in, sizeof(in), BPF_RB_NO_WAKEUP);
}

/* Sends the registers of a sample that interrupted user code, at most once per REGISTERS_INTERVAL_NS and draft. */
INLINE void tell_registers(struct bpf_perf_event_data *ctx, struct task_struct *task, struct draft *draft, u32 event)
{
    if (!IS_USER_64(&ctx->regs))
        return;
    u64 now = bpf_ktime_get_ns();
    if (now < draft->registers_ns)
        return;
    draft->registers_ns = now + REGISTERS_INTERVAL_NS;
    struct Registers *told = bpf_ringbuf_reserve(&ring, sizeof(struct Registers), 0);
    if (!told)
        return;
    told->head.kind = MESSAGE_REGISTERS;
    told->head.cpu = bpf_get_smp_processor_id();
    told->head.time_ns = now;
    told->head.pid = NUMBER(task->tgid);
    told->head.tid = NUMBER(task->pid);
    told->ip = USER_PC(&ctx->regs);
    user_registers(told->values, &ctx->regs);
    told->event = event;
    told->zero = 0;
    bpf_ringbuf_submit(told, BPF_RB_NO_WAKEUP);
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct Control *control = the_control();
    if (!control)
        return 1;
    if (!is_followed(control, task)) {
        if (control->began)
            add(COUNTER_OTHERS, 1);
        return 0;
    }
    struct walking walking = {};
    walking.draft = claim(&walking.walk.slot);
    u32 why = WHY_NESTED;
    if (walking.draft) {
        walking.begun = begin_where_sampled(&walking.walk, &ctx->regs, task);
        u32 flags = IS_USER(&ctx->regs) ? 0 : SAMPLE_IN_KERNEL;
        why = take(ctx, task, &walking, flags, ctx->sample_period, bpf_get_attach_cookie(ctx));
        if (why == WHY_ROOT && control->began)
            tell_registers(ctx, task, walking.draft, bpf_get_attach_cookie(ctx));
        give_back(walking.draft);
    }
    if (!control->began)
        return 0;
    add(COUNTER_WHY + (why & 15), 1);
    if (why != WHY_ROOT && !IS_USER(&ctx->regs))
        say_call(task);
    return why != WHY_ROOT;
}

#include "offcpu.h"
#include "offlooks.h"
#include "places.h"

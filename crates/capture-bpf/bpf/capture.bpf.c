/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Samples with their stacks walked here, and the mappings of processes that this takes.
 *
 * `sample` is attached to perf's sampling events. It returns 0 for a sample that it has taken care of; for all others
 * it returns 1, and perf writes its own record with registers and a copy of the stack. So whatever goes wrong here
 * costs a copy, never a sample.
 *
 * Mappings come from looking at exec (the program, its loader, the vdso), from one look for each sample that meets an
 * address it doesn't know, and from the parent at fork. `on_map` takes them away while the kernel changes them: it holds
 * the process' mmap lock then, which a look takes too, so that nobody can enter what is about to go. */
#include "kernel.h"
#include "wire.h"
#include "follow.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set before loading. */
const volatile u32 counting = 1;
const volatile u32 ring_bytes = 0;

struct {
    UINT(type, BPF_MAP_TYPE_RINGBUF);
    UINT(max_entries, 1 << 22);
} ring SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, MAX_FILES);
    TYPE(key, u32);
    TYPE(value, struct File);
} files SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    UINT(max_entries, MAX_CHUNKS);
    TYPE(key, u32);
    __attribute__((aligned(8))) struct {
        UINT(type, BPF_MAP_TYPE_ARRAY);
        UINT(max_entries, 1);
        UINT(map_flags, BPF_F_MMAPABLE);
        UINT(key_size, 4);
        UINT(value_size, CHUNK_BYTES);
    } *values[];
} chunks SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_HASH);
    UINT(max_entries, MAX_COUNTS);
    TYPE(key, struct CountKey);
    TYPE(value, struct Count);
} counts SEC(".maps");

/* Stacks that were met lately, one in so many by some bits of its hash, as the others. */
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

struct comm {
    char text[COMM_BYTES];
};

/* Who execs and then has this name is followed; empty: nobody. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct comm);
} awaited SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, 1024);
    TYPE(key, u32);
    TYPE(value, struct RuleCache);
} caches SEC(".maps");

/* Where the structures of interpreters have their members, by number. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, MAX_LAYOUTS);
    TYPE(key, u32);
    TYPE(value, struct PythonLayout);
} layouts SEC(".maps");

/* By process: an address in a file with an interpreter, as the recorder learnt. */
struct {
    UINT(type, BPF_MAP_TYPE_LRU_HASH);
    UINT(max_entries, MAX_SPACES);
    TYPE(key, u32);
    TYPE(value, u64);
} interpreted SEC(".maps");

/* A Python frame, and room for a word that begins anywhere in 128 bytes (python.h). */
struct py_frame {
    u8 bytes[136];
};

/* What does not change in a code object: PY_CODE_IDENTITY and what follows (python.h). */
struct py_code {
    u64 words[PYTHON_IDENTITY_WORDS];
};

/* How far the frames of a Python program have been read. In a map, of which the verifier does not follow each value that a number
 * takes. */
struct py_state {
    /* The frame that comes next; 0: there is none. */
    u64 frame;
    /* 3.11: the next round further out. */
    u64 cframe;
    /* An address in a native frame that is yet to be found; 0: none is looked for. */
    u64 sought;
    u64 hash;
    /* The program in the process. */
    u64 life;
    /* Native frames: how many there are, and the one that is looked at. */
    u32 user;
    u32 native;
    /* Words of script frames so far, and where they begin. */
    u32 words;
    u32 base;
    /* Frames of the round at hand. */
    u32 in_round;
    u32 padding;
};

/* Frames of a sample, with two words for each of an interpreted program. */
#define MAX_WORDS (MAX_FRAMES + MAX_KERNEL_FRAMES + 2 * MAX_SCRIPT_FRAMES)

/* A sample being made. What is used in each step comes first: an instruction reaches no further than 32 KiB. */
struct draft {
    /* Somebody makes a sample here. */
    u32 taken;
    struct Window window;
    /* The Python frame at hand: on the stack of a program there is no room for it. */
    struct py_frame py_frame;
    struct py_code py_code;
    struct py_state py;
    /* What is sent. */
    struct Sample sample;
    u64 frames[MAX_WORDS + 1];
    /* The stack pointer in each user frame. */
    u64 places[MAX_FRAMES];
};

/* DRAFTS for each processor: too large for a per-processor map. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, 1024);
    TYPE(key, u32);
    TYPE(value, struct draft);
} drafts SEC(".maps");

/* A draft, and its number: nobody else's until it is given back, as one program may interrupt another. 0: all are taken. */
INLINE struct draft *claim(u32 *slot)
{
    u32 first = bpf_get_smp_processor_id() * DRAFTS;
    for (u32 i = 0; i < DRAFTS; i++) {
        *slot = first + i;
        struct draft *draft = bpf_map_lookup_elem(&drafts, slot);
        if (draft && !__sync_lock_test_and_set(&draft->taken, 1)) {
            draft->window.begin = NO_WINDOW;
            return draft;
        }
    }
    return 0;
}

INLINE void give_back(struct draft *draft)
{
    BARRIER();
    draft->taken = 0;
}

/* A word of user memory. A copy of what is around it is kept for the walk, as the next ones are there: most of what a word
 * costs is the call for it. */
INLINE int env_read(u32 slot, u64 at, u64 *value)
{
    struct draft *draft = bpf_map_lookup_elem(&drafts, &slot);
    if (!draft)
        return -1;
    struct Window *window = &draft->window;
    u64 offset = at - window->begin;
    if (offset > WINDOW_BYTES - 8) {
        if (bpf_probe_read_user(window->bytes, WINDOW_BYTES, (const void *)at)) {
            /* The end of what is mapped, or of what is there. The copy is zeros now. */
            if (bpf_probe_read_user(value, 8, (const void *)at))
                return -1;
            window->begin = NO_WINDOW;
            return 0;
        }
        window->begin = at;
        offset = 0;
    }
    *value = *(u64 *)(window->bytes + (offset & (WINDOW_BYTES - 1)));
    return 0;
}

INLINE int env_peek(u64 at, u64 *value)
{
    return bpf_probe_read_user(value, 8, (const void *)at);
}

INLINE struct File *env_file(u32 number)
{
    return bpf_map_lookup_elem(&files, &number);
}

INLINE const u8 *env_chunk(u32 number)
{
    void *chunk = bpf_map_lookup_elem(&chunks, &number);
    u32 zero = 0;
    return chunk ? bpf_map_lookup_elem(chunk, &zero) : 0;
}

INLINE struct RuleCache *env_cache(void)
{
    u32 cpu = bpf_get_smp_processor_id();
    return bpf_map_lookup_elem(&caches, &cpu);
}

#include "walk.h"
#include "spaces.h"

/* Says how much processor time a task has used. */
INLINE void say_spent(struct task_struct *task, u32 until)
{
    struct Control *control = the_control();
    if (!control || !control->began)
        return;
    struct Spent spent = {
        .head = { .kind = MESSAGE_SPENT, .time_ns = bpf_ktime_get_ns(), .pid = task->tgid, .tid = task->pid },
        .runtime_ns = task->se.sum_exec_runtime,
        .until = until,
    };
    bpf_ringbuf_output(&ring, &spent, sizeof(spent), BPF_RB_NO_WAKEUP);
}

/* Asks for the table of a file that is mapped at an address, once. */
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

/* Asks for the table of what is mapped at an address, before anything runs there: a short process is gone, and a deleted file with
 * it, by the time that a sample would ask. */
INLINE void want_at(struct task_struct *task, struct Space *space, u64 address)
{
    int index = mapping_at(space, address);
    if (index >= 0)
        want(space->mappings[index & (MAX_MAPPINGS - 1)].file, address, task->tgid, task->pid);
}

/* Follows a process that has exec'd what is waited for. */
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
    u32 tgid = task->tgid;
    bpf_map_delete_elem(&interpreted, &tgid);
    meet(task);
    say_spent(task, UNTIL_EXEC);
    struct Control *control = the_control();
    if (!control || !is_followed(control, task))
        return 0;
    struct Space *space = new_space(task->tgid, (u64)mm);
    if (!space)
        return 0;
    struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
    /* Where the program begins: in its loader, if it has one. */
    look(task, space, regs->ip);
    if (mapping_at(space, mm->start_code) < 0)
        look(task, space, mm->start_code);
    look(task, space, (u64)mm->context.vdso);
    want_at(task, space, mm->start_code);
    want_at(task, space, regs->ip);
    return 0;
}

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
    struct task_struct *parent = (struct task_struct *)ctx[0];
    struct task_struct *child = (struct task_struct *)ctx[1];
    u32 from = parent->tgid, to = child->tgid;
    if (from == to)
        return 0;
    inherit(parent, child);
    u64 *address = bpf_map_lookup_elem(&interpreted, &from);
    if (address)
        bpf_map_update_elem(&interpreted, &to, address, BPF_ANY);
    struct Space *space = bpf_map_lookup_elem(&spaces, &from);
    if (!space || space->mm != (u64)parent->mm)
        return 0;
    bpf_map_update_elem(&spaces, &to, space, BPF_ANY);
    space = bpf_map_lookup_elem(&spaces, &to);
    if (space) {
        space->mm = (u64)child->mm;
        space->birth = __sync_fetch_and_add(&last_birth, 1) + 1;
    }
    return 0;
}

/* Something is written to a maple tree, of which the mappings of a process are one: they are mapped, unmapped, moved. */
SEC("tp_btf/ma_write")
int on_map(u64 *ctx)
{
    struct ma_state *state = (struct ma_state *)ctx[1];
    struct task_struct *task = bpf_get_current_task_btf();
    struct mm_struct *mm = task->mm;
    if (!mm || state->tree != &mm->mm_mt)
        return 0;
    u32 tgid = task->tgid;
    struct Space *space = bpf_map_lookup_elem(&spaces, &tgid);
    if (!space || space->mm != (u64)mm)
        return 0;
    /* The same addresses are other code from now on, so other stacks. */
    if (forget(space, state->index, state->last))
        space->birth = __sync_fetch_and_add(&last_birth, 1) + 1;
    return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(u64 *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx[0];
    u32 tgid = task->tgid;
    if (task->signal->live.counter <= 0) {
        bpf_map_delete_elem(&spaces, &tgid);
        bpf_map_delete_elem(&interpreted, &tgid);
    }
    return 0;
}

/* A task has gone for good, and will run no more: at its exit the work of exiting was still to come. */
SEC("tp_btf/sched_process_free")
int on_free(u64 *ctx)
{
    say_spent((struct task_struct *)ctx[0], UNTIL_END);
    return 0;
}

#ifndef WITHOUT_PYTHON
#include "python.h"
#endif

struct walking {
    struct walk walk;
    struct Space *space;
    struct draft *draft;
    /* The file of the last frame. */
    u32 file;
    /* There is 64-bit code to begin in. */
    u32 begun;
    /* An address in a file with an interpreter; 0: there was none. */
    u64 script;
};

static long step(u32 index, struct walking *walking)
{
    struct walk *walk = &walking->walk;
    if (walk->scanned) {
        int more = scan_step(walk, walking->space);
        asm volatile("" : "+r"(more));
        return more ? 0 : 1;
    }
    u64 pc = walk->pc;
    u64 frame = walk->is_return ? pc : pc | FRAME_NO_RETURN;
    if (walk->is_scanned)
        frame |= FRAME_SCANNED;
    walk->is_scanned = 0;
    walking->draft->frames[walk->count & (MAX_FRAMES - 1)] = frame;
    walking->draft->places[walk->count & (MAX_FRAMES - 1)] = walk->sp;
    walk->count++;
    walk->hash = (walk->hash ^ frame) * 0x9e3779b97f4a7c15ull;
    walk->hash ^= walk->hash >> 29;
    walk->why = WHY_TOO_DEEP;
    int more = walk_step(walk, walking->space);
    if (walk->file != walking->file) {
        walking->file = walk->file;
        struct File *file = env_file(walk->file);
        if (file && file->python)
            walking->script = walk->address;
    }
    /* The compiler knows that it is 0 or 1, the verifier does not. */
    asm volatile("" : "+r"(more));
    return more ? 0 : 1;
}

/* Where user code was when it was left for the kernel. 0: it is no 64-bit code. */
INLINE int begin_where_left(struct walk *walk, struct task_struct *task)
{
    struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
    if ((regs->cs & 0xffff) != 0x33)
        return 0;
    walk->pc = regs->ip;
    walk->sp = regs->sp;
    walk->fp = regs->bp;
    return 1;
}

/* Where a sample interrupted user code, or where that was left. */
INLINE int begin_where_sampled(struct walk *walk, struct user_pt_regs *regs, struct task_struct *task)
{
    if (!(regs->cs & 3))
        return begin_where_left(walk, task);
    walk->pc = regs->ip;
    walk->sp = regs->sp;
    u64 fp = regs->bp;
    /* Or the two loads become one through either pointer, which the verifier does not take. */
    asm volatile("" : "+r"(fp));
    walk->fp = fp;
    return 1;
}

/* Looks for an interpreter that the recorder knows to be mapped: where a walk ends before it gets there. */
INLINE void find_script(struct task_struct *task, struct Space *space)
{
    u32 tgid = task->tgid;
    u64 *address = space->script ? 0 : bpf_map_lookup_elem(&interpreted, &tgid);
    if (!address)
        return;
    if (mapping_at(space, *address) < 0)
        look(task, space, *address);
    want_at(task, space, *address);
    space->script = *address;
}

/* Walks the user stack of the current task into the draft, from where the walk was begun. Returns a WHY. */
INLINE u32 walk_user(struct task_struct *task, struct walking *walking, u32 pid, u32 tid)
{
    u32 tgid = task->tgid;
    struct mm_struct *mm = task->mm;
    struct Space *space = bpf_map_lookup_elem(&spaces, &tgid);
    if (!space)
        space = new_space(tgid, (u64)mm);
    if (!space)
        return WHY_UNMAPPED;
    /* New memory, and the registers still are the old program's. */
    if (space->mm != (u64)mm)
        return WHY_EXEC;
    struct walk *walk = &walking->walk;
    walk->hash = space->birth;
    walk->now = bpf_ktime_get_ns() >> 30;
    walking->space = space;
    bpf_loop(MAX_FRAMES, step, walking, 0);
    if (walk->why == WHY_UNMAPPED && look(task, space, walk->address)) {
        /* Where it stopped: nothing of that frame has changed, but it has been noted already. */
        if (walk_step(walk, space))
            bpf_loop(MAX_FRAMES, step, walking, 0);
    }
    if (walk->why == WHY_NO_TABLE)
        want(walk->file, walk->address, pid, tid);
    if (walking->script)
        space->script = walking->script;
    else if (walk->why != WHY_ROOT)
        find_script(task, space);
    return walk->why;
}

/* The number of the system call that a task is in; NO_CALL if it came into the kernel otherwise. */
INLINE u32 call_of(struct task_struct *task)
{
    struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
    long call = regs->orig_ax;
    return call < 0 ? NO_CALL : (u32)call;
}

/* Where the state of the interpreter is whose file has an address, and the number of its layout; 0: there is none. */
APART u64 runtime_at(struct Space *space, u64 address, u32 *layout)
{
    int index = mapping_at(space, address);
    if (!space || !layout || index < 0)
        return 0;
    struct Mapping *mapping = &space->mappings[index & (MAX_MAPPINGS - 1)];
    struct File *file = env_file(mapping->file);
    if (!file || !file->python)
        return 0;
    *layout = file->layout;
    return file->python + address - stated(file, address - mapping->start + mapping->offset);
}

/* The hash of a stack with some more frames. */
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

/* Whether a stack was met on this processor lately. Most never are again: for them no entry is made, which would cost more
 * than sending the others twice. */
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

/* Counts a stack that was sent before. Returns whether it was. */
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

/* Whether the stack of times off the processor was sent lately. If not, it is taken to be sent now. */
INLINE int is_known(struct Sample *sample)
{
    struct CountKey key = { .key = sample->key, .pid = sample->head.pid, .tid = sample->head.tid };
    if (bpf_map_lookup_elem(&counts, &key))
        return 1;
    struct Count none = {};
    /* Without room it is sent each time. */
    bpf_map_update_elem(&counts, &key, &none, BPF_NOEXIST);
    return 0;
}

/* Whether the recorder is to be woken for a message: once much waits. */
INLINE u64 wake(void)
{
    return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > ring_bytes / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* Puts the frames of the interpreted program into the draft, after the others; `script`: an address in its interpreter's file, or 0. Returns
 * the hash of the stack with them. */
INLINE u64 script_frames(struct draft *draft, struct Space *space, u64 script, u32 tgid, u64 hash)
{
#ifndef WITHOUT_PYTHON
    u32 layout = 0;
    u64 runtime = space && script ? runtime_at(space, script, &layout) : 0;
    if (runtime)
        return py_frames(draft, runtime, layout, space->mm ^ (u64)tgid << 48, hash);
#endif
    return hash;
}

/* Sends the script frames of a sample that is handed over: who reads its record can't find them any more. */
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
    script_frames(draft, space, space->script, task->tgid, 0);
    u64 words = at_most(2 * sample->script, 2 * MAX_SCRIPT_FRAMES);
    if (!words)
        return;
    sample->head.kind = MESSAGE_SAMPLE;
    sample->head.time_ns = bpf_ktime_get_ns();
    sample->head.pid = task->tgid;
    sample->head.tid = task->pid;
    bpf_ringbuf_output(&ring, sample, sizeof(struct Sample) + 8 * words, BPF_RB_NO_WAKEUP);
}

/* Takes care of a sample, whose walk was begun. Returns whether it did, or why not. */
INLINE u32 take(void *ctx, struct task_struct *task, struct walking *walking, u32 sample_flags, u64 period, u32 event)
{
    u32 flags = task->flags, pid = task->tgid, tid = task->pid;
    struct Control *control = the_control();
    struct draft *draft = walking->draft;
    struct Sample *sample = &draft->sample;
    if (!control)
        return WHY_ODD;
    sample->flags = sample_flags;
    sample->script = 0;
    sample->call = NO_CALL;
    if (flags & PF_KTHREAD || !task->mm) {
        sample->flags |= SAMPLE_NO_USER;
    } else {
        u32 why = WHY_ODD;
        if (walking->begun && !(flags & (PF_USER_WORKER | PF_IO_WORKER)))
            why = walk_user(task, walking, pid, tid);
        if (control->began && why != WHY_ROOT) {
            tell_script(task, walking);
            return why;
        }
    }
    /* All that this was for is that tables are asked for. */
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
    hash = script_frames(draft, walking->space, walking->script, pid, hash);
    sample->head.kind = MESSAGE_SAMPLE;
    sample->head.cpu = bpf_get_smp_processor_id();
    sample->head.time_ns = bpf_ktime_get_ns();
    sample->head.pid = pid;
    sample->head.tid = tid;
    sample->period = period;
    sample->event = event;
    /* What is counted is of one event, and in one system call. */
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
    u64 waking = wake();
    if (bpf_ringbuf_output(&ring, sample, sizeof(struct Sample) + 8 * at_most(words, MAX_WORDS), waking)) {
        /* Nobody would know the stack that is counted under this key. */
        struct CountKey key = { .key = sample->key, .pid = pid, .tid = tid };
        if (sample->key)
            bpf_map_delete_elem(&counts, &key);
        return WHY_RING_FULL;
    }
    return WHY_ROOT;
}

/* Says which system call a sample is in whose record the kernel will write: no record says so. */
INLINE void say_call(struct task_struct *task)
{
    if (task->flags & (PF_KTHREAD | PF_USER_WORKER | PF_IO_WORKER) || !task->mm)
        return;
    struct HandedOver in = {
        .head = { .kind = MESSAGE_CALL, .time_ns = bpf_ktime_get_ns(), .pid = task->tgid, .tid = task->pid },
        .call = call_of(task),
    };
    bpf_ringbuf_output(&ring, &in, sizeof(in), BPF_RB_NO_WAKEUP);
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
        u32 flags = ctx->regs.cs & 3 ? 0 : SAMPLE_IN_KERNEL;
        why = take(ctx, task, &walking, flags, ctx->sample_period, bpf_get_attach_cookie(ctx));
        give_back(walking.draft);
    }
    if (!control->began)
        return 0;
    add(COUNTER_WHY + (why & 15), 1);
    if (why != WHY_ROOT && !(ctx->regs.cs & 3))
        say_call(task);
    return why != WHY_ROOT;
}

#include "offcpu.h"
#include "places.h"

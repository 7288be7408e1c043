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
    UINT(type, BPF_MAP_TYPE_LRU_HASH);
    UINT(max_entries, MAX_SPACES);
    TYPE(key, u32);
    TYPE(value, struct Space);
} spaces SEC(".maps");

/* One entry of zeros, and one to build a new one in for each processor. */
struct {
    UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    UINT(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct Space);
} blank SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_HASH);
    UINT(max_entries, MAX_FILES);
    TYPE(key, struct FileKey);
    TYPE(value, u32);
} numbers SEC(".maps");

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

struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, 1024);
    TYPE(key, u32);
    TYPE(value, struct Window);
} windows SEC(".maps");

/* A sample being made. */
struct draft {
    struct Sample sample;
    u64 frames[MAX_FRAMES + MAX_KERNEL_FRAMES + 2 * MAX_SCRIPT_FRAMES + 1];
    /* The stack pointer in each user frame. */
    u64 places[MAX_FRAMES];
};

/* One for each processor: too large for a per-processor map. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, 1024);
    TYPE(key, u32);
    TYPE(value, struct draft);
} drafts SEC(".maps");

u32 last_file = FILE_FIRST - 1;
u64 last_birth = 0;

/* A word of user memory. A copy of what is around it is kept for the walk, as the next ones are there: most of what a word
 * costs is the call for it. */
INLINE int env_read(u64 at, u64 *value)
{
    u32 cpu = bpf_get_smp_processor_id();
    struct Window *window = bpf_map_lookup_elem(&windows, &cpu);
    if (!window)
        return -1;
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

/* The number of a file: a new one if it was not seen before. */
INLINE u32 file_number(struct file *file)
{
    struct inode *inode = file->f_inode;
    struct FileKey key = {
        .inode = inode->i_ino,
        .size = inode->i_size,
        .device = inode->i_sb->s_dev,
        .generation = inode->i_generation,
    };
    u32 *known = bpf_map_lookup_elem(&numbers, &key);
    if (known)
        return *known;
    u32 number = __sync_fetch_and_add(&last_file, 1) + 1;
    if (number >= MAX_FILES)
        return FILE_NONE;
    if (!bpf_map_update_elem(&numbers, &key, &number, BPF_NOEXIST))
        return number;
    /* Another processor was faster. */
    known = bpf_map_lookup_elem(&numbers, &key);
    return known ? *known : FILE_NONE;
}

struct looking {
    struct Space *space;
    u64 found;
};

static long enter_vma(struct task_struct *task, struct vm_area_struct *vma, struct looking *looking)
{
    struct Space *space = looking->space;
    u64 start = vma->vm_start, end = vma->vm_end;
    if (!(vma->vm_flags & VM_EXEC))
        return 0;
    struct file *file = vma->vm_file;
    u32 number = FILE_NONE;
    u64 offset = 0;
    if (file) {
        number = file_number(file);
        offset = (u64)vma->vm_pgoff << 12;
    } else if ((u64)task->mm->context.vdso == start) {
        number = FILE_VDSO;
    }
    u32 index = __sync_fetch_and_add(&space->entered, 1) & (MAX_MAPPINGS - 1);
    struct Mapping *mapping = &space->mappings[index];
    /* Nobody finds it before its length is there. */
    mapping->pages = 0;
    BARRIER();
    mapping->start = start;
    mapping->offset = offset;
    mapping->file = number;
    BARRIER();
    mapping->pages = (end - start) >> 12;
    looking->found = 1;
    return 0;
}

/* Enters the mapping of an address. Returns whether there is one. */
INLINE int look(struct task_struct *task, struct Space *space, u64 address)
{
    struct looking looking = { .space = space };
    return !bpf_find_vma(task, address, enter_vma, &looking, 0) && looking.found;
}

/* A new, empty space for a process. */
INLINE struct Space *new_space(u32 tgid, u64 mm)
{
    u32 zero = 0;
    struct Space *space = bpf_map_lookup_elem(&blank, &zero);
    if (!space)
        return 0;
    space->mm = mm;
    space->birth = __sync_fetch_and_add(&last_birth, 1) + 1;
    bpf_map_update_elem(&spaces, &tgid, space, BPF_ANY);
    return bpf_map_lookup_elem(&spaces, &tgid);
}

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
    meet(task);
    say_spent(task, UNTIL_EXEC);
    struct Space *space = new_space(task->tgid, (u64)mm);
    if (!space)
        return 0;
    struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
    /* Where the program begins: in its loader, if it has one. */
    look(task, space, regs->ip);
    if (mapping_at(space, mm->start_code) < 0)
        look(task, space, mm->start_code);
    look(task, space, (u64)mm->context.vdso);
    struct Control *control = the_control();
    if (control && is_followed(control, task)) {
        want_at(task, space, mm->start_code);
        want_at(task, space, regs->ip);
    }
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

/* Forgets what was known of these addresses. */
APART int forget(struct Space *space, u64 first, u64 last)
{
    if (!space)
        return 0;
    int found = 0;
    for (u32 i = 0; i < MAX_MAPPINGS; i++) {
        struct Mapping *mapping = &space->mappings[i];
        u64 pages = mapping->pages;
        if (!pages || mapping->start > last || mapping->start + (pages << 12) <= first)
            continue;
        mapping->pages = 0;
        found = 1;
    }
    return found;
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
    if (task->signal->live.counter <= 0)
        bpf_map_delete_elem(&spaces, &tgid);
    return 0;
}

/* A task has gone for good, and will run no more: at its exit the work of exiting was still to come. */
SEC("tp_btf/sched_process_free")
int on_free(u64 *ctx)
{
    say_spent((struct task_struct *)ctx[0], UNTIL_END);
    return 0;
}

#include "python.h"

struct walking {
    struct walk walk;
    struct Space *space;
    struct draft *draft;
    /* The file of the last frame. */
    u32 file;
    u32 padding;
    /* An address in a file with an interpreter; 0: there was none. */
    u64 script;
};

static long step(u32 index, struct walking *walking)
{
    struct walk *walk = &walking->walk;
    u64 pc = walk->pc;
    u64 frame = walk->is_return ? pc : pc | FRAME_NO_RETURN;
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

/* Walks the user stack into the draft. Returns a WHY. */
INLINE u32 walk_user(struct bpf_perf_event_data *ctx, struct task_struct *task, struct walking *walking, u32 pid,
                     u32 tid)
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
    if (ctx->cs & 3) {
        walk->pc = ctx->ip;
        walk->sp = ctx->sp;
        u64 fp = ctx->bp;
        /* Or the two loads become one through either pointer, which the verifier does not take. */
        asm volatile("" : "+r"(fp));
        walk->fp = fp;
    } else {
        struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
        if ((regs->cs & 0xffff) != 0x33)
            return WHY_ODD;
        walk->pc = regs->ip;
        walk->sp = regs->sp;
        walk->fp = regs->bp;
    }
    u32 cpu = bpf_get_smp_processor_id();
    struct Window *window = bpf_map_lookup_elem(&windows, &cpu);
    if (window)
        window->begin = NO_WINDOW;
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
    return walk->why;
}

/* Where the state of the interpreter is whose file has an address; 0: there is none. */
APART u64 runtime_at(struct Space *space, u64 address)
{
    int index = mapping_at(space, address);
    if (!space || index < 0)
        return 0;
    struct Mapping *mapping = &space->mappings[index & (MAX_MAPPINGS - 1)];
    struct File *file = env_file(mapping->file);
    return file && file->python ? file->python + address - stated(file, address - mapping->start + mapping->offset) : 0;
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

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    u32 flags = task->flags;
    struct Control *control = the_control();
    if (!control)
        return 1;
    if (!is_followed(control, task)) {
        if (control->began)
            add(COUNTER_OTHERS, 1);
        return 0;
    }
    u32 cpu = bpf_get_smp_processor_id();
    struct draft *draft = bpf_map_lookup_elem(&drafts, &cpu);
    if (!draft)
        return 1;
    u32 pid = task->tgid, tid = task->pid;
    struct walking walking = { .draft = draft };
    struct Sample *sample = &draft->sample;
    sample->flags = ctx->cs & 3 ? 0 : SAMPLE_IN_KERNEL;
    sample->script = 0;
    if (flags & (PF_USER_WORKER | PF_IO_WORKER))
        return control->began;
    if (flags & PF_KTHREAD || !task->mm) {
        sample->flags |= SAMPLE_NO_USER;
    } else {
        u32 why = walk_user(ctx, task, &walking, pid, tid);
        /* All that this was for is that tables are asked for. */
        if (!control->began)
            return 0;
        if (why != WHY_ROOT) {
            add(COUNTER_WHY + (why & 15), 1);
            return 1;
        }
    }
    if (!control->began)
        return 0;
    u32 user = walking.walk.count;
    if (user > MAX_FRAMES)
        return 1;
    u32 kernel = 0;
    u64 hash = walking.walk.hash;
    if (sample->flags & SAMPLE_IN_KERNEL) {
        long bytes = bpf_get_stack(ctx, &draft->frames[user], 8 * MAX_KERNEL_FRAMES, 0);
        if (bytes > 0)
            kernel = (u32)bytes >> 3;
        hash = mix(draft, user, kernel, hash);
    }
    sample->user = user;
    sample->kernel = kernel;
    struct Space *space = walking.space;
    u64 runtime = space && walking.script ? runtime_at(space, walking.script) : 0;
    if (runtime)
        hash = py_frames(draft, runtime, space->mm ^ (u64)pid << 48, hash);
    sample->head.kind = MESSAGE_SAMPLE;
    sample->head.cpu = cpu;
    sample->head.time_ns = bpf_ktime_get_ns();
    sample->head.pid = pid;
    sample->head.tid = tid;
    sample->period = ctx->sample_period;
    sample->event = bpf_get_attach_cookie(ctx);
    /* What is counted is of one event. */
    hash += sample->event * 0x9e3779b97f4a7c15ull;
    sample->key = counting && was_met(hash) ? hash | 1 : 0;
    add(COUNTER_WALKED, 1);
    if (sample->key && counted(sample))
        return 0;
    u64 words = user + kernel + 2 * sample->script;
    if (words > MAX_FRAMES + MAX_KERNEL_FRAMES + 2 * MAX_SCRIPT_FRAMES)
        return 1;
    u64 wake = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > ring_bytes / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
    if (bpf_ringbuf_output(&ring, draft, sizeof(struct Sample) + 8 * words, wake)) {
        /* Nobody would know the stack that is counted under this key. */
        struct CountKey key = { .key = sample->key, .pid = pid, .tid = tid };
        if (sample->key)
            bpf_map_delete_elem(&counts, &key);
        add(COUNTER_RING_FULL, 1);
        return 1;
    }
    return 0;
}

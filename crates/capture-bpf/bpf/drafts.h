/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* The memory of walks: files' tables, and drafts of samples, in which what is read of a process is kept.
 *
 * A draft is one program's until it gives it back, whatever interrupts it. */
#ifndef PLUMB_DRAFTS_H
#define PLUMB_DRAFTS_H

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
    TYPE(value, struct ScriptLayout);
} layouts SEC(".maps");

/* A Python frame, and room for a word that begins anywhere in 128 bytes (python.h). */
struct py_frame {
    u8 bytes[136];
};

/* What does not change in a code object: PY_CODE_IDENTITY and what follows (python.h). */
struct py_code {
    u64 words[SCRIPT_IDENTITY_WORDS];
};

/* How far the frames of a Python program have been read. In a map, of which the verifier does not follow each value that a number
 * takes. */
struct py_state {
    /* The frame that comes next; 0: there is none. */
    u64 frame;
    /* Python 3.11: the next round further out. Ruby: where frames end. Perl: the list that the context at hand is in. */
    u64 cframe;
    /* Perl: where that list (PERL_SI) begins, and the statement (COP) that runs in the frame that comes next ... */
    u64 first;
    u64 statement;
    /* ... and the one that the context that was read last goes back to (blk_oldcop); the interpreter. */
    u64 outer_statement;
    u64 thread;
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
    /* Frames of the round at hand; Perl: a call began it. */
    u32 in_round;
    /* Perl: the line in a block that has a round to itself, or PERL_NO_BLOCK. */
    u32 block;
};

/* Frames of a sample, with two words for each of an interpreted program. */
#define MAX_WORDS (MAX_FRAMES + MAX_KERNEL_FRAMES + 2 * MAX_SCRIPT_FRAMES)

/* A sample being made. What is used in each step comes first: an instruction reaches no further than 32 KiB. */
struct draft {
    /* Somebody makes a sample here. */
    u32 taken;
    /* When the next sample comes with its registers. */
    u64 registers_ns;
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

/* The most returns of one task that probes wait for (kernel/events/uprobes.c). */
#define MAX_URETPROBE_DEPTH 64

/* The return address that a probe on returns (uretprobe) has replaced at this place of the stack. 0: there is none. */
APART u64 env_return(u64 at)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct uprobe_task *probes = 0;
    struct return_instance *instance = 0;
    if (!HAS(task->utask) || !HAS(instance->orig_ret_vaddr))
        return 0;
    READ(probes, task->utask);
    if (!probes)
        return 0;
    READ(instance, probes->return_instances);
    for (u32 i = 0; i < MAX_URETPROBE_DEPTH && instance; i++) {
        u64 stack = 0, pc = 0;
        READ_NUMBER(stack, instance->stack);
        if (stack == at) {
            READ_NUMBER(pc, instance->orig_ret_vaddr);
            return pc;
        }
        READ(instance, instance->next);
    }
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

#endif

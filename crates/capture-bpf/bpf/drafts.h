/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* The memory of walks: files' tables, and drafts of samples, which hold data read from a process.
 *
 * A draft belongs to one program until the program gives it back, whatever interrupts it. */
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

/* Offsets of members in interpreters' structures, by layout number. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, MAX_LAYOUTS);
    TYPE(key, u32);
    TYPE(value, struct ScriptLayout);
} layouts SEC(".maps");

/* A script frame, and space for a word that begins anywhere in 128 bytes (script.h). */
struct script_frame {
    u8 bytes[136];
};

/* The constant words of a code object, from `identity_at` of its layout on. */
struct script_code {
    u64 words[SCRIPT_IDENTITY_WORDS];
};

/* The progress of reading script frames. It is in a map because there the verifier does not follow every value of a number. */
struct script_state {
    /* The next frame to read; 0: none is left. */
    u64 frame;
    /* An address inside a native frame that is yet to be found; 0: no search. */
    u64 sought;
    u64 hash;
    /* Identity of the program in the process. */
    u64 life;
    /* The number of native frames, and the index of the one being examined. */
    u32 user;
    u32 native;
    /* Words of script frames so far, and the index of the first. */
    u32 words;
    u32 base;
    /* Frames of the current evaluation loop. */
    u32 in_round;
    /* A number that stands for the last word of a code object in its identity; 0: none. */
    u32 number;
    /* The progress that only the interpreter's reader knows. */
    u64 own[6];
};

/* Words of frames of a sample: script frames have two each. */
#define MAX_WORDS (MAX_FRAMES + MAX_KERNEL_FRAMES + 2 * MAX_SCRIPT_FRAMES)

/* A sample being taken. Members used in every step come first, as an instruction reaches no further than 32 KiB. */
struct draft {
    /* Whether a program uses this draft. */
    u32 taken;
    /* The earliest time of the next sample that is sent with its registers. */
    u64 registers_ns;
    struct Window window;
    /* The current script frame, as the stack of a BPF program has no space for it. */
    struct script_frame script_frame;
    struct script_code script_code;
    struct script_state script;
    /* The message to send, with its frames. */
    struct Sample sample;
    u64 frames[MAX_WORDS + 1];
    /* The stack pointer in each user frame. */
    u64 places[MAX_FRAMES];
};

/* Drafts, DRAFTS for each CPU: too large for a per-CPU map. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, 1024);
    TYPE(key, u32);
    TYPE(value, struct draft);
} drafts SEC(".maps");

/* Claims a draft and stores its number. It is exclusive until given back, as one program may interrupt another. Returns 0 if all are
 * taken. */
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

/* Reads a word of user memory. The memory around it is copied for the walk, whose next words are usually there: the call of the helper
 * is most of a word's cost. */
INLINE int env_read(u32 slot, u64 at, u64 *value)
{
    struct draft *draft = bpf_map_lookup_elem(&drafts, &slot);
    if (!draft)
        return -1;
    struct Window *window = &draft->window;
    u64 offset = at - window->begin;
    if (offset > WINDOW_BYTES - 8) {
        if (bpf_probe_read_user(window->bytes, WINDOW_BYTES, (const void *)at)) {
            /* The end of a mapping, or of resident memory. The window is filled with zeros now. */
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

/* Returns the return address that a return probe (uretprobe) has replaced at this stack address, or 0. */
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

/* Longest instruction. */
#define MAX_INSTRUCTION 15

/* Returns the address of the probed instruction whose copy the kernel has executed at this address: up to its end, or 0. */
APART u64 env_stepped(u64 pc)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct uprobe_task *probes = 0;
    u64 copy = 0, original = 0;
    if (!HAS(task->utask) || !HAS(probes->vaddr) || !HAS(probes->xol_vaddr))
        return 0;
    READ(probes, task->utask);
    if (!probes)
        return 0;
    READ_NUMBER(copy, probes->xol_vaddr);
    READ_NUMBER(original, probes->vaddr);
    return copy && pc - copy <= MAX_INSTRUCTION ? original + (pc - copy) : 0;
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

/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Reads the frames of interpreted programs. Each interpreter has a reader, interpreters/NAME.h, which knows its structures:
 *
 * NAME_thread(root, layout): returns the address of the interpreter's state of the current thread, or 0 if it does not know the thread.
 * NAME_frames(reading, thread): appends the frames of that thread, innermost first, by script_append.
 * NAME_names(tell, layout, at, is_text): fills in the addresses of the texts that name a code object.
 *
 * The recorder supplies the offsets of members of an interpreter's structures (struct ScriptLayout), and with them the number of the
 * reader. What is here serves all of them. Names in this code: a round is a call of the evaluation loop.
 *
 * Memory is read while the thread is interrupted, possibly between two steps of changing these structures: unreadable memory ends a list.
 *
 * Frames are sent whether or not the native frame that runs them is found: it may be beyond the end of the walk.
 *
 * For code that was not seen before, the memory that names it is sent, because the process may soon be gone. */
#ifndef PLUMB_SCRIPT_H
#define PLUMB_SCRIPT_H

/* Hashes of code objects that were reported. Colliding hashes replace each other, and the code is reported again. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, TOLD);
    TYPE(key, u32);
    TYPE(value, u64);
} told SEC(".maps");

/* Zero, but unknown to the verifier. Older verifiers (Linux 6.1) follow a callback of bpf_loop for its first iteration only, and remove
 * code that this iteration can't reach. So values that decide an iteration's path must not be known as the loop begins. */
volatile u64 unknown_zero = 0;

/* The most interpreters and threads that are examined to find a thread. */
#define MAX_SCRIPT_THREADS 1024
/* The most steps of reading the frames of a thread. */
#define MAX_SCRIPT_STEPS (MAX_FRAMES + 2 * MAX_SCRIPT_FRAMES)

struct script_reading {
    struct draft *draft;
    struct ScriptLayout *layout;
};

/* The reader's own structure with its progress through the frames of a thread. */
#define OWN(reading, type)                                                                                             \
    ({                                                                                                                 \
        _Static_assert(sizeof(type) <= sizeof(((struct script_state *)0)->own), "own");                                \
        (type *)(reading)->draft->script.own;                                                                          \
    })

/* A word and a byte of the frame that was read. */
#define FIELD(frame, offset) (*(u64 *)((frame)->bytes + ((offset) & 127)))
#define BYTE(frame, offset) ((frame)->bytes[(offset) & 127])

INLINE int script_read(u64 at, void *to, u32 size)
{
    return bpf_probe_read_user(to, size, (const void *)at) != 0;
}

INLINE u64 script_word(u64 at)
{
    u64 word = 0;
    return script_read(at, &word, 8) ? 0 : word;
}

/* Reads a pointer on the way to a name, and records it for the recorder, which follows the same pointers. */
INLINE u64 script_follow(struct Code *tell, u64 at)
{
    u64 word = script_word(at);
    u32 place = tell->link_words & (LINK_WORDS - 2);
    tell->links[place] = at;
    tell->links[place + 1] = word;
    tell->link_words = place + 2;
    return word;
}

/* Reads the first bytes of an object, halving the size up to twice if memory is missing. Returns the bytes read. */
#define READ_MOST(at, to, size)                                                                                        \
    (!script_read(at, to, size)         ? (size)                                                                       \
     : !script_read(at, to, (size) / 2) ? (size) / 2                                                                   \
     : !script_read(at, to, (size) / 4) ? (size) / 4                                                                   \
                                        : 0)

/* Gets the thread pointer of the current thread; 0 if it is not known, in a process without other threads. Returns 0 if it is not known in
 * another one, so that the thread cannot be told from others. */
INLINE int script_thread_pointer(u64 *pointer)
{
    struct task_struct *task = bpf_get_current_task_btf();
    *pointer = THREAD_POINTER(task);
    return *pointer || NUMBER(task->signal->nr_threads) == 1;
}

/* Returns whether a descriptor (pthread_self) is that of the thread with this pointer. */
INLINE int script_is_own(u64 pointer, u64 id)
{
    return id && (!pointer || IS_DESCRIPTOR(pointer, id));
}

/* Returns whether the current thread is the first of its process. */
INLINE int script_is_main(void)
{
    struct task_struct *task = bpf_get_current_task_btf();
    return NUMBER(task->pid) == NUMBER(task->tgid);
}

/* Returns the identity of code as a number, like `identity` in crates/interpreters. */
APART u32 script_identity(struct script_code *code, struct ScriptLayout *layout)
{
    u64 hash = 0;
    if (!code || !layout)
        return 0;
    for (int i = 0; i < (int)SCRIPT_IDENTITY_WORDS; i++) {
        hash = (hash ^ (code->words[i] & layout->identity[i])) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return hash >> 32;
}

int script_tell(struct ScriptLayout *layout, u64 at, u32 identity, u64 life, u32 is_text);

INLINE void script_put(struct script_reading *reading, u64 word)
{
    u32 at = reading->draft->script.base + reading->draft->script.words;
    if (at >= MAX_WORDS)
        return;
    reading->draft->frames[at] = word;
    reading->draft->script.words++;
    reading->draft->script.hash = (reading->draft->script.hash ^ word) * 0x9e3779b97f4a7c15ull;
    reading->draft->script.hash ^= reading->draft->script.hash >> 29;
}

/* Returns whether that many more frames have no room. If so, the sample says that frames are missing. */
INLINE int script_is_full(struct script_reading *reading, u32 frames)
{
    if (reading->draft->script.words <= 2 * (MAX_SCRIPT_FRAMES - frames))
        return 0;
    reading->draft->sample.flags |= SAMPLE_SCRIPT_CUT;
    return 1;
}

/* Reads the frame at an address into the draft. Returns 0 if it can't be read. */
INLINE int script_read_frame(struct script_reading *reading, u64 at, u32 size)
{
    return size <= SCRIPT_FRAME_BYTES && !script_read(at, &reading->draft->script_frame, size);
}

/* Appends a frame: its code, flags for the first of its words (SCRIPT_ENTRY, SCRIPT_GENERATOR), its instruction. If its code can't be read, the list ends. Not inlined, so that the
 * verifier checks it once, not for each reader. */
APART int script_append(struct draft *draft, struct ScriptLayout *layout, u64 code, u64 flags, u64 instruction)
{
    if (!draft || !layout)
        return 0;
    if (script_read(code + layout->identity_at, &draft->script_code, sizeof(draft->script_code))) {
        draft->script.frame = 0;
        return 0;
    }
    if (draft->script.number)
        draft->script_code.words[SCRIPT_IDENTITY_WORDS - 1] = draft->script.number;
    struct script_reading reading = { .draft = draft, .layout = layout };
    u32 identity = script_identity(&draft->script_code, layout);
    script_tell(layout, code, identity, draft->script.life, 0);
    script_put(&reading, code | flags);
    script_put(&reading, (u64)identity << 32 | (u32)instruction);
    draft->script.in_round++;
    return 0;
}

/* Starts the search for the native frame that contains an address, which begins or ends a round. The reader's steps go on with it
 * (script_find_round) before they read further frames. */
INLINE void script_seek(struct script_reading *reading, u64 at, u64 is_end)
{
    if (reading->draft->script.user) {
        reading->draft->script.sought = at;
    } else {
        script_put(reading, at | SCRIPT_ROUND);
        script_put(reading, is_end);
    }
    reading->draft->script.in_round = 0;
}

/* Goes on to the next native frame, or marks this one as an evaluation loop. */
INLINE long script_find_round(struct script_reading *reading)
{
    struct draft *draft = reading->draft;
    u32 native = reading->draft->script.native & (MAX_FRAMES - 1);
    if (native + 1 >= reading->draft->script.user) {
        /* Native frames further out will not be found either. */
        reading->draft->script.native = reading->draft->script.user;
        reading->draft->script.sought = 0;
        return 0;
    }
    reading->draft->script.native = native + 1;
    if (draft->places[(native + 1) & (MAX_FRAMES - 1)] > reading->draft->script.sought) {
        if (draft->places[native] > reading->draft->script.sought) {
            /* The address is not on this stack, or in frames already passed. */
            reading->draft->script.native = reading->draft->script.user;
        } else {
            draft->frames[native] |= FRAME_LOOP;
            reading->draft->script.hash ^= native;
        }
        reading->draft->script.sought = 0;
    }
    return 0;
}

/* A reader's steps may have 64 bytes of stack, and 32 those that call script_append: up to Linux 6.12 all that a program calls has to fit into
 * 512, each call rounded up to 32, and on_function, this reader and script_tell need the rest. `clang -fstack-usage` says how much a step has. */
#include "interpreters/all.h"

/* Sends the memory that names a code object, unless that was done. `is_text`: the code is identified only by the name of its file,
 * which is at `at`. Not inlined, so that the verifier checks it once, not on each path to it. */
APART int script_tell(struct ScriptLayout *layout, u64 at, u32 identity, u64 life, u32 is_text)
{
    struct task_struct *task = bpf_get_current_task_btf();
    if (!layout)
        return 0;
    u64 mark = ((at ^ life) * 0x9e3779b97f4a7c15ull ^ identity) * 0x9e3779b97f4a7c15ull;
    u32 place = (mark >> 40) & (TOLD - 1);
    u64 *last = bpf_map_lookup_elem(&told, &place);
    if (!last || *last == mark)
        return 0;
    struct Code *tell = bpf_ringbuf_reserve(&ring, sizeof(*tell), 0);
    if (!tell)
        return 0;
    *last = mark;
    tell->head.kind = MESSAGE_CODE;
    tell->head.cpu = 0;
    tell->head.time_ns = bpf_ktime_get_ns();
    tell->head.pid = NUMBER(task->tgid);
    tell->head.tid = NUMBER(task->pid);
    tell->at = at;
    tell->identity = identity;
    tell->link_words = 0;
    tell->name_at = tell->file_at = tell->lines_at = 0;
    switch (layout->reader) {
#define NAMES(NAME, name)                                                                                              \
    case NAME##_READER:                                                                                                \
        name##_names(tell, layout, at, is_text);                                                                       \
        break;
        EACH_INTERPRETER(NAMES)
    }
    u32 bytes = layout->code_bytes;
    if (bytes > CODE_BYTES)
        bytes = CODE_BYTES;
    tell->code_bytes = script_read(at, tell->code, bytes) ? 0 : bytes;
    tell->name_bytes = READ_MOST(tell->name_at, tell->name, NAME_BYTES);
    tell->file_bytes = READ_MOST(tell->file_at, tell->file, FILE_BYTES);
    tell->lines_bytes = READ_MOST(tell->lines_at, tell->lines, LINES_BYTES);
    bpf_ringbuf_submit(tell, BPF_RB_NO_WAKEUP);
    return 1;
}

/* Returns the address of the interpreter's state of the current thread, or 0 if it does not know the thread. */
APART u64 script_thread(u64 root, struct ScriptLayout *layout)
{
    if (!layout)
        return 0;
    switch (layout->reader) {
#define THREAD(NAME, name)                                                                                             \
    case NAME##_READER:                                                                                                \
        return name##_thread(root, layout);
        EACH_INTERPRETER(THREAD)
    }
    return 0;
}

/* Appends the frames of the current thread's interpreted program to the draft, after as many user and kernel frames as the sample says,
 * and marks the native frames that ran them. `life` differs between programs and processes. Returns the hash of the stack with these
 * frames. */
APART u64 script_read_frames(struct draft *draft, u64 root, u32 number, u64 life, u64 hash)
{
    struct ScriptLayout *layout = bpf_map_lookup_elem(&layouts, &number);
    if (!draft || !layout)
        return hash;
    struct script_reading reading = { .draft = draft, .layout = layout };
    draft->script = (struct script_state){
        .user = draft->sample.user,
        .base = draft->sample.user + draft->sample.kernel,
        .hash = hash,
        .life = life,
    };
    u64 thread = script_thread(root, layout);
    if (!thread)
        return hash;
    switch (layout->reader) {
#define FRAMES(NAME, name)                                                                                             \
    case NAME##_READER:                                                                                                \
        name##_frames(&reading, thread);                                                                               \
        break;
        EACH_INTERPRETER(FRAMES)
    }
    draft->sample.script = draft->script.words / 2;
    return draft->script.hash;
}

#endif

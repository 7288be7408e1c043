/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Reads the frames of a Python, PHP, Ruby or Perl program. Python's are read as CPython 3.9 to 3.15 keep them
 * (Include/internal/pycore_frame.h, Include/cpython/pystate.h). The recorder supplies the offsets of members of its structures (struct
 * ScriptLayout). The frames of the others are read in a similar way: php.h, ruby.h and perl.h describe the differences.
 *
 * Up to 3.10 each frame has a call of the evaluation loop to itself. 3.11 has a chain of structures of the type _PyCFrame, one in each
 * native frame of the loop, whose position on the stack identifies the call of the loop. Each structure points at the frame that runs
 * in its call, and frames point at their callers, which run in the same call up to the one that entered it. Since 3.12 the outermost
 * frame of a call is itself in the native frame of the loop, and runs no code. Names in this code: a round is a call of the evaluation
 * loop.
 *
 * Memory is read while the thread is interrupted, possibly between two steps of changing these lists: unreadable memory ends a list.
 * In 3.11 each round must begin where the one further in says that it was called from.
 *
 * Frames are sent whether or not the native frame that runs them is found: it may be beyond the end of the walk.
 *
 * For code that was not seen before, the memory that names it is sent, because the process may soon be gone. */
#ifndef PLUMB_PYTHON_H
#define PLUMB_PYTHON_H

enum {
    PY_OWNED_BY_GENERATOR = 1,
    /* This owner and higher values: the frame runs no code. */
    PY_OWNED_BY_LOOP = 3,
};

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
#define PY_MAX_THREADS 1024

/* The location of a thread's state, cached because searching a list of many threads takes long. */
struct py_known {
    u64 runtime;
    u64 thread;
    u64 second;
};

/* By thread. */
struct {
    UINT(type, BPF_MAP_TYPE_LRU_HASH);
    UINT(max_entries, 4096);
    TYPE(key, u32);
    TYPE(value, struct py_known);
} py_threads SEC(".maps");

/* The members of a round's structure in 3.11: its frame, and the next round further out. */
struct py_round {
    u64 frame;
    u64 previous;
};

#include "pyread.h"
#include "perl.h"
#include "php.h"
#include "ruby.h"

struct py_search {
    struct ScriptLayout *layout;
    u64 interpreter;
    u64 thread;
    /* The value of pthread_self() in the wanted thread. */
    u64 id;
};

static long py_search_step(u32 index, struct py_search *search)
{
    struct ScriptLayout *layout = search->layout;
    if (search->thread) {
        if (py_word(search->thread + layout->thread_id) == search->id)
            return 1;
        search->thread = py_word(search->thread + layout->thread_next);
        return 0;
    }
    u64 interpreter = search->interpreter;
    if (!interpreter)
        return 1;
    search->thread = py_word(interpreter + layout->threads);
    search->interpreter = py_word(interpreter + layout->interpreter_next);
    return 0;
}

/* Returns the address of Python's state of the current thread, or 0 if Python does not know the thread. */
APART u64 py_thread(u64 runtime, struct ScriptLayout *layout)
{
    struct task_struct *task = bpf_get_current_task_btf();
    if (!layout)
        return 0;
    if (layout->chain == CHAIN_PHP)
        return NUMBER(task->pid) == NUMBER(task->tgid) ? runtime : 0;
    if (layout->chain == CHAIN_PERL)
        return NUMBER(task->pid) == NUMBER(task->tgid) ? py_word(runtime) : 0;
    u64 id = THREAD_POINTER(task), second = bpf_ktime_get_ns() >> 30;
    u32 tid = NUMBER(task->pid);
    if (!id)
        return 0;
    if (layout->chain == CHAIN_RUBY)
        return ruby_context(runtime, layout, id);
    /* The thread that holds the global lock: the current one, if it runs Python code. */
    u64 current = layout->current ? py_word(runtime + layout->current) : 0;
    if (current && py_word(current + layout->thread_id) == id)
        return current;
    struct py_known *known = bpf_map_lookup_elem(&py_threads, &tid);
    if (known && known->runtime == runtime && known->second == second && py_word(known->thread + layout->thread_id) == id)
        return known->thread;
    struct py_search search = { .thread = unknown_zero, .layout = layout, .id = id, .interpreter = py_word(runtime + layout->interpreters) };
    bpf_loop(PY_MAX_THREADS, py_search_step, &search, 0);
    if (!search.thread || py_word(search.thread + layout->thread_id) != id)
        return 0;
    struct py_known found = { .runtime = runtime, .thread = search.thread, .second = second };
    bpf_map_update_elem(&py_threads, &tid, &found, BPF_ANY);
    return search.thread;
}

struct py_reading {
    struct draft *draft;
    struct ScriptLayout *layout;
};

/* Returns the identity of code as a number, like `identity` in crates/interpreters. */
APART u32 py_identity(struct py_code *code, struct ScriptLayout *layout)
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

/* Sends the memory that names a code object, unless that was done. `is_text`: the code is identified only by the name of its file,
 * which is at `at`. Not inlined, so that the verifier checks it once, not on each path to it. */
APART int py_tell(struct ScriptLayout *layout, u64 at, u32 identity, u64 life, u32 is_text)
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
    tell->name_at = py_word(at + layout->code_name);
    tell->file_at = py_word(at + layout->code_file);
    u64 lines_from = at + layout->code_lines;
    if (layout->chain == CHAIN_PHP)
        lines_from = php_class_name(py_word(lines_from));
    if (layout->chain == CHAIN_RUBY)
        lines_from = ruby_path(py_word(lines_from));
    if (layout->chain != CHAIN_PERL) {
        tell->lines_at = lines_from ? py_follow(tell, lines_from) : 0;
    } else if (is_text) {
        tell->file_at = at;
        tell->name_at = tell->lines_at = 0;
    } else {
        perl_names(tell, layout, at);
    }
    u32 bytes = layout->code_bytes;
    if (bytes > CODE_BYTES)
        bytes = CODE_BYTES;
    tell->code_bytes = py_read(at, tell->code, bytes) ? 0 : bytes;
    tell->name_bytes = PY_READ_MOST(tell->name_at, tell->name, NAME_BYTES);
    tell->file_bytes = PY_READ_MOST(tell->file_at, tell->file, FILE_BYTES);
    tell->lines_bytes = PY_READ_MOST(tell->lines_at, tell->lines, LINES_BYTES);
    bpf_ringbuf_submit(tell, BPF_RB_NO_WAKEUP);
    return 1;
}

INLINE void py_put(struct py_reading *reading, u64 word)
{
    u32 at = reading->draft->py.base + reading->draft->py.words;
    if (at >= MAX_WORDS)
        return;
    reading->draft->frames[at] = word;
    reading->draft->py.words++;
    reading->draft->py.hash = (reading->draft->py.hash ^ word) * 0x9e3779b97f4a7c15ull;
    reading->draft->py.hash ^= reading->draft->py.hash >> 29;
}

/* Appends the words that mark a round's position on the stack. */
INLINE void py_put_round(struct py_reading *reading, u64 at, u64 is_end)
{
    py_put(reading, at | SCRIPT_ROUND);
    py_put(reading, is_end);
}

/* Goes on to the next native frame, or marks this one as an evaluation loop. */
INLINE long py_find_round(struct py_reading *reading)
{
    struct draft *draft = reading->draft;
    u32 native = reading->draft->py.native & (MAX_FRAMES - 1);
    if (native + 1 >= reading->draft->py.user) {
        /* Native frames further out will not be found either. */
        reading->draft->py.native = reading->draft->py.user;
        reading->draft->py.sought = 0;
        return 0;
    }
    reading->draft->py.native = native + 1;
    if (draft->places[(native + 1) & (MAX_FRAMES - 1)] > reading->draft->py.sought) {
        if (draft->places[native] > reading->draft->py.sought) {
            /* The address is not on this stack, or in frames already passed. */
            reading->draft->py.native = reading->draft->py.user;
        } else {
            draft->frames[native] |= FRAME_LOOP;
            reading->draft->py.hash ^= native;
        }
        reading->draft->py.sought = 0;
    }
    return 0;
}

/* Starts the search for the native frame that contains an address. */
INLINE void py_seek(struct py_reading *reading, u64 at, u64 is_end)
{
    if (reading->draft->py.user)
        reading->draft->py.sought = at;
    else
        py_put_round(reading, at, is_end);
    reading->draft->py.in_round = 0;
}

/* Begins reading the round of 3.11 whose structure is at an address. Returns the address of its frame. */
INLINE u64 py_enter_round(struct py_reading *reading, u64 at)
{
    struct ScriptLayout *layout = reading->layout;
    u64 frame = at ? py_word(at + layout->cframe_frame) : 0;
    if (!frame)
        return 0;
    reading->draft->py.cframe = py_word(at + layout->cframe_previous);
    py_seek(reading, at, 0);
    return frame;
}

#define PY_FIELD(frame, offset) (*(u64 *)((frame)->bytes + ((offset) & 127)))
#define PY_BYTE(frame, offset) ((frame)->bytes[(offset) & 127])

/* Handles a frame of 3.12 or later that runs no code. It ends a round, in whose native frame it is. */
INLINE void py_end_round(struct py_reading *reading)
{
    u32 at = reading->draft->py.base + reading->draft->py.words - 2;
    if (!reading->draft->py.in_round || at >= MAX_WORDS)
        return;
    reading->draft->frames[at] |= SCRIPT_ENTRY;
    py_seek(reading, reading->draft->py.frame, 1);
}

/* The position of a script frame: its code, its instruction, and flags for the first of its words. */
struct py_place {
    u64 code;
    u64 instruction;
    u64 flags;
};

/* Finds the position of a Python frame. */
INLINE int py_place(struct py_reading *reading, struct py_place *place)
{
    struct ScriptLayout *layout = reading->layout;
    struct py_frame *frame = &reading->draft->py_frame;
    u32 chain = layout->chain;
    u64 instruction = PY_FIELD(frame, layout->frame_instruction);
    /* References have tags in their lowest bits since 3.14. */
    place->code = PY_FIELD(frame, layout->frame_code) & ~7ull;
    place->instruction = chain == CHAIN_SINGLE ? instruction : instruction - place->code;
    if (chain == CHAIN_SINGLE || (chain == CHAIN_CFRAMES && PY_BYTE(frame, layout->frame_entry)))
        place->flags = SCRIPT_ENTRY;
    if (chain != CHAIN_SINGLE && PY_BYTE(frame, layout->frame_owner) == PY_OWNED_BY_GENERATOR)
        place->flags |= SCRIPT_GENERATOR;
    return 1;
}

/* Finds the position of a PHP frame. Returns 0 if the function is written in C. */
INLINE int php_place(struct py_reading *reading, struct py_place *place)
{
    struct ScriptLayout *layout = reading->layout;
    struct py_frame *frame = &reading->draft->py_frame;
    u32 is_innermost = !reading->draft->py.in_round;
    reading->draft->py.in_round = 1;
    place->code = PY_FIELD(frame, layout->frame_code);
    if (!php_is_script(place->code))
        return 0;
    if (!is_innermost)
        place->instruction = php_line(PY_FIELD(frame, layout->frame_instruction));
    if (PY_BYTE(frame, layout->frame_entry) & layout->frame_entry_bits)
        place->flags = SCRIPT_ENTRY;
    return 1;
}

/* Finds the position of a Ruby frame, without the instruction. Returns 0 if the function is written in C. */
INLINE int ruby_place(struct py_reading *reading, struct py_place *place)
{
    struct ScriptLayout *layout = reading->layout;
    struct py_frame *frame = &reading->draft->py_frame;
    u64 code = PY_FIELD(frame, layout->frame_code);
    if (!code || !PY_FIELD(frame, layout->frame_instruction))
        return 0;
    place->code = py_word(code + RUBY_BODY);
    if (py_word(PY_FIELD(frame, layout->frame_entry)) & RUBY_LAST)
        place->flags = SCRIPT_ENTRY;
    return 1;
}

/* Returns the address of the current frame's caller, or 0 if it has none. */
INLINE u64 py_caller(struct py_reading *reading, u32 size)
{
    struct ScriptLayout *layout = reading->layout;
    struct py_frame *frame = &reading->draft->py_frame;
    if (layout->chain != CHAIN_RUBY)
        return PY_FIELD(frame, layout->frame_caller);
    u64 caller = reading->draft->py.frame + size;
    return caller < reading->draft->py.cframe ? caller : 0;
}

static long py_step(u32 index, struct py_reading *reading)
{
    if (reading->draft->py.sought)
        return py_find_round(reading);
    if (!reading->draft->py.frame)
        return 1;
    if (reading->draft->py.words >= 2 * MAX_SCRIPT_FRAMES) {
        reading->draft->sample.flags |= SAMPLE_SCRIPT_CUT;
        return 1;
    }
    struct ScriptLayout *layout = reading->layout;
    struct py_code *code = &reading->draft->py_code;
    struct py_frame *frame = &reading->draft->py_frame;
    u32 size = layout->frame_bytes, chain = layout->chain;
    if (size > SCRIPT_FRAME_BYTES)
        return 1;
    if (py_read(reading->draft->py.frame, frame, size))
        return 1;
    u64 caller = py_caller(reading, size);
    if (chain == CHAIN_ENTRY_FRAMES && PY_BYTE(frame, layout->frame_owner) >= PY_OWNED_BY_LOOP) {
        py_end_round(reading);
        reading->draft->py.frame = caller;
        return 0;
    }
    struct py_place place = {};
    int is_script = chain == CHAIN_PHP    ? php_place(reading, &place)
                    : chain == CHAIN_RUBY ? ruby_place(reading, &place)
                                          : py_place(reading, &place);
    if (!is_script) {
        reading->draft->py.frame = caller;
        return 0;
    }
    if (py_read(place.code + layout->code_identity, code, sizeof(*code)))
        return 1;
    u32 identity = py_identity(code, layout);
    py_tell(layout, place.code, identity, reading->draft->py.life, 0);
    py_put(reading, place.code | place.flags);
    py_put(reading, (u64)identity << 32 | (u32)place.instruction);
    reading->draft->py.in_round++;
    reading->draft->py.frame = caller;
    if (place.flags & SCRIPT_ENTRY && caller && chain == CHAIN_CFRAMES)
        return py_enter_round(reading, reading->draft->py.cframe) != caller;
    return 0;
}

#include "perlframes.h"

/* Returns the address of the innermost frame of a thread. */
INLINE u64 py_first(struct py_reading *reading, u64 thread)
{
    struct ScriptLayout *layout = reading->layout;
    u64 at = py_word(thread + layout->thread_frame);
    if (layout->chain == CHAIN_CFRAMES)
        return py_enter_round(reading, at);
    if (layout->chain == CHAIN_RUBY) {
        reading->draft->py.cframe = ruby_end(layout, thread);
        return at < reading->draft->py.cframe ? at : 0;
    }
    if (layout->cframe_frame == NO_MEMBER || !at)
        return at;
    return py_word(at + layout->cframe_frame);
}

/* Appends the frames of the current thread's interpreted program to the draft, after as many user and kernel frames as the sample says,
 * and marks the native frames that ran them. `life` differs between programs and processes. Returns the hash of the stack with these
 * frames. */
APART u64 py_frames(struct draft *draft, u64 runtime, u32 number, u64 life, u64 hash)
{
    struct ScriptLayout *layout = bpf_map_lookup_elem(&layouts, &number);
    if (!draft || !layout)
        return hash;
    struct py_reading reading = { .draft = draft, .layout = layout };
    draft->py = (struct py_state){
        .user = draft->sample.user,
        .base = draft->sample.user + draft->sample.kernel,
        .hash = hash,
        .life = life,
    };
    u64 thread = py_thread(runtime, layout);
    if (!thread)
        return hash;
    if (layout->chain == CHAIN_PERL) {
        perl_frames(&reading, thread);
    } else {
        draft->py.frame = py_first(&reading, thread);
        bpf_loop(MAX_FRAMES + 2 * MAX_SCRIPT_FRAMES, py_step, &reading, 0);
    }
    draft->sample.script = draft->py.words / 2;
    return draft->py.hash;
}

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Reading Python's frames as CPython 3.9 to 3.15 keep them (Include/internal/pycore_frame.h, Include/cpython/pystate.h).
 *
 * Up to 3.10 each frame has a call of the evaluation loop to itself. 3.11 has a chain of structures of the type _PyCFrame, one in each
 * native frame of the loop, whose position on the stack identifies the call of the loop. Each structure points at the frame that runs
 * in its call, and frames point at their callers, which run in the same call up to the one that entered it. Since 3.12 the outermost
 * frame of a call is itself in the native frame of the loop, and runs no code.
 *
 * In 3.11 each round must begin where the one further in says that it was called from. */
#ifndef PLUMB_PYTHON_H
#define PLUMB_PYTHON_H

/* An offset of Python's layout. */
#define PYTHON(layout, NAME) ((layout)->words[PYTHON_WORD_##NAME])

/* The location of a thread's state, cached because searching a list of many threads takes long. */
struct python_known {
    u64 runtime;
    u64 thread;
    u64 second;
};

/* By thread. */
struct {
    UINT(type, BPF_MAP_TYPE_LRU_HASH);
    UINT(max_entries, 4096);
    TYPE(key, u32);
    TYPE(value, struct python_known);
} python_threads SEC(".maps");

struct python_own {
    /* 3.11: the next evaluation loop further out. */
    u64 cframe;
};

struct python_search {
    struct ScriptLayout *layout;
    u64 interpreter;
    u64 thread;
    /* The pointer of the wanted thread. */
    u64 pointer;
};

static long python_search_step(u32 index, struct python_search *search)
{
    struct ScriptLayout *layout = search->layout;
    if (search->thread) {
        if (script_is_own(search->pointer, script_word(search->thread + PYTHON(layout, THREAD_ID))))
            return 1;
        search->thread = script_word(search->thread + PYTHON(layout, THREAD_NEXT));
        return 0;
    }
    u64 interpreter = search->interpreter;
    if (!interpreter)
        return 1;
    search->thread = script_word(interpreter + PYTHON(layout, THREADS));
    search->interpreter = script_word(interpreter + PYTHON(layout, INTERPRETER_NEXT));
    return 0;
}

/* Returns the address of Python's state of the current thread. `runtime`: the address of _PyRuntime. */
INLINE u64 python_thread(u64 runtime, struct ScriptLayout *layout)
{
    struct task_struct *task = bpf_get_current_task_btf();
    u64 pointer, second = bpf_ktime_get_ns() >> 30;
    u32 tid = NUMBER(task->pid);
    if (!script_thread_pointer(&pointer))
        return 0;
    /* The thread that holds the global lock: the current one, if it runs Python code. */
    u64 current = PYTHON(layout, CURRENT) ? script_word(runtime + PYTHON(layout, CURRENT)) : 0;
    if (current && script_is_own(pointer, script_word(current + PYTHON(layout, THREAD_ID))))
        return current;
    struct python_known *known = bpf_map_lookup_elem(&python_threads, &tid);
    if (known && known->runtime == runtime && known->second == second &&
        script_is_own(pointer, script_word(known->thread + PYTHON(layout, THREAD_ID))))
        return known->thread;
    struct python_search search = { .thread = unknown_zero, .layout = layout, .pointer = pointer };
    search.interpreter = script_word(runtime + PYTHON(layout, INTERPRETERS));
    bpf_loop(MAX_SCRIPT_THREADS, python_search_step, &search, 0);
    if (!search.thread || !script_is_own(pointer, script_word(search.thread + PYTHON(layout, THREAD_ID))))
        return 0;
    struct python_known found = { .runtime = runtime, .thread = search.thread, .second = second };
    bpf_map_update_elem(&python_threads, &tid, &found, BPF_ANY);
    return search.thread;
}

/* Begins reading the round of 3.11 whose structure is at an address. Returns the address of its frame. */
INLINE u64 python_enter_round(struct script_reading *reading, u64 at)
{
    struct ScriptLayout *layout = reading->layout;
    u64 frame = at ? script_word(at + PYTHON(layout, CFRAME_FRAME)) : 0;
    if (!frame)
        return 0;
    OWN(reading, struct python_own)->cframe = script_word(at + PYTHON(layout, CFRAME_PREVIOUS));
    script_seek(reading, at, 0);
    return frame;
}

/* Handles a frame of 3.12 or later that runs no code. It ends a round, in whose native frame it is. */
INLINE void python_end_round(struct script_reading *reading)
{
    u32 at = reading->draft->script.base + reading->draft->script.words - 2;
    if (!reading->draft->script.in_round || at >= MAX_WORDS)
        return;
    reading->draft->frames[at] |= SCRIPT_ENTRY;
    script_seek(reading, reading->draft->script.frame, 1);
}

static long python_step(u32 index, struct script_reading *reading)
{
    if (reading->draft->script.sought)
        return script_find_round(reading);
    if (!reading->draft->script.frame || script_is_full(reading, 1))
        return 1;
    struct ScriptLayout *layout = reading->layout;
    struct script_frame *frame = &reading->draft->script_frame;
    u32 chain = PYTHON(layout, CHAIN);
    if (!script_read_frame(reading, reading->draft->script.frame, PYTHON(layout, FRAME_BYTES)))
        return 1;
    u64 caller = FIELD(frame, PYTHON(layout, FRAME_CALLER));
    if (chain == PYTHON_CHAIN_ENTRY_FRAMES && BYTE(frame, PYTHON(layout, FRAME_OWNER)) >= PYTHON_OWNED_BY_LOOP) {
        python_end_round(reading);
        reading->draft->script.frame = caller;
        return 0;
    }
    /* References have tags in their lowest bits since 3.14. */
    u64 code = FIELD(frame, PYTHON(layout, FRAME_CODE)) & ~7ull, flags = 0;
    u64 instruction = FIELD(frame, PYTHON(layout, FRAME_INSTRUCTION));
    if (chain != PYTHON_CHAIN_SINGLE)
        instruction -= code;
    if (chain == PYTHON_CHAIN_SINGLE || (chain == PYTHON_CHAIN_CFRAMES && BYTE(frame, PYTHON(layout, FRAME_ENTRY))))
        flags = SCRIPT_ENTRY;
    if (chain != PYTHON_CHAIN_SINGLE && BYTE(frame, PYTHON(layout, FRAME_OWNER)) == PYTHON_OWNED_BY_GENERATOR)
        flags |= SCRIPT_GENERATOR;
    reading->draft->script.frame = caller;
    script_append(reading->draft, layout, code, flags, instruction);
    if (flags & SCRIPT_ENTRY && reading->draft->script.frame && chain == PYTHON_CHAIN_CFRAMES)
        return python_enter_round(reading, OWN(reading, struct python_own)->cframe) != caller;
    return 0;
}

/* Returns the address of the innermost frame of a thread. */
INLINE u64 python_first(struct script_reading *reading, u64 thread)
{
    struct ScriptLayout *layout = reading->layout;
    u64 at = script_word(thread + PYTHON(layout, THREAD_FRAME));
    if (PYTHON(layout, CHAIN) == PYTHON_CHAIN_CFRAMES)
        return python_enter_round(reading, at);
    if (PYTHON(layout, CFRAME_FRAME) == PYTHON_NO_MEMBER || !at)
        return at;
    return script_word(at + PYTHON(layout, CFRAME_FRAME));
}

INLINE void python_frames(struct script_reading *reading, u64 thread)
{
    reading->draft->script.frame = python_first(reading, thread);
    bpf_loop(MAX_SCRIPT_STEPS, python_step, reading, 0);
}

INLINE void python_names(struct Code *tell, struct ScriptLayout *layout, u64 at, u32 is_text)
{
    tell->name_at = script_word(at + PYTHON(layout, CODE_NAME));
    tell->file_at = script_word(at + PYTHON(layout, CODE_FILE));
    tell->lines_at = script_follow(tell, at + PYTHON(layout, CODE_LINES));
}

#endif

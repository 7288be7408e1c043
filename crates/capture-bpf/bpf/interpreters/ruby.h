/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Reading Ruby's frames (vm_core.h, ractor_core.h, thread_pthread.h). The main ractor has a circular list of threads, which begins and
 * ends with the list itself. A thread has an execution context, and that has the frames, one after the other up to the end of its
 * stack. Frames of functions that are written in C have no instruction; these have native frames of their own. A frame with which
 * native code began an evaluation loop has a flag. */
#ifndef PLUMB_RUBY_H
#define PLUMB_RUBY_H

/* An offset of Ruby's layout. */
#define RUBY(layout, NAME) ((layout)->words[RUBY_WORD_##NAME])

struct ruby_own {
    /* The end of the frames. */
    u64 end;
};

/* Returns the address of a thread's descriptor. */
INLINE u64 ruby_thread_id(struct ScriptLayout *layout, u64 thread)
{
    u64 native = RUBY(layout, THREAD_NATIVE) ? script_word(thread + RUBY(layout, THREAD_NATIVE)) : thread;
    return native ? script_word(native + RUBY(layout, THREAD_ID)) : 0;
}

struct ruby_search {
    struct ScriptLayout *layout;
    u64 list;
    u64 thread;
    u64 pointer;
};

static long ruby_search_step(u32 index, struct ruby_search *search)
{
    if (!search->thread || search->thread == search->list) {
        search->thread = 0;
        return 1;
    }
    if (script_is_own(search->pointer, ruby_thread_id(search->layout, search->thread)))
        return 1;
    search->thread = script_word(search->thread);
    return 0;
}

/* Returns the execution context of the current thread. `at`: address of the pointer to the main ractor. */
INLINE u64 ruby_thread(u64 at, struct ScriptLayout *layout)
{
    u64 pointer, ractor = script_word(at);
    if (!script_thread_pointer(&pointer) || !ractor)
        return 0;
    u64 running = script_word(ractor + RUBY(layout, RUNNING));
    if (running && script_is_own(pointer, ruby_thread_id(layout, script_word(running + RUBY(layout, CONTEXT_THREAD)))))
        return running;
    struct ruby_search search = { .thread = unknown_zero, .layout = layout, .pointer = pointer, .list = ractor + RUBY(layout, THREADS) };
    search.thread = script_word(search.list);
    bpf_loop(MAX_SCRIPT_THREADS, ruby_search_step, &search, 0);
    return search.thread ? script_word(search.thread + RUBY(layout, THREAD_CONTEXT)) : 0;
}

static long ruby_step(u32 index, struct script_reading *reading)
{
    u64 at = reading->draft->script.frame;
    if (!at || at >= OWN(reading, struct ruby_own)->end || script_is_full(reading, 1))
        return 1;
    struct script_frame *frame = &reading->draft->script_frame;
    u32 size = RUBY(reading->layout, FRAME_BYTES);
    if (!script_read_frame(reading, at, size))
        return 1;
    reading->draft->script.frame = at + size;
    u64 code = FIELD(frame, RUBY_FRAME_CODE);
    if (!code || !FIELD(frame, RUBY_FRAME_INSTRUCTION))
        return 0;
    u64 flags = script_word(FIELD(frame, RUBY_FRAME_ENVIRONMENT)) & RUBY_FRAME_IS_LAST ? SCRIPT_ENTRY : 0;
    u64 body = script_word(code + RUBY_CODE_BODY);
    /* The instruction is the one after that which runs. */
    u64 position = (FIELD(frame, RUBY_FRAME_INSTRUCTION) - script_word(body + RUBY_BODY_INSTRUCTIONS)) / 8 - 1;
    script_append(reading->draft, reading->layout, body, flags, position < RUBY_NO_POSITION ? position : RUBY_NO_POSITION);
    return 0;
}

INLINE void ruby_frames(struct script_reading *reading, u64 context)
{
    u64 stack = script_word(context + RUBY_CONTEXT_STACK), words = script_word(context + RUBY_CONTEXT_STACK + 8);
    /* The outermost frame never runs. */
    OWN(reading, struct ruby_own)->end = stack + 8 * words - RUBY(reading->layout, FRAME_BYTES);
    reading->draft->script.frame = script_word(context + RUBY_CONTEXT_FRAME);
    bpf_loop(MAX_SCRIPT_STEPS, ruby_step, reading, 0);
}

/* The file is a string, or an array of two: its path and where that leads. */
INLINE void ruby_names(struct Code *tell, struct ScriptLayout *layout, u64 at, u32 is_text)
{
    u64 file = script_word(at + RUBY_BODY_FILE), flags = file ? script_word(file) : 0;
    tell->name_at = script_word(at + RUBY_BODY_NAME);
    tell->file_at = file;
    if ((flags & RUBY_TYPE) == RUBY_ARRAY && flags & RUBY_EMBEDDED)
        tell->lines_at = script_follow(tell, file + RUBY_MEMBERS);
}

#endif

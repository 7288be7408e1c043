/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Reading Ruby's frames (vm_core.h, ractor_core.h, thread_pthread.h). The main ractor has a circular list of threads, which begins and
 * ends with the list itself. A thread has an execution context, and that has the frames, one after the other up to the end of its
 * stack. Frames of functions that are written in C have no instruction; these have native frames of their own. A frame with which
 * native code began an evaluation loop has a flag. */
#ifndef PLUMB_RUBY_H
#define PLUMB_RUBY_H

enum {
    /* VM_FRAME_FLAG_FINISH */
    RUBY_LAST = 0x20,
    /* rb_iseq_t.body */
    RUBY_BODY = 16,
    /* RUBY_T_MASK, RUBY_T_ARRAY and RARRAY_EMBED_FLAG of an object's flags, and the offset of the elements of such an array. */
    RUBY_TYPE = 0x1f,
    RUBY_ARRAY = 7,
    RUBY_EMBEDDED = 1 << 13,
    RUBY_ELEMENTS = 16,
};

/* Returns the thread pointer of a thread. */
INLINE u64 ruby_thread_id(struct ScriptLayout *layout, u64 thread)
{
    u64 native = layout->thread_native ? py_word(thread + layout->thread_native) : thread;
    return native ? py_word(native + layout->thread_id) : 0;
}

struct ruby_search {
    struct ScriptLayout *layout;
    u64 list;
    u64 thread;
    u64 id;
};

static long ruby_search_step(u32 index, struct ruby_search *search)
{
    if (!search->thread || search->thread == search->list) {
        search->thread = 0;
        return 1;
    }
    if (ruby_thread_id(search->layout, search->thread) == search->id)
        return 1;
    search->thread = py_word(search->thread);
    return 0;
}

/* Returns the execution context of the current thread, or 0 if Ruby does not know the thread. `at`: address of the pointer to the main
 * ractor. */
INLINE u64 ruby_context(u64 at, struct ScriptLayout *layout, u64 id)
{
    u64 ractor = py_word(at);
    if (!ractor)
        return 0;
    u64 running = py_word(ractor + layout->current);
    if (running && ruby_thread_id(layout, py_word(running + layout->cframe_previous)) == id)
        return running;
    struct ruby_search search = { .thread = unknown_zero, .layout = layout, .id = id, .list = ractor + layout->interpreters };
    search.thread = py_word(search.list);
    bpf_loop(PY_MAX_THREADS, ruby_search_step, &search, 0);
    return search.thread ? py_word(search.thread + layout->threads) : 0;
}

/* Returns the end of the frames of an execution context, without the outermost one, which never runs. */
INLINE u64 ruby_end(struct ScriptLayout *layout, u64 context)
{
    return py_word(context) + 8 * py_word(context + 8) - layout->frame_bytes;
}

/* Returns the address of the pointer to the string with a file's path, if the file is an array of two: its path and where that leads. */
INLINE u64 ruby_path(u64 at)
{
    u64 flags = at ? py_word(at) : 0;
    return (flags & RUBY_TYPE) == RUBY_ARRAY && flags & RUBY_EMBEDDED ? at + RUBY_ELEMENTS : 0;
}

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* The frames of a Python program, as CPython 3.11 keeps them (Include/internal/pycore_frame.h, Include/cpython/pystate.h).
 *
 * A thread has a chain of structures of the type _PyCFrame, one in each native frame of the interpreter's loop, so that a round
 * of the loop is told by where it is on the stack. Each points at the frame that runs in its round; frames point at their callers,
 * which run in the same round up to the one that entered it.
 *
 * Read while the thread is interrupted, which may be between two steps of changing these lists: each round must begin where
 * the one further in says that it was called from. What follows where that fails is left out.
 *
 * Of code that was not seen before the memory is sent that says what it is called: the process may soon have gone. */
#ifndef PLUMB_PYTHON_H
#define PLUMB_PYTHON_H

/* Offsets: src/python_tests.rs holds them against what a C compiler makes of Python's own headers. */
enum {
    PY_RUNTIME_CURRENT = 576,
    PY_RUNTIME_INTERPRETERS = 40,
    PY_INTERPRETER_NEXT = 0,
    PY_INTERPRETER_THREADS = 16,
    PY_THREAD_NEXT = 8,
    PY_THREAD_CFRAME = 56,
    PY_THREAD_ID = 152,
    PY_CFRAME_FRAME = 8,
    PY_CFRAME_PREVIOUS = 16,
    PY_FRAME_CODE = 32,
    PY_FRAME_PREVIOUS = 48,
    PY_FRAME_INSTRUCTION = 56,
    PY_FRAME_ENTRY = 68,
    PY_FRAME_OWNER = 69,
    PY_OWNED_BY_GENERATOR = 1,
    PY_CODE_IDENTITY = 16,
    PY_CODE_FILE = 112,
    PY_CODE_NAME = 128,
    PY_CODE_LINES = 136,
};

/* Hashes of code that was told of. Other code may take its place, and be told of again. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, TOLD);
    TYPE(key, u32);
    TYPE(value, u64);
} told SEC(".maps");

/* Interpreters and threads that are looked at to find a thread. */
#define PY_MAX_THREADS 1024

/* What of a round is read: from PY_CFRAME_FRAME on. */
struct py_round {
    u64 frame;
    u64 previous;
};

INLINE int py_read(u64 at, void *to, u32 size)
{
    return bpf_probe_read_user(to, size, (const void *)at) != 0;
}

struct py_search {
    u64 interpreter;
    u64 thread;
    /* What pthread_self() says in the thread that is looked for. */
    u64 id;
};

INLINE u64 py_thread_id(u64 thread)
{
    u64 id = 0;
    return py_read(thread + PY_THREAD_ID, &id, 8) ? 0 : id;
}

static long py_search_step(u32 index, struct py_search *search)
{
    if (search->thread) {
        if (py_thread_id(search->thread) == search->id)
            return 1;
        if (py_read(search->thread + PY_THREAD_NEXT, &search->thread, 8))
            search->thread = 0;
        return 0;
    }
    u64 interpreter = search->interpreter;
    if (!interpreter || py_read(interpreter + PY_INTERPRETER_THREADS, &search->thread, 8))
        return 1;
    if (py_read(interpreter + PY_INTERPRETER_NEXT, &search->interpreter, 8))
        search->interpreter = 0;
    return 0;
}

/* Where Python keeps the state of the current thread; 0: it doesn't know it. */
INLINE u64 py_thread(u64 runtime, struct task_struct *task)
{
    u64 id = task->thread.fsbase, current = 0;
    if (!id)
        return 0;
    /* The one that holds the global lock: the current one, if it runs Python code. */
    if (!py_read(runtime + PY_RUNTIME_CURRENT, &current, 8) && current && py_thread_id(current) == id)
        return current;
    struct py_search search = { .id = id };
    if (py_read(runtime + PY_RUNTIME_INTERPRETERS, &search.interpreter, 8))
        return 0;
    bpf_loop(PY_MAX_THREADS, py_search_step, &search, 0);
    return search.thread && py_thread_id(search.thread) == id ? search.thread : 0;
}

struct py_reading {
    struct draft *draft;
    /* The round that comes next: where its structure is, and what that says. */
    u64 cframe;
    struct py_round round;
    /* The frame at hand; 0: its round has yet to be found among the native frames. */
    u64 frame;
    u64 hash;
    /* Native frames: how many there are, and the one that is looked at. */
    u32 user;
    u32 native;
    /* Words of script frames so far, and where they begin. */
    u32 words;
    u32 base;
    /* The program in the process, the process, the thread. */
    u64 life;
    u32 pid;
    u32 tid;
};

#define PY_WORD(offset) (((offset) - PY_CODE_IDENTITY) / 8)

/* As a number: as `identity` in crates/interpreters. */
INLINE u32 py_identity(struct py_code *code)
{
    u64 hash = 0;
    code->words[4] &= 0xffffffff;
    for (int i = 0; i < 16; i++) {
        hash = (hash ^ code->words[i]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return hash >> 32;
}

/* Reads from the beginning of something as much as is there, by halves. Returns how much. */
#define PY_READ_MOST(at, to, size)                                                                                     \
    (!py_read(at, to, size)         ? (size)                                                                           \
     : !py_read(at, to, (size) / 2) ? (size) / 2                                                                       \
     : !py_read(at, to, (size) / 4) ? (size) / 4                                                                       \
                                    : 0)

/* Tells what code is called, unless that was done. */
INLINE void py_tell(struct py_reading *reading, u64 at, struct py_code *code, u32 identity)
{
    u64 mark = ((at ^ reading->life) * 0x9e3779b97f4a7c15ull ^ identity) * 0x9e3779b97f4a7c15ull;
    u32 place = (mark >> 40) & (TOLD - 1);
    u64 *last = bpf_map_lookup_elem(&told, &place);
    if (!last || *last == mark)
        return;
    struct Code *tell = bpf_ringbuf_reserve(&ring, sizeof(*tell), 0);
    if (!tell)
        return;
    *last = mark;
    tell->head.kind = MESSAGE_CODE;
    tell->head.cpu = 0;
    tell->head.time_ns = bpf_ktime_get_ns();
    tell->head.pid = reading->pid;
    tell->head.tid = reading->tid;
    tell->at = at;
    tell->identity = identity;
    tell->zero = 0;
    tell->name_at = code->words[PY_WORD(PY_CODE_NAME)];
    tell->file_at = code->words[PY_WORD(PY_CODE_FILE)];
    tell->lines_at = code->words[PY_WORD(PY_CODE_LINES)];
    tell->code_bytes = py_read(at, tell->code, CODE_BYTES) ? 0 : CODE_BYTES;
    tell->name_bytes = PY_READ_MOST(tell->name_at, tell->name, NAME_BYTES);
    tell->file_bytes = PY_READ_MOST(tell->file_at, tell->file, FILE_BYTES);
    tell->lines_bytes = PY_READ_MOST(tell->lines_at, tell->lines, LINES_BYTES);
    bpf_ringbuf_submit(tell, BPF_RB_NO_WAKEUP);
}

INLINE void py_put(struct py_reading *reading, u64 word)
{
    u32 at = reading->base + reading->words;
    if (at >= MAX_WORDS)
        return;
    reading->draft->frames[at] = word;
    reading->words++;
    reading->hash = (reading->hash ^ word) * 0x9e3779b97f4a7c15ull;
    reading->hash ^= reading->hash >> 29;
}

/* Goes on to the next native frame, or marks it as a round of the loop and begins with its frames. */
INLINE long py_find_round(struct py_reading *reading)
{
    if (!reading->user) {
        /* None are known: who knows them needs to know where the round is. */
        py_put(reading, reading->cframe | SCRIPT_ROUND);
        py_put(reading, 0);
        reading->frame = reading->round.frame;
        return 0;
    }
    u32 native = reading->native & (MAX_FRAMES - 1);
    if (native + 1 >= reading->user)
        return 1;
    struct draft *draft = reading->draft;
    if (draft->places[(native + 1) & (MAX_FRAMES - 1)] > reading->cframe) {
        /* Somewhere else than on this stack, or in what was left already. */
        if (draft->places[native] > reading->cframe)
            return 1;
        draft->frames[native] |= FRAME_LOOP;
        reading->frame = reading->round.frame;
    }
    reading->native = native + 1;
    return 0;
}

static long py_step(u32 index, struct py_reading *reading)
{
    if (!reading->frame)
        return py_find_round(reading);
    if (reading->words >= 2 * MAX_SCRIPT_FRAMES) {
        reading->draft->sample.flags |= SAMPLE_SCRIPT_CUT;
        return 1;
    }
    struct py_frame *frame = &reading->draft->py_frame;
    struct py_code *code = &reading->draft->py_code;
    if (py_read(reading->frame + PY_FRAME_CODE, frame, sizeof(*frame)) ||
        py_read(frame->code + PY_CODE_IDENTITY, code, sizeof(*code)))
        return 1;
    u32 identity = py_identity(code);
    py_tell(reading, frame->code, code, identity);
    u64 flags = (frame->is_entry ? SCRIPT_ENTRY : 0) | (frame->owner == PY_OWNED_BY_GENERATOR ? SCRIPT_GENERATOR : 0);
    py_put(reading, frame->code | flags);
    py_put(reading, (u64)identity << 32 | (u32)(frame->instruction - frame->code));
    if (!frame->is_entry) {
        reading->frame = frame->previous;
        return !frame->previous;
    }
    reading->cframe = reading->round.previous;
    reading->frame = 0;
    /* The outermost has no caller. */
    return !frame->previous || py_read(reading->cframe + PY_CFRAME_FRAME, &reading->round, sizeof(reading->round)) ||
           reading->round.frame != frame->previous;
}

/* Puts the Python frames of the current thread into the draft, after the user and the kernel frames that are said to be there, and
 * marks the native frames that ran them. `life` is another number for each program in each process. Returns the hash of the
 * stack with them. */
APART u64 py_frames(struct draft *draft, u64 runtime, u64 life, u64 hash)
{
    struct task_struct *task = bpf_get_current_task_btf();
    if (!draft)
        return hash;
    struct py_reading reading = {
        .draft = draft,
        .user = draft->sample.user,
        .base = draft->sample.user + draft->sample.kernel,
        .hash = hash,
        .life = life,
        .pid = task->tgid,
        .tid = task->pid,
    };
    u64 thread = py_thread(runtime, task);
    if (!thread || py_read(thread + PY_THREAD_CFRAME, &reading.cframe, 8) ||
        py_read(reading.cframe + PY_CFRAME_FRAME, &reading.round, sizeof(reading.round)) || !reading.round.frame)
        return hash;
    bpf_loop(MAX_FRAMES + MAX_SCRIPT_FRAMES, py_step, &reading, 0);
    draft->sample.script = reading.words / 2;
    return reading.hash;
}

#endif

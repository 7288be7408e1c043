/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Reading V8's frames (src/execution/frame-constants.h), which are frames of the native stack: of interpreted and of compiled functions, and of
 * V8's own. A collector that runs leaves the new address of an object that it has moved where its map was. */
#ifndef PLUMB_V8_H
#define PLUMB_V8_H

/* An offset of V8's layout. */
#define V8(layout, NAME) ((layout)->words[V8_WORD_##NAME])

/* Returns whether a word leads to an object. */
INLINE int v8_is_object(u64 word)
{
    return (word & 3) == 1;
}

/* Each thread may run JavaScript. */
INLINE u64 v8_thread(u64 root, struct ScriptLayout *layout)
{
    return root;
}

/* Reads a word, or 0. Old kernels have no room for it on the stack. */
INLINE u64 v8_word(struct script_reading *reading, u64 at)
{
    u64 *word = reading->draft->script.own;
    return script_read(at, word, 8) ? 0 : *word;
}

/* Returns where an object is: elsewhere, if it was moved. */
INLINE u64 v8_moved(struct script_reading *reading, u64 object)
{
    u64 map = v8_word(reading, object - 1);
    return map && !(map & 1) ? map | 1 : object;
}

/* Returns the instance type of an object, or 0. */
INLINE u32 v8_kind(struct script_reading *reading, u64 object)
{
    u64 map = v8_word(reading, object - 1);
    return v8_is_object(map) ? (u16)(v8_word(reading, map - 1 + (V8_MAP_TYPE & ~7)) >> 8 * (V8_MAP_TYPE & 7)) : 0;
}

/* Looks at the next native frame, and appends its function. */
static long v8_step(u32 index, struct script_reading *reading)
{
    struct draft *draft = reading->draft;
    u32 native = draft->script.native & (MAX_FRAMES - 1);
    if (native + 1 >= draft->script.user || script_is_full(reading, 1))
        return 1;
    draft->script.native = native + 1;
    u32 caller = (native + 1) & (MAX_FRAMES - 1);
    /* The return address and the saved frame pointer are just below the caller's stack pointer. */
    u64 pointer = draft->places[caller] - 16;
    /* A function that has not set up its frame has none of these: the memory is left over from another one. */
    if (pointer - 16 < draft->places[native] || !script_read_frame(reading, pointer - V8_FRAME_BYTES, V8_FRAME_BYTES))
        return 0;
    struct script_frame *frame = &draft->script_frame;
    if (!v8_is_object(FIELD(frame, V8_FRAME_FUNCTION)) || !v8_is_object(FIELD(frame, V8_FRAME_CONTEXT)))
        return 0;
    /* A frame that was found by rules is not that of compiled code: it has bytecode. */
    if (!(draft->frames[caller] & (FRAME_ASSUMED | FRAME_SCANNED)) && v8_kind(reading, FIELD(frame, V8_FRAME_BYTECODE)) != V8(reading->layout, BYTECODE))
        return 0;
    u64 function = v8_moved(reading, FIELD(frame, V8_FRAME_FUNCTION));
    u32 kind = v8_kind(reading, function);
    if (kind < V8(reading->layout, FIRST_FUNCTION) || kind > V8(reading->layout, LAST_FUNCTION))
        return 0;
    u64 shared = v8_word(reading, function - 1 + V8(reading->layout, SHARED));
    if (!v8_is_object(shared))
        return 0;
    shared = v8_moved(reading, shared);
    /* Of two functions that had the same addresses one after the other, the scripts have different numbers. */
    u64 script = v8_moved(reading, v8_word(reading, shared - 1 + V8(reading->layout, SCRIPT)));
    draft->script.number = v8_word(reading, script - 1 + V8(reading->layout, SCRIPT_NUMBER)) >> 32 | V8_NUMBERED;
    draft->frames[native] |= FRAME_LOOP;
    draft->script.hash ^= native;
    /* A small integer is in the upper half of its word. */
    u64 offset = FIELD(frame, V8_FRAME_OFFSET);
    offset = (u32)offset || offset >> 63 ? V8_NO_OFFSET : offset >> 32;
    script_append(draft, reading->layout, shared - 1, SCRIPT_ENTRY, offset);
    return 0;
}

INLINE void v8_frames(struct script_reading *reading, u64 thread)
{
    reading->draft->script.native = 0;
    bpf_loop(MAX_SCRIPT_STEPS, v8_step, reading, 0);
}

/* The collector moves what names a function: the recorder reads it, and tells by the function's words whether it is still the same. */
INLINE void v8_names(struct Code *tell, struct ScriptLayout *layout, u64 at, u32 is_text)
{
}

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Reads the frames of a Perl program, innermost first (perl.h describes its structures). Part of python.h. */
#ifndef PLUMB_PERLFRAMES_H
#define PLUMB_PERLFRAMES_H

/* Appends a frame of Perl. `is_text`: its code is outside functions. A pending block gets a frame in the same code. */
INLINE void perl_put(struct py_reading *reading, u64 at, u32 is_text, u64 flags)
{
    struct py_code *code = &reading->draft->py_code;
    u32 identity = 0, line = perl_line(reading->draft->py.statement);
    if (!at || at & 7)
        return;
    if (is_text) {
        identity = perl_text_identity(code, at);
    } else {
        if (py_read(at + reading->layout->code_identity, code, sizeof(*code)))
            return;
        identity = py_identity(code, reading->layout);
    }
    py_tell(reading->layout, at, identity, reading->draft->py.life, is_text);
    if (reading->draft->py.block != PERL_NO_BLOCK) {
        py_put(reading, at | SCRIPT_ENTRY);
        py_put(reading, (u64)identity << 32 | reading->draft->py.block);
        reading->draft->py.block = PERL_NO_BLOCK;
    }
    py_put(reading, at | flags);
    py_put(reading, (u64)identity << 32 | line);
    reading->draft->py.in_round = flags != 0;
}

/* Begins reading a list of contexts. */
INLINE void perl_enter(struct py_reading *reading, u64 at)
{
    u64 contexts = py_word(at + PERL_CONTEXTS);
    s32 innermost = contexts ? (u32)py_word(at + PERL_INNERMOST) : -1;
    reading->draft->py.cframe = at;
    reading->draft->py.first = contexts;
    reading->draft->py.frame = innermost < 0 ? 0 : contexts + (u64)(u32)innermost * reading->layout->frame_bytes;
    reading->draft->py.in_round = 0;
    reading->draft->py.outer_statement = 0;
}

/* Leaves a list of contexts: continues with the next one further out, or ends with the code of the program's file. */
INLINE long perl_leave(struct py_reading *reading)
{
    u64 list = reading->draft->py.cframe, outer = py_word(list + PERL_OUTER);
    u32 purpose = py_word(list + PERL_PURPOSE(reading->layout));
    if (!outer) {
        /* The file's code has no evaluation loop while it is compiled, nor once it has left its outermost block. */
        u32 phase = py_word(reading->draft->py.thread + PERL_PHASE(reading->layout));
        if (phase == PERL_RUNS && reading->draft->py.frame)
            perl_put(reading, py_word(reading->draft->py.statement + PERL_FILE), 1, SCRIPT_ENTRY);
        reading->draft->py.cframe = 0;
        return 1;
    }
    if (purpose == PERL_SORT && !reading->draft->py.in_round)
        reading->draft->py.block = perl_line(reading->draft->py.statement);
    if (reading->draft->py.outer_statement)
        reading->draft->py.statement = reading->draft->py.outer_statement;
    perl_enter(reading, outer);
    return 0;
}

static long perl_step(u32 index, struct py_reading *reading)
{
    struct ScriptLayout *layout = reading->layout;
    struct py_frame *context = &reading->draft->py_frame;
    u32 size = layout->frame_bytes;
    if (!reading->draft->py.cframe || size > SCRIPT_FRAME_BYTES)
        return 1;
    /* A step may append two frames. */
    if (reading->draft->py.words >= 2 * MAX_SCRIPT_FRAMES - 2) {
        reading->draft->sample.flags |= SAMPLE_SCRIPT_CUT;
        return 1;
    }
    u64 at = reading->draft->py.frame;
    if (!at || at < reading->draft->py.first)
        return perl_leave(reading);
    if (py_read(at, context, size))
        return 1;
    reading->draft->py.frame = at - size;
    u32 kind = PY_BYTE(context, 0);
    u64 code = 0, before = PY_FIELD(context, PERL_STATEMENT);
    u32 is_text = (kind & (PERL_KIND | PERL_TRY)) == PERL_EVAL;
    reading->draft->py.outer_statement = before;
    if ((kind & PERL_KIND) == PERL_CALL || (kind & PERL_KIND) == PERL_FORMAT)
        code = py_word(PY_FIELD(context, layout->frame_code));
    else if (is_text)
        code = py_word(reading->draft->py.statement + PERL_FILE);
    else
        return 0;
    perl_put(reading, code, is_text, PY_FIELD(context, PERL_RETURN) ? 0 : SCRIPT_ENTRY);
    reading->draft->py.statement = before;
    return 0;
}

/* Appends the frames of a Perl program. */
INLINE void perl_frames(struct py_reading *reading, u64 thread)
{
    reading->draft->py.thread = thread;
    reading->draft->py.block = PERL_NO_BLOCK;
    reading->draft->py.statement = py_word(thread + PERL_CURCOP(reading->layout));
    perl_enter(reading, py_word(thread + PERL_CURSTACKINFO(reading->layout)));
    /* Loops and blocks are contexts too. */
    if (bpf_loop(4 * MAX_SCRIPT_FRAMES, perl_step, reading, 0) == 4 * MAX_SCRIPT_FRAMES)
        reading->draft->sample.flags |= SAMPLE_SCRIPT_CUT;
}

#endif

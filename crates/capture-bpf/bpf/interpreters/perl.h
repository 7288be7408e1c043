/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Reading Perl's frames (cop.h, cv.h, gv.h, hv.h), of the main thread only. An interpreter has a list of context stacks, the innermost
 * first: Perl begins a new one where it calls something on its own (sort, ties, destructors). Contexts are calls, evals, loops and
 * blocks; each has the statement that was running as it began. A call with which native code began an evaluation loop has no return
 * address.
 *
 * A block of `sort` runs in an evaluation loop of its own and in no call. Its frame is shown as the function that contains it.
 *
 * Code outside functions has no structure of its own in Perl. It is identified by the name of its file. */
#ifndef PLUMB_PERL_H
#define PLUMB_PERL_H

/* An offset of Perl's layout. */
#define PERL(layout, NAME) ((layout)->words[PERL_WORD_##NAME])

/* In place of a line: no block is waiting for its function. */
#define PERL_NO_BLOCK 0xffffffffu

struct perl_own {
    /* The list that the current context is in (PERL_SI), and its first context. */
    u64 list;
    u64 first;
    /* The statement (COP) that runs in the next frame, and the one to which the last context read goes back (blk_oldcop). */
    u64 statement;
    u64 outer_statement;
    u64 interpreter;
    /* The line in a block that has an evaluation loop to itself, or PERL_NO_BLOCK. */
    u64 block;
};

/* Only the main thread has a known interpreter. `at`: address of the pointer to it. */
INLINE u64 perl_thread(u64 at, struct ScriptLayout *layout)
{
    return script_is_main() ? script_word(at) : 0;
}

/* Returns the line of a statement, or 0 if it is not known. */
INLINE u32 perl_line(u64 statement)
{
    return script_word(statement + PERL_STATEMENT_LINE);
}

/* Behind the file's name comes that of the function's package. */
INLINE void perl_names(struct Code *tell, struct ScriptLayout *layout, u64 at, u32 is_text)
{
    tell->file_at = is_text ? at : script_word(at + PERL_CODE_FILE);
    if (is_text)
        return;
    u32 flags = script_word(at + PERL_CODE_FLAGS);
    u64 name = script_word(at + PERL_CODE_NAME), package = script_word(at + PERL_CODE_PACKAGE);
    if (!(flags & PERL_NAMED) && name) {
        u64 glob = script_follow(tell, name);
        name = script_follow(tell, glob + PERL_GLOB_NAME);
        package = script_follow(tell, glob + PERL_GLOB_PACKAGE);
    }
    tell->name_at = name;
    if (!package)
        return;
    u64 body = script_follow(tell, package), more = body + PERL(layout, BODY_NAMES);
    if (PERL(layout, BODY_NAMES) == PERL_NO_MEMBER) {
        u64 symbols = script_follow(tell, package + PERL_PACKAGE_SYMBOLS);
        more = symbols + 8 * (script_follow(tell, body + PERL_BODY_LAST_SYMBOL) + 1);
    }
    tell->lines_at = script_follow(tell, more);
    if (script_follow(tell, more + PERL_NAMES_COUNT) >> 32)
        tell->lines_at = script_follow(tell, tell->lines_at);
}

/* Returns the identity of code outside functions, computed from the name of its file. */
INLINE u32 perl_text_identity(struct script_code *text, u64 at)
{
    u64 hash = 0;
    for (int i = 0; i < (int)SCRIPT_IDENTITY_WORDS; i++)
        text->words[i] = 0;
    if (bpf_probe_read_user_str(text, sizeof(*text), (const void *)at) <= 0)
        return 0;
    for (int i = 0; i < (int)SCRIPT_IDENTITY_WORDS; i++) {
        hash = (hash ^ text->words[i]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return hash >> 32;
}

/* Appends a frame of Perl. `is_text`: its code is outside functions. A pending block gets a frame in the same code. */
INLINE void perl_put(struct script_reading *reading, u64 at, u32 is_text, u64 flags)
{
    struct perl_own *own = OWN(reading, struct perl_own);
    struct script_code *code = &reading->draft->script_code;
    u32 identity = 0, line = perl_line(own->statement);
    if (!at || at & 7)
        return;
    if (is_text) {
        identity = perl_text_identity(code, at);
    } else {
        if (script_read(at + reading->layout->identity_at, code, sizeof(*code)))
            return;
        identity = script_identity(code, reading->layout);
    }
    script_tell(reading->layout, at, identity, reading->draft->script.life, is_text);
    if (own->block != PERL_NO_BLOCK) {
        script_put(reading, at | SCRIPT_ENTRY);
        script_put(reading, (u64)identity << 32 | own->block);
        own->block = PERL_NO_BLOCK;
    }
    script_put(reading, at | flags);
    script_put(reading, (u64)identity << 32 | line);
    reading->draft->script.in_round = flags != 0;
}

/* Begins reading a list of contexts. */
INLINE void perl_enter(struct script_reading *reading, u64 at)
{
    struct perl_own *own = OWN(reading, struct perl_own);
    u64 contexts = script_word(at + PERL_LIST_CONTEXTS);
    s32 innermost = contexts ? (u32)script_word(at + PERL_LIST_INNERMOST) : -1;
    own->list = at;
    own->first = contexts;
    reading->draft->script.frame = innermost < 0 ? 0 : contexts + (u64)(u32)innermost * PERL(reading->layout, CONTEXT_BYTES);
    reading->draft->script.in_round = 0;
    own->outer_statement = 0;
}

/* Leaves a list of contexts: continues with the next one further out, or ends with the code of the program's file. */
INLINE long perl_leave(struct script_reading *reading)
{
    struct perl_own *own = OWN(reading, struct perl_own);
    u64 list = own->list, outer = script_word(list + PERL_LIST_OUTER);
    u32 purpose = script_word(list + PERL(reading->layout, PURPOSE));
    if (!outer) {
        /* The file's code has no evaluation loop while it is compiled, nor once it has left its outermost block. */
        u32 phase = script_word(own->interpreter + PERL(reading->layout, PHASE));
        if (phase == PERL_RUNS && reading->draft->script.frame)
            perl_put(reading, script_word(own->statement + PERL_STATEMENT_FILE), 1, SCRIPT_ENTRY);
        own->list = 0;
        return 1;
    }
    if (purpose == PERL_SORT && !reading->draft->script.in_round)
        own->block = perl_line(own->statement);
    if (own->outer_statement)
        own->statement = own->outer_statement;
    perl_enter(reading, outer);
    return 0;
}

static long perl_step(u32 index, struct script_reading *reading)
{
    struct perl_own *own = OWN(reading, struct perl_own);
    struct ScriptLayout *layout = reading->layout;
    struct script_frame *context = &reading->draft->script_frame;
    u32 size = PERL(layout, CONTEXT_BYTES);
    if (!own->list || size > SCRIPT_FRAME_BYTES)
        return 1;
    /* A step may append two frames. */
    if (script_is_full(reading, 2))
        return 1;
    u64 at = reading->draft->script.frame;
    if (!at || at < own->first)
        return perl_leave(reading);
    if (script_read(at, context, size))
        return 1;
    reading->draft->script.frame = at - size;
    u32 kind = BYTE(context, 0);
    u64 code = 0;
    u32 is_text = (kind & (PERL_KIND | PERL_TRY)) == PERL_EVAL;
    own->outer_statement = FIELD(context, PERL_CONTEXT_STATEMENT);
    if ((kind & PERL_KIND) == PERL_CALL || (kind & PERL_KIND) == PERL_FORMAT)
        code = script_word(FIELD(context, PERL(layout, CONTEXT_CODE)));
    else if (is_text)
        code = script_word(own->statement + PERL_STATEMENT_FILE);
    else
        return 0;
    perl_put(reading, code, is_text, FIELD(context, PERL_CONTEXT_RETURN) ? 0 : SCRIPT_ENTRY);
    own->statement = own->outer_statement;
    return 0;
}

/* Appends the frames of a Perl program. */
INLINE void perl_frames(struct script_reading *reading, u64 thread)
{
    struct perl_own *own = OWN(reading, struct perl_own);
    own->interpreter = thread;
    own->block = PERL_NO_BLOCK;
    own->statement = script_word(thread + PERL(reading->layout, STATEMENT));
    perl_enter(reading, script_word(thread + PERL(reading->layout, CONTEXTS)));
    /* Loops and blocks are contexts too. */
    if (bpf_loop(4 * MAX_SCRIPT_FRAMES, perl_step, reading, 0) == 4 * MAX_SCRIPT_FRAMES)
        reading->draft->sample.flags |= SAMPLE_SCRIPT_CUT;
}

#endif

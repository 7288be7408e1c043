/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* What differs with Perl (cop.h, cv.h, gv.h, hv.h), of the main thread alone. An interpreter has a list of context stacks, the innermost first:
 * Perl begins a new one where it calls something that the program doesn't (sort, ties, destructors). Contexts are calls, evals, loops and
 * blocks; each knows the statement that ran as it began. A call that native code began a round of the loop with has nowhere to return to.
 *
 * A block of `sort` runs in a round of its own and in no call: its frame is the one of the function that it stands in.
 *
 * Code that is in no function has none of Perl's structures to itself. It is known by the name of its file, of which an identity is made. */
#ifndef PLUMB_PERL_H
#define PLUMB_PERL_H

enum {
    /* PERL_SI: its contexts, the next one further out, the number of the innermost context. */
    PERL_CONTEXTS = 8,
    PERL_OUTER = 16,
    PERL_INNERMOST = 32,
    /* PERLSI_SORT */
    PERL_SORT = 3,
    /* PERL_CONTEXT: the statement that ran as it began, where a call returns to. CXTYPEMASK, CXt_SUB, CXt_FORMAT, CXt_EVAL and
     * CXp_TRYBLOCK. */
    PERL_STATEMENT = 16,
    PERL_RETURN = 48,
    PERL_KIND = 15,
    PERL_CALL = 9,
    PERL_FORMAT = 10,
    PERL_EVAL = 11,
    PERL_TRY = 64,
    /* COP */
    PERL_LINE = 36,
    PERL_FILE = 48,
    /* PERL_PHASE_RUN */
    PERL_RUNS = 4,
    /* XPVCV: its package, its name, flags; CVf_NAMED */
    PERL_CODE_PACKAGE = 32,
    PERL_CODE_NAME = 56,
    PERL_CODE_FLAGS = 92,
    PERL_NAMED = 0x8000,
    /* XPVGV */
    PERL_GLOB_NAME = 32,
    PERL_GLOB_PACKAGE = 40,
    /* HV: its symbols; of its body how many there is room for, less one. */
    PERL_SYMBOLS = 16,
    PERL_LAST_SYMBOL = 24,
    /* struct xpvhv_aux: the upper half is the number of names, if there are more. */
    PERL_NAMES = 24,
};

/* Members of the layout in Perl's words: PL_phase, PL_curcop and PL_curstackinfo of an interpreter, si_type of a PERL_SI, the xpvhv_aux in the body
 * of a hash. */
#define PERL_PHASE(layout) ((layout)->interpreters)
#define PERL_CURCOP(layout) ((layout)->current)
#define PERL_CURSTACKINFO(layout) ((layout)->thread_frame)
#define PERL_PURPOSE(layout) ((layout)->frame_entry)
#define PERL_AUX(layout) ((layout)->cframe_frame)

/* In the place of a line: there is no block whose function is yet to be met. */
#define PERL_NO_BLOCK 0xffffffffu

/* The line of a statement; 0: it is not known. */
INLINE u32 perl_line(u64 statement)
{
    return py_word(statement + PERL_LINE);
}

/* Says where the names of a function and of its package are. */
INLINE void perl_names(struct Code *tell, struct ScriptLayout *layout, u64 at)
{
    u32 flags = py_word(at + PERL_CODE_FLAGS);
    u64 name = py_word(at + PERL_CODE_NAME), package = py_word(at + PERL_CODE_PACKAGE);
    if (!(flags & PERL_NAMED) && name) {
        u64 glob = py_follow(tell, name);
        name = py_follow(tell, glob + PERL_GLOB_NAME);
        package = py_follow(tell, glob + PERL_GLOB_PACKAGE);
    }
    tell->name_at = name;
    tell->lines_at = 0;
    if (!package)
        return;
    u64 body = py_follow(tell, package), more = body + PERL_AUX(layout);
    if (PERL_AUX(layout) == NO_MEMBER) {
        u64 symbols = py_follow(tell, package + PERL_SYMBOLS);
        more = symbols + 8 * (py_follow(tell, body + PERL_LAST_SYMBOL) + 1);
    }
    tell->lines_at = py_follow(tell, more);
    if (py_follow(tell, more + PERL_NAMES) >> 32)
        tell->lines_at = py_follow(tell, tell->lines_at);
}

/* The identity of code that is in no function, as the text of its file's name makes it. */
INLINE u32 perl_text_identity(struct py_code *text, u64 at)
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

#endif

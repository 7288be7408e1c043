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

enum {
    /* PERL_SI: its contexts, the next one further out, the index of the innermost context. */
    PERL_CONTEXTS = 8,
    PERL_OUTER = 16,
    PERL_INNERMOST = 32,
    /* PERLSI_SORT */
    PERL_SORT = 3,
    /* PERL_CONTEXT: the statement that was running as it began, the return address of a call. CXTYPEMASK, CXt_SUB, CXt_FORMAT, CXt_EVAL
     * and CXp_TRYBLOCK. */
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
    /* HV: its symbols; the body's capacity less one. */
    PERL_SYMBOLS = 16,
    PERL_LAST_SYMBOL = 24,
    /* struct xpvhv_aux: the upper half is the number of names, if there are several. */
    PERL_NAMES = 24,
};

/* Members of the layout in Perl's words: PL_phase, PL_curcop and PL_curstackinfo of an interpreter, si_type of a PERL_SI, the xpvhv_aux in the body
 * of a hash. */
#define PERL_PHASE(layout) ((layout)->interpreters)
#define PERL_CURCOP(layout) ((layout)->current)
#define PERL_CURSTACKINFO(layout) ((layout)->thread_frame)
#define PERL_PURPOSE(layout) ((layout)->frame_entry)
#define PERL_AUX(layout) ((layout)->cframe_frame)

/* In place of a line: no block is waiting for its function. */
#define PERL_NO_BLOCK 0xffffffffu

/* Returns the line of a statement, or 0 if it is not known. */
INLINE u32 perl_line(u64 statement)
{
    return py_word(statement + PERL_LINE);
}

/* Fills in the addresses of the names of a function and of its package. */
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

/* Returns the identity of code outside functions, computed from the name of its file. */
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

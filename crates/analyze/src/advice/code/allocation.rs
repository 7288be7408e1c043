//! Rule: CPU time goes into allocating and freeing memory.

use super::super::Rule;
use super::spent::{Code, Spent};
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "malloc",
        "calloc",
        "realloc",
        "free",
        "cfree",
        "memalign",
        "posix_memalign",
        "aligned_alloc",
        "reallocarray",
        "malloc_consolidate",
        "sysmalloc",
        "operator new",
        "operator new[]",
        "operator delete",
        "operator delete[]",
        "__rust_alloc",
        "__rust_dealloc",
        "__rust_realloc",
        "__rust_alloc_zeroed",
        "__rdl_alloc",
        "__rdl_dealloc",
        "__rdl_realloc",
        "runtime.mallocgc",
        "cfree",
    ],
    begin: &[
        "__libc_malloc",
        "__libc_calloc",
        "__libc_realloc",
        "__libc_free",
        "__libc_memalign",
        "_int_malloc",
        "_int_free",
        "_int_realloc",
        "_int_memalign",
        "__GI___libc_malloc",
        "__GI___libc_free",
        "je_",
        "mi_malloc",
        "mi_free",
        "mi_realloc",
        "mi_calloc",
        "_mi_",
        "tc_malloc",
        "tc_free",
        "tc_new",
        "tc_delete",
        "tcmalloc::",
        "alloc::alloc::",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "allocation",
        claim: "allocates and frees memory",
        pattern: "memory is taken from the heap and given back all the time",
        threshold: "at least 10% of processor time",
        remedy: "reuse buffers (clear instead of free), reserve containers, put small objects on the stack, in an arena or a pool; then try another \
                 allocator (jemalloc, mimalloc, tcmalloc)",
        bound: "the allocator's functions, with the page faults and system calls that they cause",
        source: "Kanev et al., Mallacc (ASPLOS 2017): allocation takes nearly 7% of cycles in Google's datacenters; more than that is unusual",
    },
    gain: GainModel::Lines { least: 0.75, most: 1.0, callers: 0.3 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find,
};

/// Excludes interpreters: they allocate for their program, which cannot reuse the interpreter's memory.
fn find(code: &Code<'_, '_>) -> Spent {
    let spent = code.calls_of(&FUNCTIONS);
    if code.is_for_scripts(&spent) { Spent::default() } else { spent }
}

//! Rule: CPU time goes into sorting.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "list_sort",
        "list_sort_impl",
        "builtin_sorted",
        "qsort",
        "qsort_r",
        "__qsort_r",
        "msort_with_tmp",
        "heapsort",
        "mergesort",
        "_quicksort",
        "sort.Slice",
        "sort.Sort",
    ],
    begin: &[
        "std::__introsort_loop",
        "std::sort",
        "std::__sort",
        "std::stable_sort",
        "std::__stable_sort",
        "std::__merge_sort",
        "std::__merge_adaptive",
        "std::__insertion_sort",
        "std::__unguarded_linear_insert",
        "std::__final_insertion_sort",
        "std::__adjust_heap",
        "std::__unguarded_partition",
        "std::__inplace_stable_sort",
        "std::__1::__sort",
        "std::__1::__introsort",
        "core::slice::sort::",
        "alloc::slice::stable_sort",
        "alloc::slice::<impl [T]>::sort",
        "slices.pdqsort",
        "sort.pdqsort",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "sorting",
        claim: "sorts",
        pattern: "a large part of the time goes into sorting, comparisons included",
        threshold: "at least 10% of processor time",
        remedy: "sort once, not after each change; take only the first few (nth_element, partial_sort, a heap); keep things sorted (a tree, insertion by \
                 binary search); sort keys or indices, not large objects; by numbers use a radix sort",
        bound: "the sorting functions with the comparisons that they call",
        source: "std::partial_sort, std::nth_element: fewer comparisons where not all of the order is needed",
    },
    gain: GainModel::Unknown,
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&FUNCTIONS),
};

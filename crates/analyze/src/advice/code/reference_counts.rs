//! Rule: CPU time goes into reference counting.

use super::super::Rule;
use super::spent::{Code, Spent};
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &["Py_INCREF", "Py_DECREF", "g_object_ref", "g_object_unref"],
    begin: &[
        "std::_Sp_counted_base",
        "std::__shared_count",
        "std::__shared_ptr",
        "std::shared_ptr",
        "<alloc::sync::Arc<",
        "<alloc::rc::Rc<",
        "alloc::sync::Arc<…>::drop_slow",
        "std::__weak_count",
        "boost::detail::sp_counted_base",
        "boost::shared_ptr",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "reference-counts",
        claim: "counts references",
        pattern: "shared pointers are copied and dropped: each time a counter is changed, atomically where threads are in use",
        threshold: "at least 5% of processor time",
        remedy: "pass references to what is shared (const T&, &T), move instead of copying, or use an owner that needs no count (unique_ptr, Box)",
        bound: "the functions that count, without what is freed at the end",
        source: "C++ Core Guidelines F.7, R.34 to R.36: take smart pointers only where ownership is meant; measured: 9 ns to \
                 copy and drop one where there are threads",
    },
    gain: GainModel::Parts { least: 0.7, most: 1.0, callers: 0.3 },
    extent: Extent::Calls,
    least_percent: 5.0,
    find,
};

/// Excludes interpreters: they count references to their program's objects, and the program cannot avoid that.
fn find(code: &Code<'_, '_>) -> Spent {
    let spent = code.calls_of(&FUNCTIONS);
    if code.is_for_scripts(&spent) { Spent::default() } else { spent }
}

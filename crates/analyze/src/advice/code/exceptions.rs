//! Rule: exceptions are thrown frequently.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "__cxa_throw",
        "__cxa_rethrow",
        "__cxa_allocate_exception",
        "__cxa_begin_catch",
        "__cxa_end_catch",
        "_Unwind_RaiseException",
        "_Unwind_Resume",
        "_Unwind_Resume_or_Rethrow",
        "_Unwind_ForcedUnwind",
        "_Unwind_Find_FDE",
        "__gxx_personality_v0",
        "rust_panic",
        "std::rethrow_exception",
    ],
    begin: &["std::panicking::rust_panic", "std::__throw_"],
};

/// Functions of the Java virtual machine for exceptions, mostly for the stack trace.
const JVM: Names = Names {
    whole: &[
        "JVM_FillInStackTrace",
        "Java_java_lang_Throwable_fillInStackTrace",
        "java_lang_Throwable::fill_in_stack_trace",
        "OptoRuntime::handle_exception_C",
        "OptoRuntime::handle_exception_C_helper",
        "OptoRuntime::rethrow_C",
        "SharedRuntime::raw_exception_handler_for_return_address",
        "Runtime1::exception_handler_for_pc",
    ],
    begin: &[],
};

pub(super) const IN_JVM: CodeRule = CodeRule {
    rule: Rule {
        name: "exceptions",
        claim: "throws and catches exceptions",
        pattern: "exceptions are thrown where the program works: each one walks the stack for its trace, which is collected later",
        threshold: "at least 10% of processor time",
        remedy: "return a value (Optional, a sentinel) where it is no exception, check before what would throw, or override fillInStackTrace",
        bound: "traces and handlers; that there is less to collect, and the compiler inlines what no longer throws, comes on top",
        source: "OpenJDK: Throwable.fillInStackTrace walks all frames",
    },
    gain: GainModel::Parts { least: 0.9, most: 1.4, callers: 0.0 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&JVM),
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "exceptions",
        claim: "throws and catches exceptions",
        pattern: "exceptions are thrown where the program works: each one has its stack unwound twice, by tables",
        threshold: "at least 2% of processor time",
        remedy: "return errors as values (std::expected, std::optional, error codes) where they are no exception; check before what would throw",
        bound: "throwing and unwinding, without what handlers do",
        source: "P2544R0: unwinding is slow and takes a lock that all threads share; P1886R0 measures it beside error codes; \
                 measured: 1 us for each frame that is unwound",
    },
    gain: GainModel::Parts { least: 0.85, most: 1.0, callers: 0.6 },
    extent: Extent::Calls,
    least_percent: 2.0,
    find: |code| code.calls_of(&FUNCTIONS),
};

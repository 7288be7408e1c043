//! Rule: arrays and strings grow by copying.

use super::spent::{Code, Spent};
use super::{CodeRule, GainModel, Language, Names, Rule, text};

const FUNCTIONS: Names = Names {
    whole: &[
        "realloc",
        "reallocarray",
        "__libc_realloc",
        "_int_realloc",
        "mremap_chunk",
        "runtime.growslice",
        "runtime.concatstrings",
        "runtime.concatstring2",
        "std::string::_M_append",
        "std::string::_M_mutate",
        "std::__cxx11::basic_string<…>::_M_append",
        "std::__cxx11::basic_string<…>::_M_mutate",
        "std::__cxx11::basic_string<…>::reserve",
    ],
    begin: &[
        "__GI___libc_realloc",
        "alloc::raw_vec::finish_grow",
        "std::vector<…>::_M_realloc_",
        "std::vector<…>::_M_default_append",
        "std::vector<…>::reserve",
        "v8::internal::Runtime_GrowArrayElements",
        "Builtins_GrowFastElements",
        "Builtins_CloneFastJSArray",
    ],
};
/// Go's compiler copies elements next to the call that makes room for them.
const COPIES: Names = Names { whole: &["runtime.memmove", "runtime.typedslicecopy"], begin: &[] };

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 15.0;

pub(in crate::advice) fn rule() -> CodeRule {
    let rule = Rule {
        name: "append-by-copy",
        claim: "grows an array by copying it",
        pattern: "arrays or strings are made longer again and again, and copied each time",
        threshold: text(format!("at least {LEAST}% of processor time in growing, with all that it calls")),
        remedy: "double the room whenever it is used up (std::vector and Vec do, unless reserve is called for each element); reserve once what is known",
        bound: "growing, with the copying and page faults below it",
        source: "Cormen et al., Introduction to Algorithms, 17.4: doubling costs a constant for each element",
    };
    let in_language = [
        (
            Language::Go,
            "strings.Builder or bytes.Buffer in place of += in a loop; a slice that is kept, or made with its length (make([]T, 0, n))",
        ),
        (
            Language::JavaScript,
            "push in place of a spread or concat in a loop ([...list, x]); collect pieces in an array and join them",
        ),
        (
            Language::Rust,
            "with_capacity or reserve once what is known, not for each element; push_str and write! into one String in place of +",
        ),
    ];
    CodeRule {
        in_language: in_language.map(|(of, remedy)| (of, Rule { remedy, ..rule })).into(),
        gain: GainModel::Everything { least: 0.85, callers: 0.2 },
        ..CodeRule::new(rule, LEAST, find)
    }
}

fn find(code: &Code<'_, '_>) -> Spent {
    let lines = code.lines_that_call(&code.calls_named(grows));
    let (grows, copies) = (code.named_so(grows), code.named(&COPIES));
    code.below(|node| {
        let symbol = code.symbol(node).index();
        grows[symbol] || copies[symbol] && code.calling_line(node).is_some_and(|line| lines.contains(&line))
    })
}

fn grows(name: &str) -> bool {
    FUNCTIONS.has(name) || grows_vec(name)
}

/// Returns whether a function grows a Rust `Vec`. The other functions of its buffer allocate or free it once.
fn grows_vec(name: &str) -> bool {
    let own = name.strip_prefix("alloc::raw_vec::RawVec").and_then(|rest| rest.split_once(">::"));
    own.is_some_and(|(_, own)| own.contains("grow") || own.contains("reserve"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_is_made_or_freed_does_not_grow() {
        for name in [
            "alloc::raw_vec::RawVec<…>::grow_one",
            "alloc::raw_vec::RawVecInner<…>::reserve::do_reserve_and_handle",
            "alloc::raw_vec::finish_grow",
            "std::vector<…>::_M_realloc_insert",
        ] {
            assert!(grows(name), "{name}");
        }
        for name in [
            "alloc::raw_vec::RawVecInner<…>::try_allocate_in",
            "alloc::raw_vec::RawVecInner<…>::with_capacity_in",
            "alloc::raw_vec::RawVecInner<…>::deallocate",
            "<alloc::raw_vec::RawVec<T,A> as core::ops::drop::Drop>::drop",
        ] {
            assert!(!grows(name), "{name}");
        }
    }
}

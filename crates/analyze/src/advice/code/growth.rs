//! Rule: arrays and strings grow by copying.

use super::super::Rule;
use super::spent::{Code, Spent};
use super::{CodeRule, Extent, GainModel, Names};

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

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "append-by-copy",
        claim: "grows an array by copying it",
        pattern: "arrays or strings are made longer again and again, and copied each time",
        threshold: "at least 15% of processor time in growing, with all that it calls",
        remedy: "double the room whenever it is used up (std::vector and Vec do, unless reserve is called for each element); reserve once what is known",
        bound: "growing, with the copying and page faults below it",
        source: "Cormen et al., Introduction to Algorithms, 17.4: doubling costs a constant for each element",
    },
    gain: GainModel::Everything { least: 0.85, callers: 0.2 },
    extent: Extent::Calls,
    least_percent: 15.0,
    find,
};

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

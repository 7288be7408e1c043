//! Rule: startup is slow because of shared libraries.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "_dl_start",
        "_dl_start_user",
        "_dl_start_final",
        "_dl_sysdep_start",
        "dl_main",
        "_dl_relocate_object",
        "_dl_map_object",
        "_dl_map_object_deps",
        "_dl_map_object_from_fd",
        "_dl_lookup_symbol_x",
        "do_lookup_x",
        "_dl_fixup",
        "_dl_runtime_resolve",
        "_dl_open",
        "dlopen",
        "dlsym",
        "_dl_protect_relro",
    ],
    begin: &["_dl_runtime_resolve_", "_dl_relocate_", "_dl_map_"],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "dynamic-linking",
        claim: "has the loader look up symbols",
        pattern: "the loader maps libraries, relocates them and looks symbols up",
        threshold: "at least 5% of processor time",
        remedy: "link fewer libraries, or statically; hide symbols (-fvisibility=hidden, -Bsymbolic); keep one process running instead of starting many",
        bound: "the loader",
        source: "ld.so(8), LD_DEBUG=statistics shows the same for one run",
    },
    gain: GainModel::Parts { least: 0.5, most: 1.0, callers: 0.2 },
    extent: Extent::Calls,
    least_percent: 5.0,
    find: |code| code.calls_of(&FUNCTIONS),
};

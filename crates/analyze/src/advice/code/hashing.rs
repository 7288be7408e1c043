//! Rule: CPU time goes into hash functions.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "std::_Hash_bytes",
        "std::_Fnv_hash_bytes",
        "siphash",
        "XXH32",
        "XXH64",
        "XXH3_64bits",
        "murmur3",
        "MurmurHash64A",
        "CityHash64",
    ],
    begin: &[
        "<core::hash::sip::",
        "core::hash::sip::",
        "core::hash::BuildHasher::",
        "<std::hash::random::",
        "std::collections::hash::map::DefaultHasher",
        "MurmurHash",
        "XXH",
        "CityHash",
        "absl::hash_internal::",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "hashing",
        claim: "hashes keys",
        pattern: "keys are hashed by a function that is slow for them: of whole strings, or one made to withstand attackers",
        threshold: "at least 5% of processor time",
        remedy: "use a faster hash (in Rust FxHash or ahash where no attacker chooses the keys), hash once and keep it, or use numbers as keys",
        bound: "the hash functions",
        source: "std::collections::HashMap's documentation: SipHash 1-3 is slow for small keys; Kanev et al. (ISCA 2015) count hashing as a part of the \
                 tax of up to 30% of cycles",
    },
    gain: GainModel::Lines { least: 0.5, most: 0.9, callers: 0.2 },
    extent: Extent::Calls,
    least_percent: 5.0,
    find: |code| code.calls_of(&FUNCTIONS),
};

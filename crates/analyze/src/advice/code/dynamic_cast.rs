//! Rule: the dynamic type of objects is checked at run time.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names { whole: &["__dynamic_cast"], begin: &["__cxxabiv1::__dynamic_cast"] };

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "dynamic-cast",
        claim: "finds out the type of objects by dynamic_cast",
        pattern: "objects are asked for their type by dynamic_cast, which goes through the class hierarchy and may compare names of types",
        threshold: "at least 10% of processor time",
        remedy: "a virtual function in place of the cast, a kind in the base class with static_cast, or std::variant; final classes are quicker",
        bound: "the casts",
        source: "Itanium C++ ABI, 2.9.5 and 2.9.7: types are the same if the names are; libstdc++ compares these by strcmp where addresses differ",
    },
    gain: GainModel::Lines { least: 0.85, most: 1.0, callers: 0.3 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&FUNCTIONS),
};

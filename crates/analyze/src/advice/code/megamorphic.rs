//! Rule: properties are looked up in objects of many shapes.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

/// V8's functions for an access that has seen more shapes than it caches.
const FUNCTIONS: Names = Names {
    whole: &[],
    begin: &[
        "Builtins_LoadIC_Megamorphic",
        "Builtins_KeyedLoadIC_Megamorphic",
        "Builtins_LoadICTrampoline_Megamorphic",
        "Builtins_KeyedLoadICTrampoline_Megamorphic",
        "Builtins_StoreIC_Megamorphic",
        "Builtins_KeyedStoreIC_Megamorphic",
        "Builtins_StoreICTrampoline_Megamorphic",
        "Builtins_CallIC_Megamorphic",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "megamorphic",
        claim: "looks up properties of objects that have many shapes (megamorphic access)",
        pattern: "a line of the program meets objects of more than four shapes, so that each property is looked up by its name",
        threshold: "at least 10% of processor time in V8's look-ups for such accesses",
        remedy: "give all objects the same properties in the same order (one class, one literal), or handle each shape in a function of its own",
        bound: "the look-ups; the optimizing compiler does more with code that has only a few shapes",
        source: "V8's inline caches remember four shapes of an access",
    },
    gain: GainModel::Parts { least: 0.85, most: 1.15, callers: 0.2 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&FUNCTIONS),
};

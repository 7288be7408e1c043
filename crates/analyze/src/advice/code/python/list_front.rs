//! Rule: elements are removed from or inserted at the front of a list.

use crate::advice::Rule;
use crate::advice::code::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names =
    Names { whole: &["list_pop", "list_pop_impl", "list_insert", "list_insert_impl", "ins1"], begin: &[] };

pub(in crate::advice::code) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "front-of-list",
        claim: "moves all elements of a list by one place",
        pattern: "all elements of a list are moved by one place, as its first one is taken or one is put before it",
        threshold: "at least 10% of processor time",
        remedy: "collections.deque (popleft, appendleft), an index that moves on, or heapq",
        bound: "the moving with all that it calls",
        source: "measured on CPython 3.11: pop(0) 3,200 ns, insert(0) 6,400 ns on long lists, popleft 20 ns",
    },
    gain: GainModel::Everything { least: 0.9, callers: 0.4 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&FUNCTIONS),
};

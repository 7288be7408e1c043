//! Aliases of system instructions, mostly of `sys`: maintenance of caches and translations (DDI 0487, C5.3 and C5.4).

use super::word::Word;
use super::write::of_width;

/// op1, CRn, CRm and op2 of an operation, in bits 18 to 5, and its name.
const OPERATIONS: [(u32, &str); 22] = [
    (of(0, 1, 0), "ic ialluis"),
    (of(0, 5, 0), "ic iallu"),
    (of(3, 5, 1), "ic ivau"),
    (of(0, 6, 1), "dc ivac"),
    (of(0, 6, 2), "dc isw"),
    (of(0, 10, 2), "dc csw"),
    (of(0, 14, 2), "dc cisw"),
    (of(3, 4, 1), "dc zva"),
    (of(3, 4, 3), "dc gva"),
    (of(3, 4, 4), "dc gzva"),
    (of(3, 10, 1), "dc cvac"),
    (of(3, 11, 1), "dc cvau"),
    (of(3, 12, 1), "dc cvap"),
    (of(3, 13, 1), "dc cvadp"),
    (of(3, 14, 1), "dc civac"),
    (of(0, 8, 0), "at s1e1r"),
    (of(0, 8, 1), "at s1e1w"),
    (of(0, 8, 2), "at s1e0r"),
    (of(0, 8, 3), "at s1e0w"),
    (of(4, 8, 0), "at s1e2r"),
    (of(4, 8, 4), "at s12e1r"),
    (of(4, 8, 6), "at s12e0r"),
];

/// CRn of these operations is 7.
const fn of(op1: u32, crm: u32, op2: u32) -> u32 {
    op1 << 11 | 7 << 7 | crm << 3 | op2
}

/// Returns a system instruction by the name of its operation.
pub(super) fn system(word: Word, name: &str) -> Option<String> {
    match (name, word.bits(8, 4)) {
        ("clrex", 15) => return Some("clrex".to_owned()),
        ("dsb", 0) => return Some("ssbb".to_owned()),
        ("dsb", 4) => return Some("pssbb".to_owned()),
        ("sys", _) => {}
        _ => return None,
    }
    let &(_, alias) = OPERATIONS.iter().find(|(operation, _)| *operation == word.bits(5, 14))?;
    // No register, which is the zero register's number.
    let is_for_all = alias.starts_with("ic iall");
    Some(if is_for_all { alias.to_owned() } else { format!("{alias}, {}", of_width(true, word.rd())) })
}

//! Rule: CPU time goes into importing modules: finding, reading and running them.

use crate::advice::Rule;
use crate::advice::code::{CodeRule, Extent, GainModel};

/// Source files of the import machinery.
pub(super) const FILES: &[&str] =
    &["<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>"];

pub(in crate::advice::code) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "python-imports",
        claim: "imports modules",
        pattern: "modules are found, read and run before the work begins",
        threshold: "at least 20% of processor time",
        remedy: "import where it is needed, drop what isn't; python -X importtime tells which",
        bound: "importing with all that it calls, what the modules do themselves among it",
        source: "CPython's documentation of -X importtime",
    },
    gain: GainModel::Unknown,
    extent: Extent::Calls,
    least_percent: 20.0,
    find: |code| code.scripts_in(FILES),
};

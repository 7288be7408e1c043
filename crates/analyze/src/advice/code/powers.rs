//! Rule: powers are computed by the general function.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "pow",
        "powf",
        "powl",
        "__pow",
        "__powf",
        "math.Pow",
        "math.pow",
        "__ieee754_pow_fma",
        "__pow_fma",
        "__powf_fma",
    ],
    begin: &["__pow_", "__powf_", "__ieee754_pow"],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "math-call",
        claim: "computes powers by pow()",
        pattern: "pow takes a logarithm and an exponential, whatever the exponent is",
        threshold: "at least 15% of processor time",
        remedy: "multiply for small whole exponents (x * x), sqrt for 0.5, exp2 for powers of two; -ffast-math does it for constant exponents",
        bound: "the function",
        source: "glibc: sysdeps/ieee754/dbl-64/e_pow.c",
    },
    gain: GainModel::Parts { least: 0.7, most: 1.0, callers: 0.2 },
    extent: Extent::Calls,
    least_percent: 15.0,
    find: |code| code.calls_of(&FUNCTIONS),
};

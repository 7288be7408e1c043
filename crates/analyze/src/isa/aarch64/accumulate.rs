//! Instructions whose result depends on the old value of its register: they accumulate, insert, or merge.

use disarm64::Insn;
use disarm64_defn::{InsnClass, InsnOperandKind, InsnOperandQualifier};

/// Beginnings of names.
const STEMS: &str = "mla mls fmla fmls saba uaba sdot udot usdot sudot bfdot fdot bfmla bfmls fcmla cmla smla umla smls umls sqdmla \
                     sqdmls sqrdmla sqrdmls sqrdcmla sadalp uadalp suqadd usqadd tbx aese aesd sm3tt sm3part sha512h";
/// Whole names.
const NAMES: &str = "bfm movk bsl bit bif ssra usra srsra ursra sri sli ins smmla ummla usmmla bfmmla fmmla sha1c sha1p sha1m sha1su0 \
                     sha1su1 sha256h sha256h2 sha256su0 sha256su1 sha512su0 sha512su1 sm4e eorbt eortb";
/// Names of those that narrow into the upper half of a vector.
const NARROWING: &str = "xtn2 sqxtn2 uqxtn2 sqxtun2 fcvtn2 fcvtxn2 shrn2 rshrn2 sqshrn2 uqshrn2 sqrshrn2 uqrshrn2 sqshrun2 sqrshrun2 \
                         addhn2 subhn2 raddhn2 rsubhn2 bfcvtn2";
/// Beginnings of names that count a scalable vector's elements, and add the number to a register.
const COUNTING: &str = "inc dec sqinc sqdec uqinc uqdec";
/// Beginnings of names that sign or authenticate a pointer, or strip its signature.
const SIGNING: &str = "pac aut xpac";

/// Whether the result depends on the old value of its register.
pub(super) fn keeps_result(definition: &Insn) -> bool {
    let name = definition.mnemonic;
    let begins = |stems: &str| stems.split_whitespace().any(|stem| name.starts_with(stem));
    let is_one = |names: &str| names.split_whitespace().any(|one| one == name);
    let has_upper_half =
        definition.operands.first().is_some_and(|operand| operand.kind == InsnOperandKind::VdD1);
    let mut qualifiers = definition.operands.iter().flat_map(|operand| operand.qualifiers);
    match definition.class {
        InsnClass::DP_3SRC => false,
        InsnClass::DP_1SRC => begins(SIGNING),
        InsnClass::ASIMDIMM if matches!(name, "orr" | "bic") => true,
        _ => {
            has_upper_half
                || qualifiers.any(|one| *one == InsnOperandQualifier::P_M)
                || begins(STEMS)
                || begins(COUNTING)
                || is_one(NAMES)
                || is_one(NARROWING)
        }
    }
}

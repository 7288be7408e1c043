//! Text of instructions on scalable vectors (SVE, DDI 0487, C8), whose operands disarm64 0.2 does not format.
//!
//! The qualifier of an operand follows from a field that depends on the instruction's class (binutils: opcodes/aarch64-dis.c,
//! `aarch64_decode_variant_using_iclass`).

use disarm64::{Insn, InsnOperand};
use disarm64_defn::{
    InsnClass, InsnFlags, InsnOperandClass, InsnOperandKind as Kind, InsnOperandQualifier as Qualifier,
};

use super::registers::number;
use super::scalable_address::address;
use super::word::Word;
use super::write::{of_width, short_lists};

/// Returns the text of an instruction; `None` if one of its operands is not known here.
pub(super) fn text(word: Word, definition: &Insn) -> Option<String> {
    let variant = variant(word, definition.class)?;
    let alias = super::scalable_alias::alias(word, definition);
    let mut operands = Vec::new();
    for (position, operand) in definition.operands.iter().enumerate() {
        if alias.as_ref().is_some_and(|alias| alias.without == Some(position)) {
            continue;
        }
        let text = operand_text(word, definition, operand, variant)?;
        // A selection that is a move merges.
        let merges = alias.is_some() && definition.mnemonic == "sel" && position == 1;
        let text = if merges { format!("{text}/m") } else { text };
        // The pattern of all elements is left out.
        operands.extend(Some(text).filter(|text| !text.is_empty()));
    }
    let mnemonic = alias.map_or(definition.mnemonic, |alias| alias.mnemonic);
    Some(format!("{mnemonic} {}", operands.join(", ")))
}

/// Returns the index of the qualifiers that are meant; `None` if the field has no meaning.
fn variant(word: Word, class: InsnClass) -> Option<usize> {
    let size = word.bits(22, 2);
    let highest = |value: u32| value.checked_ilog2();
    let variant = match class {
        InsnClass::SVE_MISC => Some(0),
        InsnClass::SVE_SIZE_BHSD => Some(size),
        InsnClass::SVE_SIZE_BHS => Some(size).filter(|&size| size < 3),
        InsnClass::SVE_SIZE_HSD => size.checked_sub(1),
        InsnClass::SVE_SIZE_HSD2 => word.bits(17, 2).checked_sub(1),
        InsnClass::SVE_SIZE_SD | InsnClass::SVE_SIZE_BH => Some(size & 1),
        InsnClass::SVE_SIZE_SD2 => Some(word.bits(30, 1)),
        InsnClass::SVE_SIZE_13 => Some(size >> 1),
        InsnClass::SVE_CPY => Some(size << 1 | word.bits(14, 1)),
        InsnClass::SVE_MOVPRFX => Some(size << 1 | word.bits(16, 1)),
        InsnClass::SVE_PRED_ZM => Some(word.bits(4, 1)),
        InsnClass::SVE_INDEX => Some(word.bits(16, 5).trailing_zeros()).filter(|&log| log < 5),
        InsnClass::SVE_SHIFT_PRED => highest(size << 2 | word.bits(8, 2)),
        InsnClass::SVE_SHIFT_UNPRED | InsnClass::SVE_SHIFT_TSZ_BHSD => highest(size << 2 | word.bits(19, 2)),
        InsnClass::SVE_SHIFT_TSZ_HSD | InsnClass::SVE_SIZE_TSZ_BHS => {
            highest((size & 1) << 2 | word.bits(19, 2))
        }
        // The element that a mask repeats.
        InsnClass::SVE_LIMM => Some(match word.0 {
            value if value & 0x20600 == 0x600 => 0,
            value if value & 0x20400 == 0x400 => 1,
            value if value & 0x20000 == 0 => 2,
            _ => 3,
        }),
        _ => None,
    };
    variant.map(|variant| variant as usize)
}

/// Returns the qualifier of an operand that has any.
fn qualifier(operand: &InsnOperand, variant: usize) -> Option<Qualifier> {
    operand.qualifiers.get(variant).or(operand.qualifiers.first()).copied()
}

/// Letter of an element.
fn letter(qualifier: Qualifier) -> Option<char> {
    Some(match qualifier {
        Qualifier::S_B => 'b',
        Qualifier::S_H => 'h',
        Qualifier::S_S => 's',
        Qualifier::S_D => 'd',
        Qualifier::S_Q => 'q',
        _ => return None,
    })
}

fn operand_text(word: Word, definition: &Insn, operand: &InsnOperand, variant: usize) -> Option<String> {
    let kind: &str = operand.kind.into();
    let qualifier = qualifier(operand, variant);
    // The table has no qualifiers where elements have the size that the instruction has.
    let is_sized = definition.class != InsnClass::SVE_MISC;
    let by_size = ["b", "h", "s", "d"][word.bits(22, 2) as usize];
    let suffix = match qualifier {
        Some(qualifier) => letter(qualifier).map_or_else(String::new, |letter| format!(".{letter}")),
        None if is_sized => format!(".{by_size}"),
        None => String::new(),
    };
    let number = number(word, operand);
    match operand.kind {
        _ if kind.starts_with("SVE_ADDR_") => address(
            word,
            operand,
            letter_of_address(word, definition, qualifier.or(first_qualifier(definition, variant))),
        ),
        _ if kind.ends_with("_INDEX") => None,
        Kind::SVE_ZtxN | Kind::SVE_ZnxN => {
            let name = |at: u8| format!("z{}{suffix}", (number.unwrap_or(0) + at) & 31);
            let names: Vec<String> = (0..list_length(definition)).map(name).collect();
            Some(short_lists(&format!("{{{}}}", names.join(", "))))
        }
        Kind::SVE_Zd
        | Kind::SVE_Zn
        | Kind::SVE_Zm_5
        | Kind::SVE_Zm_16
        | Kind::SVE_Za_5
        | Kind::SVE_Za_16
        | Kind::SVE_Zt => Some(format!("z{}{suffix}", number?)),
        Kind::SVE_Pd | Kind::SVE_Pn | Kind::SVE_Pm | Kind::SVE_Pt if qualifier.is_none() => {
            let is_whole = definition.class == InsnClass::SVE_MISC && operand.kind == Kind::SVE_Pt;
            let suffix = if is_sized { by_size } else { "b" };
            Some(if is_whole { format!("p{}", number?) } else { format!("p{}.{suffix}", number?) })
        }
        _ if operand.class == InsnOperandClass::PRED_REG && kind.starts_with("SVE_P") => {
            Some(format!("p{}{}", number?, mode(qualifier, &suffix)))
        }
        Kind::SVE_Vd | Kind::SVE_Vn | Kind::SVE_Vm => Some(format!("{}{}", letter(qualifier?)?, number?)),
        Kind::Rd | Kind::Rn | Kind::Rm | Kind::SVE_Rm => {
            let is_64 = match qualifier {
                _ if definition.mnemonic.starts_with("cterm") => word.bit(22),
                Some(qualifier) => qualifier != Qualifier::W,
                None => by_size == "d",
            };
            Some(of_width(is_64, number?))
        }
        Kind::Rd_SP | Kind::Rn_SP | Kind::SVE_Rn_SP => Some(match (number?, qualifier) {
            (31, Some(Qualifier::W | Qualifier::WSP)) => "wsp".to_owned(),
            (31, _) => "sp".to_owned(),
            (number, qualifier) => {
                of_width(!matches!(qualifier, Some(Qualifier::W | Qualifier::WSP)), number)
            }
        }),
        _ => immediate(word, operand.kind, variant),
    }
}

fn first_qualifier(definition: &Insn, variant: usize) -> Option<Qualifier> {
    definition.operands.first().and_then(|first| qualifier(first, variant))
}

/// Returns the letter of a vector in an address: its own, that of the data, or of a prefetch, which has no data, that of the encoding.
fn letter_of_address(word: Word, definition: &Insn, qualifier: Option<Qualifier>) -> Option<char> {
    let is_prefetch = definition.mnemonic.starts_with("prf");
    let of_prefetch = is_prefetch.then(|| if word.bit(30) { 'd' } else { 's' });
    qualifier.and_then(letter).or(of_prefetch)
}

/// Returns what a predicate does to the other elements, or the size of its own.
fn mode(qualifier: Option<Qualifier>, suffix: &str) -> &str {
    match qualifier {
        Some(Qualifier::P_M) => "/m",
        Some(Qualifier::P_Z) => "/z",
        Some(_) => suffix,
        None => "",
    }
}

/// Registers of a list: of loads and stores the digit in their name, otherwise two for one of a flag's values.
fn list_length(definition: &Insn) -> u8 {
    let name = definition.mnemonic;
    match name.bytes().find(u8::is_ascii_digit) {
        Some(digit) if name.starts_with("ld") || name.starts_with("st") => (digit - b'0').clamp(1, 4),
        _ if definition.flags.contains(InsnFlags::HAS_OPCODE_DEPENDENT_FIELD_1) => 1,
        _ => 2,
    }
}

fn immediate(word: Word, kind: Kind, variant: usize) -> Option<String> {
    let shifted = |value: i64| {
        // A zero that is shifted keeps the shift.
        let (value, shift) = match (word.bit(13), value) {
            (true, 0) => (0, ", lsl #8"),
            (true, value) => (value << 8, ""),
            (false, value) => (value, ""),
        };
        Some(format!("#{value}{shift}"))
    };
    match kind {
        Kind::SVE_PATTERN => Some(pattern(word)),
        Kind::SVE_PRFOP => Some(prefetch(word.bits(0, 4))),
        Kind::SVE_PATTERN_SCALED => {
            let (pattern, times) = (pattern(word), word.bits(16, 4) + 1);
            Some(match (times, pattern.is_empty()) {
                (1, _) => pattern,
                (_, true) => format!("all, mul #{times}"),
                (_, false) => format!("{pattern}, mul #{times}"),
            })
        }
        Kind::SVE_AIMM => shifted(word.bits(5, 8).into()),
        Kind::SVE_ASIMM => shifted(word.signed(5, 8)),
        Kind::SVE_SIMM5 => Some(format!("#{}", word.signed(5, 5))),
        Kind::SVE_SIMM5B | Kind::SIMM5 => Some(format!("#{}", word.signed(16, 5))),
        Kind::SVE_SIMM6 => Some(format!("#{}", word.signed(5, 6))),
        Kind::SVE_SIMM8 => Some(format!("#{}", word.signed(5, 8))),
        Kind::SVE_UIMM3 => Some(format!("#{}", word.bits(16, 3))),
        Kind::SVE_UIMM7 => Some(format!("#{}", word.bits(14, 7))),
        Kind::SVE_UIMM8 => Some(format!("#{}", word.bits(5, 8))),
        Kind::SVE_UIMM8_53 => Some(format!("#{}", word.bits(16, 5) << 3 | word.bits(10, 3))),
        Kind::SVE_I1_HALF_ONE => Some(format!("#{}", if word.bit(5) { "1.0" } else { "0.5" })),
        Kind::SVE_I1_HALF_TWO => Some(format!("#{}", if word.bit(5) { "2.0" } else { "0.5" })),
        Kind::SVE_I1_ZERO_ONE => Some(format!("#{}", if word.bit(5) { "1.0" } else { "0.0" })),
        Kind::FPIMM0 => Some("#0.0".to_owned()),
        Kind::SVE_FPIMM8 => Some(format!("#{:.8}", super::corrected::float(word.bits(5, 8)))),
        Kind::SVE_SHLIMM_PRED | Kind::SVE_SHRIMM_PRED => {
            let value = word.bits(22, 2) << 5 | word.bits(5, 5);
            shift(kind == Kind::SVE_SHLIMM_PRED, value, variant)
        }
        Kind::SVE_SHLIMM_UNPRED | Kind::SVE_SHRIMM_UNPRED => {
            let value = word.bits(22, 2) << 5 | word.bits(16, 5);
            shift(kind == Kind::SVE_SHLIMM_UNPRED, value, variant)
        }
        Kind::SVE_SHLIMM_UNPRED_22 | Kind::SVE_SHRIMM_UNPRED_22 => {
            let value = word.bits(22, 1) << 5 | word.bits(16, 5);
            shift(kind == Kind::SVE_SHLIMM_UNPRED_22, value, variant)
        }
        _ => None,
    }
}

/// Returns the amount of a shift, which the field has with the element's size.
fn shift(is_left: bool, value: u32, variant: usize) -> Option<String> {
    let bits = 8_u32.checked_shl(variant as u32)?;
    let amount = if is_left { value.checked_sub(bits)? } else { (2 * bits).checked_sub(value)? };
    Some(format!("#{amount}"))
}

/// Returns how many elements are meant; empty for all.
fn pattern(word: Word) -> String {
    match word.bits(5, 5) {
        0 => "pow2".to_owned(),
        count @ 1..=8 => format!("vl{count}"),
        log @ 9..=13 => format!("vl{}", 16 << (log - 9)),
        29 => "mul4".to_owned(),
        30 => "mul3".to_owned(),
        31 => String::new(),
        other => format!("#{other:#x}"),
    }
}

/// Returns the kind of a prefetch.
fn prefetch(operation: u32) -> String {
    let (write, level, policy) = (operation >> 3, operation >> 1 & 3, operation & 1);
    if level == 3 {
        return format!("#{operation}");
    }
    let (kind, policy) = (["pld", "pst"][write as usize & 1], ["keep", "strm"][policy as usize]);
    format!("{kind}l{}{policy}", level + 1)
}

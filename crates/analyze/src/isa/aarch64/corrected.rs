//! Instructions that disarm64 0.2 formats wrongly, found by comparing it with objdump.

use disarm64::Insn;
use disarm64_defn::InsnClass;

use super::access::{lanes, structures};
use super::word::Word;
use super::write::{vector_list, with_post_index};

/// Returns the text of an instruction if it is one of these.
pub(super) fn corrected(word: Word, definition: &Insn) -> Option<String> {
    let name = definition.mnemonic;
    match definition.class {
        InsnClass::FLOATDP1 if name == "fcvt" => {
            let named = |kind: u32, number: u8| Some(format!("{}{number}", float_letter(kind)?));
            Some(format!(
                "fcvt {}, {}",
                named(word.bits(15, 2), word.rd())?,
                named(word.bits(22, 2), word.rn())?
            ))
        }
        InsnClass::FLOATIMM if name == "fmov" => {
            let kind = float_letter(word.bits(22, 2))?;
            Some(format!("fmov {kind}{}, #{:.8}", word.rd(), float(word.bits(13, 8))))
        }
        InsnClass::ASISDLSE | InsnClass::ASISDLSEP => Some(multiple(word, definition)),
        InsnClass::ASISDLSO | InsnClass::ASISDLSOP if name.ends_with('r') => {
            let list = vector_list(word.rd(), lanes(word), arrangement(word.bits(10, 2), word.bit(30)));
            let address = with_post_index(
                word,
                definition.class == InsnClass::ASISDLSOP,
                lanes(word) << word.bits(10, 2),
            );
            Some(format!("{name} {list}, {address}"))
        }
        // disarm64 subtracts from what is zero here.
        InsnClass::ASISDSHF if word.bits(19, 4) == 0 => Some("<undefined>".to_owned()),
        InsnClass::ASISDSHF if name.contains("cvt") => {
            // The highest bit gives the size of the element, the others the number of fraction bits.
            let immediate = word.bits(16, 7);
            let size = 1 << immediate.checked_ilog2().filter(|&log| log >= 4)?;
            let letter = ["h", "s", "d"].get((size / 32) as usize)?;
            let fraction = 2 * size - immediate;
            Some(format!("{name} {letter}{}, {letter}{}, #{fraction}", word.rd(), word.rn()))
        }
        InsnClass::ASIMDALL if name.starts_with('f') => {
            let (letter, size) = if word.bit(29) { ("s", 2) } else { ("h", 1) };
            Some(format!("{name} {letter}{}, v{}.{}", word.rd(), word.rn(), arrangement(size, word.bit(30))))
        }
        InsnClass::ASISDPAIR if name.starts_with('f') => {
            let (letter, arrangement) = match (word.bit(29), word.bit(22)) {
                (false, _) => ("h", "2h"),
                (true, false) => ("s", "2s"),
                (true, true) => ("d", "2d"),
            };
            Some(format!("{name} {letter}{}, v{}.{arrangement}", word.rd(), word.rn()))
        }
        InsnClass::BFLOAT16 if name == "bfmmla" => {
            Some(format!("{name} v{}.4s, v{}.8h, v{}.8h", word.rd(), word.rn(), word.rm()))
        }
        _ => complex(word, definition),
    }
}

/// Returns an operation on complex numbers.
fn complex(word: Word, definition: &Insn) -> Option<String> {
    let name = definition.mnemonic;
    let size = word.bits(22, 2);
    let whole = arrangement(size, word.bit(30));
    let (to, from, other) = (word.rd(), word.rn(), word.rm());
    match (definition.class, name) {
        (InsnClass::ASIMDSAME, "fcadd") => {
            let turn = if word.bit(12) { 270 } else { 90 };
            Some(format!("{name} v{to}.{whole}, v{from}.{whole}, v{other}.{whole}, #{turn}"))
        }
        (InsnClass::ASIMDELEM, "fcmla") => {
            let turn = word.bits(13, 2) * 90;
            // An element is a pair of numbers.
            let (letter, index) = match size {
                1 => ("h", word.bits(11, 1) << 1 | word.bits(21, 1)),
                _ => ("s", word.bits(11, 1)),
            };
            Some(format!("{name} v{to}.{whole}, v{from}.{whole}, v{other}.{letter}[{index}], #{turn}"))
        }
        _ => None,
    }
}

/// Returns the letter of a scalar floating-point register; `None` if the kind is not allocated.
fn float_letter(kind: u32) -> Option<&'static str> {
    ["s", "d", "<undefined>", "h"].get(kind as usize).copied()
}

/// Returns a load or a store of multiple structures. Registers one after the other are `ld1`, interleaved ones `ld2` to `ld4`.
fn multiple(word: Word, definition: &Insn) -> String {
    let opcode = word.bits(12, 4);
    let is_interleaved = matches!(opcode, 0b0000 | 0b0100 | 0b1000);
    if !is_interleaved && !matches!(opcode, 0b0010 | 0b0110 | 0b0111 | 0b1010) {
        return "<undefined>".to_owned();
    }
    let count = structures(word);
    let ways = if is_interleaved { count } else { 1 };
    let list = vector_list(word.rd(), count, arrangement(word.bits(10, 2), word.bit(30)));
    let bytes = count * if word.bit(30) { 16 } else { 8 };
    let address = with_post_index(word, definition.class == InsnClass::ASISDLSEP, bytes);
    format!("{}{ways} {list}, {address}", &definition.mnemonic[..2])
}

/// Returns the suffix of a vector with elements of 1 << `size` bytes.
fn arrangement(size: u32, is_whole: bool) -> &'static str {
    match (size, is_whole) {
        (0, false) => "8b",
        (0, true) => "16b",
        (1, false) => "4h",
        (1, true) => "8h",
        (2, false) => "2s",
        (2, true) => "4s",
        (_, false) => "1d",
        (_, true) => "2d",
    }
}

/// Returns the number that eight bits of an immediate represent (DDI 0487, `VFPExpandImm`).
pub(super) fn float(bits: u32) -> f64 {
    let exponent = ((bits >> 4 & 7) ^ 4).cast_signed() - 3;
    let value = f64::from(16 + (bits & 15)) / 16.0 * f64::from(exponent).exp2();
    if bits & 0x80 == 0 { value } else { -value }
}

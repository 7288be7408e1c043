//! Aliases that GNU tools and the manual prefer to an instruction's own name (DDI 0487, C6.2 and C7.2: *alias conditions*).

use disarm64::Insn;
use disarm64_defn::InsnClass;

use super::operation;
use super::word::{Word, ZERO};
use super::write::{of_width, s, z};

/// Returns an instruction as its preferred alias, if it has one.
pub(super) fn preferred(word: Word, definition: &Insn) -> Option<String> {
    let name = definition.mnemonic;
    match definition.class {
        InsnClass::ADDSUB_IMM | InsnClass::ADDSUB_EXT | InsnClass::ADDSUB_SHIFT => {
            add_or_subtract(word, definition)
        }
        InsnClass::ADDSUB_CARRY if word.rn() == ZERO && name.starts_with("sbc") => {
            let alias = if name == "sbc" { "ngc" } else { "ngcs" };
            Some(format!("{alias} {}, {}", z(word, word.rd()), z(word, word.rm())))
        }
        InsnClass::LOG_IMM | InsnClass::LOG_SHIFT => logical(word, definition),
        InsnClass::MOVEWIDE => move_wide(word, name),
        InsnClass::BITFIELD => super::alias_bits::bitfield(word, name),
        InsnClass::EXTRACT if word.rn() == word.rm() => {
            Some(format!("ror {}, {}, #{}", z(word, word.rd()), z(word, word.rn()), word.bits(10, 6)))
        }
        InsnClass::DP_2SRC if name == "subps" && word.rd() == ZERO => {
            let source = |number: u8| if number == ZERO { "sp".to_owned() } else { of_width(true, number) };
            Some(format!("cmpp {}, {}", source(word.rn()), source(word.rm())))
        }
        InsnClass::DP_2SRC => {
            let alias =
                name.strip_suffix('v').filter(|alias| matches!(*alias, "lsl" | "lsr" | "asr" | "ror"))?;
            Some(format!("{alias} {}, {}, {}", z(word, word.rd()), z(word, word.rn()), z(word, word.rm())))
        }
        InsnClass::DP_3SRC if word.ra() == ZERO => product(word, name),
        InsnClass::CONDSEL => conditional(word, name),
        InsnClass::BRANCH_REG if name == "ret" && word.rn() == 30 => Some("ret".to_owned()),
        InsnClass::LSE_ATOMIC if word.rd() == ZERO && !word.bit(23) => atomic_store(word, name),
        InsnClass::IC_SYSTEM => super::alias_system::system(word, name),
        _ => super::alias_vector::vector(word, definition),
    }
}

/// Returns the last operand of an addition or a subtraction.
fn addend(word: Word, definition: &Insn) -> Option<String> {
    let amount = word.bits(10, 6);
    Some(match definition.class {
        InsnClass::ADDSUB_IMM => {
            let shift = if word.bit(22) { ", lsl #12" } else { "" };
            format!("#{:#x}{shift}", word.bits(10, 12))
        }
        InsnClass::ADDSUB_SHIFT => {
            shifted(word, amount, ["lsl", "lsr", "asr"].get(word.bits(22, 2) as usize)?)
        }
        _ => {
            let (option, amount) = (word.bits(13, 3), word.bits(10, 3));
            let register = of_width(word.is_64() && option & 3 == 3, word.rm());
            // `uxtx`, or `uxtw` of 32 bits, beside the stack pointer is a plain shift.
            let is_plain = option == 2 + u32::from(word.is_64()) && word.rn() == ZERO;
            let extension = ["uxtb", "uxth", "uxtw", "uxtx", "sxtb", "sxth", "sxtw", "sxtx"][option as usize];
            match (is_plain, amount) {
                (true, 0) => register,
                (true, _) => format!("{register}, lsl #{amount}"),
                (false, 0) => format!("{register}, {extension}"),
                (false, _) => format!("{register}, {extension} #{amount}"),
            }
        }
    })
}

fn shifted(word: Word, amount: u32, kind: &str) -> String {
    let register = z(word, word.rm());
    if amount == 0 && kind == "lsl" { register } else { format!("{register}, {kind} #{amount}") }
}

fn add_or_subtract(word: Word, definition: &Insn) -> Option<String> {
    let name = definition.mnemonic;
    if let Some((from, to)) = operation::moved(word, definition) {
        return Some(format!("mov {}, {}", s(word, to), s(word, from)));
    }
    let first =
        if definition.class == InsnClass::ADDSUB_SHIFT { z(word, word.rn()) } else { s(word, word.rn()) };
    let addend = addend(word, definition)?;
    let is_negation = definition.class == InsnClass::ADDSUB_SHIFT && word.rn() == ZERO;
    match name {
        "subs" if word.rd() == ZERO => Some(format!("cmp {first}, {addend}")),
        "adds" if word.rd() == ZERO => Some(format!("cmn {first}, {addend}")),
        "sub" if is_negation => Some(format!("neg {}, {addend}", z(word, word.rd()))),
        "subs" if is_negation => Some(format!("negs {}, {addend}", z(word, word.rd()))),
        _ => None,
    }
}

fn logical(word: Word, definition: &Insn) -> Option<String> {
    let name = definition.mnemonic;
    if definition.class == InsnClass::LOG_IMM {
        let value = super::alias_bits::bit_mask(word)?;
        return match name {
            "ands" if word.rd() == ZERO => Some(format!("tst {}, #{value:#x}", z(word, word.rn()))),
            "orr" if word.rn() == ZERO && !super::alias_bits::is_wide(word, value) => {
                Some(format!("mov {}, #{value:#x}", s(word, word.rd())))
            }
            _ => None,
        };
    }
    if let Some((from, to)) = operation::moved(word, definition) {
        return Some(format!("mov {}, {}", z(word, to), z(word, from)));
    }
    let kind = ["lsl", "lsr", "asr", "ror"].get(word.bits(22, 2) as usize)?;
    let last = shifted(word, word.bits(10, 6), kind);
    match name {
        "ands" if word.rd() == ZERO => Some(format!("tst {}, {last}", z(word, word.rn()))),
        "orn" if word.rn() == ZERO => Some(format!("mvn {}, {last}", z(word, word.rd()))),
        _ => None,
    }
}

fn move_wide(word: Word, name: &str) -> Option<String> {
    let (shift, immediate) = (word.bits(21, 2) * 16, word.bits(5, 16));
    let register = z(word, word.rd());
    let value = u64::from(immediate) << shift;
    let mask = if word.is_64() { u64::MAX } else { u64::from(u32::MAX) };
    // A zero that is shifted, and 32 bits that `movz` has a shorter form of, keep their own name.
    let is_alias = immediate != 0 || shift == 0;
    match name {
        "movk" if shift == 0 => Some(format!("movk {register}, #{immediate:#x}")),
        "movk" => Some(format!("movk {register}, #{immediate:#x}, lsl #{shift}")),
        "movz" if is_alias => Some(format!("mov {register}, #{value:#x}")),
        "movn" if is_alias && (word.is_64() || immediate != 0xffff) => {
            Some(format!("mov {register}, #{:#x}", !value & mask))
        }
        _ => None,
    }
}

fn product(word: Word, name: &str) -> Option<String> {
    let (alias, is_long) = match name {
        "madd" => ("mul", false),
        "msub" => ("mneg", false),
        "smaddl" => ("smull", true),
        "smsubl" => ("smnegl", true),
        "umaddl" => ("umull", true),
        "umsubl" => ("umnegl", true),
        _ => return None,
    };
    let factor = |number| of_width(word.is_64() && !is_long, number);
    Some(format!("{alias} {}, {}, {}", z(word, word.rd()), factor(word.rn()), factor(word.rm())))
}

fn conditional(word: Word, name: &str) -> Option<String> {
    let condition = word.bits(12, 4);
    if word.rn() != word.rm() || condition >= 14 {
        return None;
    }
    let inverted = CONDITIONS[(condition ^ 1) as usize];
    let (register, from) = (z(word, word.rd()), z(word, word.rn()));
    let is_set = word.rn() == ZERO;
    Some(match name {
        "csinc" if is_set => format!("cset {register}, {inverted}"),
        "csinv" if is_set => format!("csetm {register}, {inverted}"),
        "csinc" => format!("cinc {register}, {from}, {inverted}"),
        "csinv" => format!("cinv {register}, {from}, {inverted}"),
        "csneg" => format!("cneg {register}, {from}, {inverted}"),
        _ => return None,
    })
}

/// Condition codes as GNU writes them.
const CONDITIONS: [&str; 16] =
    ["eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "al", "nv"];

/// An atomic operation whose result is not used: `stadd`.
fn atomic_store(word: Word, name: &str) -> Option<String> {
    let rest = name.strip_prefix("ld")?;
    let known = ["add", "clr", "eor", "set", "smax", "smin", "umax", "umin"];
    known.iter().find(|known| rest.starts_with(*known))?;
    let base = if word.rn() == ZERO { "sp".to_owned() } else { of_width(true, word.rn()) };
    Some(format!("st{rest} {}, [{base}]", of_width(word.bits(30, 2) == 3, word.rm())))
}

//! Aliases of vector instructions (DDI 0487, C7.2).

use disarm64::Insn;
use disarm64_defn::InsnClass;

use super::word::Word;
use super::write::of_width;

/// Returns an instruction as its preferred alias, if it has one.
pub(super) fn vector(word: Word, definition: &Insn) -> Option<String> {
    let (to, from) = (word.rd(), word.rn());
    let bytes = if word.bit(30) { "16b" } else { "8b" };
    match (definition.class, definition.mnemonic) {
        (InsnClass::ASIMDSAME, "orr") if from == word.rm() => {
            Some(format!("mov v{to}.{bytes}, v{from}.{bytes}"))
        }
        (InsnClass::ASIMDMISC, "not") => Some(format!("mvn v{to}.{bytes}, v{from}.{bytes}")),
        (InsnClass::ASIMDINS, "umov") => {
            let (letter, log) = element(word)?;
            let is_move = log == 3 || log == 2 && !word.bit(30);
            let register = of_width(word.bit(30), to);
            is_move.then(|| format!("mov {register}, v{from}.{letter}[{}]", word.bits(17 + log, 4 - log)))
        }
        (InsnClass::ASIMDINS, "ins") => {
            let (letter, log) = element(word)?;
            let place = format!("v{to}.{letter}[{}]", word.bits(17 + log, 4 - log));
            // From a general register, or from another element.
            Some(match word.bit(29) {
                false => format!("mov {place}, {}", of_width(log == 3, from)),
                true => format!("mov {place}, v{from}.{letter}[{}]", word.bits(11 + log, 4 - log)),
            })
        }
        (InsnClass::ASISDONE, "dup") => {
            let (letter, log) = element(word)?;
            Some(format!("mov {letter}{to}, v{from}.{letter}[{}]", word.bits(17 + log, 4 - log)))
        }
        (InsnClass::ASIMDSHF, name @ ("sshll" | "ushll" | "sshll2" | "ushll2")) => lengthened(word, name),
        _ => None,
    }
}

/// Letter of an element and binary logarithm of its bytes, by the lowest bit of `imm5`.
fn element(word: Word) -> Option<(char, u32)> {
    let log = word.bits(16, 5).trailing_zeros();
    Some((*['b', 'h', 's', 'd'].get(log as usize)?, log))
}

/// A shift by nothing, which only lengthens the elements.
fn lengthened(word: Word, name: &str) -> Option<String> {
    let (narrow, wide) = match (word.bits(16, 7), word.bit(30)) {
        (8, false) => ("8b", "8h"),
        (8, true) => ("16b", "8h"),
        (16, false) => ("4h", "4s"),
        (16, true) => ("8h", "4s"),
        (32, false) => ("2s", "2d"),
        (32, true) => ("4s", "2d"),
        _ => return None,
    };
    let alias = if name.starts_with('s') { "sxtl" } else { "uxtl" };
    let half = if word.bit(30) { "2" } else { "" };
    Some(format!("{alias}{half} v{}.{wide}, v{}.{narrow}", word.rd(), word.rn()))
}

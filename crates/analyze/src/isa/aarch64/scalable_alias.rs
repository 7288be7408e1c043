//! Aliases of instructions on scalable vectors (DDI 0487, C8.2: *alias conditions*).

use disarm64::Insn;

use super::word::Word;

/// Another name.
pub(super) struct Alias {
    pub mnemonic: &'static str,
    /// Position of an operand that is left out.
    pub without: Option<usize>,
}

/// Returns the preferred alias of an instruction, if it has one.
pub(super) fn alias(word: Word, definition: &Insn) -> Option<Alias> {
    let kinds: Vec<&str> = definition.operands.iter().map(|operand| operand.kind.into()).collect();
    let last = kinds.len().checked_sub(1);
    let (second, governing) = (word.bits(5, 4), word.bits(10, 4));
    let renamed = |mnemonic| Some(Alias { mnemonic, without: None });
    let shorter = |mnemonic| Some(Alias { mnemonic, without: last });
    match (definition.mnemonic, kinds.first().copied()?) {
        ("cpy" | "dup" | "fcpy" | "fdup", _) => {
            renamed(if definition.mnemonic.starts_with('f') { "fmov" } else { "mov" })
        }
        ("orr", "SVE_Zd") if kinds.len() == 3 && kinds[1] == "SVE_Zn" && word.rn() == word.rm() => {
            shorter("mov")
        }
        ("sel", "SVE_Pd") if word.bits(16, 4) == word.bits(0, 4) => shorter("mov"),
        ("sel", "SVE_Zd") if word.rm() == word.rd() => Some(Alias { mnemonic: "mov", without: last }),
        // Operations on predicates, with equal operands.
        ("and", "SVE_Pd") if second == word.bits(16, 4) => shorter("mov"),
        ("ands", "SVE_Pd") if second == word.bits(16, 4) => shorter("movs"),
        ("orr", "SVE_Pd") if second == word.bits(16, 4) && second == governing => {
            Some(Alias { mnemonic: "mov", without: None })
        }
        ("eor", "SVE_Pd") if word.bits(16, 4) == governing => shorter("not"),
        ("eors", "SVE_Pd") if word.bits(16, 4) == governing => shorter("nots"),
        _ => None,
    }
}

//! Instructions as text, as GNU tools write it, with the aliases that they prefer.

use std::collections::BTreeMap;

use disarm64::{Insn, InsnOpcode, InsnOperand, format_insn};
use disarm64_defn::{InsnClass, InsnOperandKind as Kind};
use plumb_profile::Address;

use super::instruction::MachineInstruction;
use super::write::short_lists;
use super::{alias, corrected, flow, scalable};
use crate::isa::model::Decode;

/// Text of bits that are not an instruction.
const BAD: &str = "(bad)";

/// Operands that are not formatted.
const MORE: &str = "…";

/// Formats instructions.
pub(crate) struct Writer<'n> {
    names: &'n BTreeMap<Address, String>,
}

impl<'n> Writer<'n> {
    /// Creates a formatter that prints these names instead of addresses, or, where the text has no address, behind the instruction.
    pub fn new(names: &'n BTreeMap<Address, String>) -> Self {
        Self { names }
    }

    /// Formats an instruction.
    pub fn text(&self, one: &MachineInstruction) -> String {
        let Some(definition) = one.definition else { return BAD.to_owned() };
        let text = alias::preferred(one.word, definition)
            .or_else(|| corrected::corrected(one.word, definition))
            .or_else(|| scalable::text(one.word, definition).filter(|_| is_scalable(definition)))
            .unwrap_or_else(|| plain(one, definition));
        if text.contains("<undefined>") {
            return BAD.to_owned();
        }
        let named = one.target().and_then(|target| Some((target, self.names.get(&target)?)));
        match named {
            None => text,
            Some((target, name)) if is_shown(one, definition) => {
                // The address is the last operand.
                let shown = format!("{:#x}", target.0);
                text.strip_suffix(&shown).map_or_else(|| text.clone(), |before| format!("{before}{name}"))
            }
            // The address is computed by several instructions: a comment, as in assembly.
            Some((_, name)) => format!("{text} // {name}"),
        }
    }
}

fn is_scalable(definition: &Insn) -> bool {
    let kind = |operand: &InsnOperand| <&str>::from(operand.kind).starts_with("SVE_");
    // `ctermeq` has general registers alone.
    definition.operands.iter().any(kind) || definition.mnemonic.starts_with("cterm")
}

/// Whether the text has the whole address: that of a branch, `adr`, or a load of a literal.
fn is_shown(one: &MachineInstruction, definition: &Insn) -> bool {
    flow::target(one.word, definition, one.address).is_some()
        || definition.class == InsnClass::LOADLIT
        || definition.mnemonic == "adr"
}

/// An instruction as disarm64 formats it.
struct Encoded {
    word: u32,
    definition: &'static Insn,
}

impl InsnOpcode for Encoded {
    fn definition(&self) -> &'static Insn {
        self.definition
    }

    fn bits(&self) -> u32 {
        self.word
    }
}

/// Formats an instruction without aliases.
fn plain(one: &MachineInstruction, definition: &'static Insn) -> String {
    let mut text = String::new();
    let encoded = Encoded { word: one.word.0, definition };
    if format_insn::format_insn_pc(one.address, &mut text, &encoded).is_err() {
        return BAD.to_owned();
    }
    let mut words = text.split_ascii_whitespace();
    let mnemonic = words.next().unwrap_or(BAD);
    let operands = words.collect::<Vec<_>>().join(" ").replace("{ ", "{").replace(" }", "}");
    // Operands that disarm64 0.2 does not format, most of scalable vectors, are their kind between colons.
    if operands.contains(':') {
        return format!("{mnemonic} {MORE}");
    }
    let operands = short_lists(&decimal_offsets(&with_whole_element(one, definition, operands)));
    if operands.is_empty() { mnemonic.to_owned() } else { format!("{mnemonic} {operands}") }
}

/// Writes the offset in `[x0, #0x18]` as a decimal number, as GNU does.
fn decimal_offsets(operands: &str) -> String {
    let decimal = |inner: &str| {
        let (before, digits) = inner.split_once("#0x")?;
        let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        let value = u64::from_str_radix(&digits[..end], 16).ok()?;
        Some(format!("{before}#{value}{}", &digits[end..]))
    };
    let changed =
        operands.split_once('[').and_then(|(before, inner)| Some(format!("{before}[{}", decimal(inner)?)));
    changed.unwrap_or_else(|| operands.to_owned())
}

/// Corrects the register of an element of four bytes: disarm64 0.2 leaves out its highest bit.
fn with_whole_element(one: &MachineInstruction, definition: &Insn, operands: String) -> String {
    let is_dot =
        definition.mnemonic.contains("dot") && definition.operands.iter().any(|it| it.kind == Kind::Em);
    match operands.rsplit_once(", v") {
        Some((before, element)) if is_dot => match element.split_once('.') {
            Some((_, rest)) => format!("{before}, v{}.{rest}", one.word.rm()),
            None => operands,
        },
        _ => operands,
    }
}

//! The memory that an instruction addresses (DDI 0487, C4.1.94: Loads and Stores).

use disarm64::Insn;
use disarm64_defn::{InsnClass, InsnFeatureSet, InsnOperandKind as Kind};

use super::registers;
use super::word::{Word, ZERO};
use crate::isa::model::Register;

/// An access to memory, or the address of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// Number of the base register; 31 is the stack pointer.
    pub base: Option<u8>,
    pub index: Option<Register>,
    /// Factor of the index.
    pub scale: u32,
    pub displacement: i64,
    /// The address, if it is relative to the instruction.
    pub fixed: Option<u64>,
    /// Bytes accessed, of a pair both; 0 if unknown.
    pub bytes: u64,
    /// Change of the base register.
    pub write_back: WriteBack,
    pub loads: bool,
    pub stores: bool,
    /// Elements at many addresses.
    pub is_scattered: bool,
}

/// Change of the base register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteBack {
    None,
    /// A constant is added.
    By(i64),
    /// A register, or what is not known, is added.
    Other,
}

/// Returns the access of an instruction that has an address.
pub(super) fn access(word: Word, definition: &Insn, address: u64) -> Option<Access> {
    let (loads, stores) = direction(definition)?;
    let bytes = bytes(word, definition);
    let none = Access {
        base: Some(word.rn()),
        index: None,
        scale: 1,
        displacement: 0,
        fixed: None,
        bytes,
        write_back: WriteBack::None,
        loads,
        stores,
        is_scattered: false,
    };
    definition.operands.iter().find_map(|operand| of_operand(word, definition, operand.kind, address, none))
}

/// Whether it reads, and whether it writes memory; `None` if it has no memory operand.
fn direction(definition: &Insn) -> Option<(bool, bool)> {
    let name = definition.mnemonic;
    if is_memory_copy(definition) {
        return Some((name.starts_with("cpy"), true));
    }
    let is_atomic =
        matches!(definition.class, InsnClass::LSE_ATOMIC | InsnClass::LSE128_ATOMIC | InsnClass::THE);
    match name {
        _ if name.starts_with("prf") || name.starts_with("rprf") => Some((false, false)),
        "ld64b" => Some((true, false)),
        _ if name.starts_with("st64b") => Some((false, true)),
        _ if is_atomic => Some((true, true)),
        _ if name.starts_with("ld") => Some((true, false)),
        _ if name.starts_with("st") => Some((false, true)),
        _ => None,
    }
}

/// Whether it copies or sets memory of any size (`cpyp`, `setm`), and can be interrupted before it is done.
pub(super) fn is_memory_copy(definition: &Insn) -> bool {
    matches!(
        definition.feature_set,
        InsnFeatureSet::MOPS | InsnFeatureSet::MOPS_MEMTAG | InsnFeatureSet::MOPS_GO
    )
}

fn of_operand(word: Word, definition: &Insn, kind: Kind, address: u64, none: Access) -> Option<Access> {
    let by = |displacement: i64, write_back: WriteBack| {
        // After the access, or before it.
        let is_after = write_back != WriteBack::None && is_post_indexed(word, definition);
        Some(Access { displacement: if is_after { 0 } else { displacement }, write_back, ..none })
    };
    match kind {
        Kind::ADDR_SIMPLE | Kind::SIMD_ADDR_SIMPLE | Kind::RCPC3_ADDR_OFFSET => Some(none),
        Kind::ADDR_UIMM12 => by(i64::from(word.bits(10, 12)) << log_size(word), WriteBack::None),
        Kind::ADDR_SIMM9 | Kind::ADDR_OFFSET => {
            let offset = word.signed(12, 9);
            let changes = definition.class == InsnClass::LDST_IMM9;
            by(offset, if changes { WriteBack::By(offset) } else { WriteBack::None })
        }
        Kind::ADDR_SIMM13 => {
            let offset = word.signed(12, 9) << 4;
            let changes = definition.class == InsnClass::LDST_IMM9;
            by(offset, if changes { WriteBack::By(offset) } else { WriteBack::None })
        }
        Kind::ADDR_SIMM7 | Kind::ADDR_SIMM11 => {
            let scale = if kind == Kind::ADDR_SIMM11 { 16 } else { (none.bytes / 2).cast_signed() };
            let offset = word.signed(15, 7) * scale;
            by(offset, if word.bit(23) { WriteBack::By(offset) } else { WriteBack::None })
        }
        Kind::ADDR_SIMM10 => {
            let high = if word.bit(22) { -512 } else { 0 };
            let offset = (high + i64::from(word.bits(12, 9))) * 8;
            by(offset, if word.bit(11) { WriteBack::By(offset) } else { WriteBack::None })
        }
        Kind::ADDR_REGOFF => {
            let scale = if word.bit(12) { 1 << log_size(word) } else { 1 };
            Some(Access { index: registers::unless_zero(word.rm()), scale, ..none })
        }
        Kind::ADDR_PCREL19 => {
            let fixed = Some(address.wrapping_add_signed(word.signed(5, 19) * 4));
            Some(Access { base: None, fixed, ..none })
        }
        Kind::SIMD_ADDR_POST if word.rm() == ZERO => {
            Some(Access { write_back: WriteBack::By(none.bytes.cast_signed()), ..none })
        }
        Kind::SIMD_ADDR_POST
        | Kind::RCPC3_ADDR_OPT_POSTIND
        | Kind::RCPC3_ADDR_OPT_PREIND_WB
        | Kind::RCPC3_ADDR_POSTIND
        | Kind::RCPC3_ADDR_PREIND_WB => Some(Access { write_back: WriteBack::Other, ..none }),
        Kind::MOPS_ADDR_Rd => Some(Access { base: Some(word.rd()), write_back: WriteBack::Other, ..none }),
        _ => scalable(word, kind, none),
    }
}

/// Returns the access of a scalable vector's load or store. Displacements in units of the vector's size are left as they are.
fn scalable(word: Word, kind: Kind, none: Access) -> Option<Access> {
    let name: &'static str = kind.into();
    let vector = |number: u8| Some(registers::vector(number));
    let form = name.strip_prefix("SVE_ADDR_").or_else(|| name.strip_prefix("SME_ADDR_"))?;
    Some(match form {
        _ if form.starts_with("RI_") => Access { displacement: word.signed(16, 4), ..none },
        _ if form.starts_with("RR") || form.starts_with("RX") || form.starts_with("RM") => {
            let scale =
                form.split_once("LSL").and_then(|(_, by)| by.parse::<u32>().ok()).map_or(1, |by| 1 << by);
            Access { index: registers::unless_zero(word.rm()), scale, ..none }
        }
        _ if form.starts_with("RZ") => Access { index: vector(word.rm()), is_scattered: true, ..none },
        // The addresses are in a vector.
        _ => Access { base: None, index: vector(word.rn()), is_scattered: true, ..none },
    })
}

fn is_post_indexed(word: Word, definition: &Insn) -> bool {
    match definition.class {
        InsnClass::LDST_IMM9 => !word.bit(11),
        InsnClass::LDSTPAIR_INDEXED => !word.bit(24),
        _ => false,
    }
}

/// Binary logarithm of the size of a load's or a store's single register.
fn log_size(word: Word) -> u32 {
    let size = word.bits(30, 2);
    if word.is_vector() { word.bits(23, 1) << 2 | size } else { size }
}

/// Returns the bytes accessed; 0 if unknown.
fn bytes(word: Word, definition: &Insn) -> u64 {
    let name = definition.mnemonic;
    match definition.class {
        InsnClass::LDST_POS
        | InsnClass::LDST_REGOFF
        | InsnClass::LDST_UNSCALED
        | InsnClass::LDST_IMM9
        | InsnClass::LDST_UNPRIV => match name {
            "stg" | "stzg" | "ldg" => 16,
            "st2g" | "stz2g" => 32,
            _ => 1 << log_size(word),
        },
        InsnClass::LDST_IMM10 => 8,
        InsnClass::LDSTPAIR_OFF | InsnClass::LDSTPAIR_INDEXED if name == "stgp" => 16,
        InsnClass::LDSTPAIR_OFF | InsnClass::LDSTPAIR_INDEXED | InsnClass::LDSTNAPAIR_OFFS => {
            2 * of_pair(word)
        }
        InsnClass::LOADLIT => match word.bits(30, 2) {
            opc if word.is_vector() => 4 << opc,
            1 => 8,
            _ => 4,
        },
        InsnClass::LDSTEXCL if name.ends_with("xp") => 8 << word.bits(30, 1),
        InsnClass::LSE_ATOMIC if name.starts_with("casp") => 8 << word.bits(30, 1),
        InsnClass::LSE_ATOMIC if name.contains("64b") => 64,
        InsnClass::LSE128_ATOMIC => 16,
        InsnClass::LDSTEXCL | InsnClass::LSE_ATOMIC | InsnClass::RCPC3 => 1 << word.bits(30, 2),
        InsnClass::ASISDLSE | InsnClass::ASISDLSEP => u64::from(structures(word)) * (8 << word.bits(30, 1)),
        InsnClass::ASISDLSO | InsnClass::ASISDLSOP => u64::from(lanes(word)) << log_lane(word),
        _ => 0,
    }
}

/// Size of each register of a pair.
fn of_pair(word: Word) -> u64 {
    let opc = word.bits(30, 2);
    match opc {
        _ if word.is_vector() => 4 << opc,
        2 => 8,
        3 => 0,
        _ => 4,
    }
}

/// Registers of a load or a store of multiple structures (DDI 0487, C4.1.94.1).
pub(super) fn structures(word: Word) -> u32 {
    match word.bits(12, 4) {
        0b0000 | 0b0010 => 4,
        0b0100 | 0b0110 => 3,
        0b1000 | 0b1010 => 2,
        _ => 1,
    }
}

/// Registers of a load or a store of a single structure.
pub(super) fn lanes(word: Word) -> u32 {
    (word.bits(13, 1) << 1 | word.bits(21, 1)) + 1
}

/// Binary logarithm of the size of its elements.
fn log_lane(word: Word) -> u32 {
    match word.bits(14, 2) {
        2 if word.bit(10) => 3,
        3 => word.bits(10, 2),
        log => log,
    }
}

//! Inputs and outputs of instructions.
//!
//! An operand is a result if it is the first one, unless the instruction stores, compares or branches; all others are inputs. What else an
//! instruction reads of its result's old value follows from its name.

use disarm64::{Insn, InsnOperand};
use disarm64_defn::{InsnClass, InsnOperandClass, InsnOperandKind as Kind};

use super::access::{self, WriteBack};
use super::instruction::MachineInstruction;
use super::registers::{general, number, predicate, unless_zero, vector};
use super::word::Word;
use super::{accumulate, flow, registers};
use crate::annotate::InstructionKind;
use crate::isa::model::{Operands, Register};

/// Registers that a call may change: x0 to x18, the link register, v0 to v7 and v16 to v31 (Procedure Call Standard for the Arm 64-bit
/// Architecture, 6.1). Of v8 to v15 the lower halves are kept.
fn clobbered() -> impl Iterator<Item = Register> {
    (0..=18).map(general).chain([registers::LINK]).chain((0..8).chain(16..32).map(vector))
}

/// Returns the operands of an instruction, with what a called function or the kernel may change.
pub(crate) fn operands(one: &MachineInstruction) -> Operands {
    let mut operands = of_encoding(one);
    let kind = one.definition.and_then(|definition| flow::kind(one.word, definition));
    match kind {
        Some(InstructionKind::Call | InstructionKind::IndirectCall) => operands.writes.extend(clobbered()),
        // The result of a system call.
        Some(InstructionKind::SystemCall) => operands.writes.push(general(0)),
        _ => {}
    }
    operands
}

/// Returns the operands as the encoding has them.
pub(super) fn of_encoding(one: &MachineInstruction) -> Operands {
    let Some(definition) = one.definition else { return Operands::default() };
    let mut operands = Operands {
        reads_flags: reads_flags(one.word, definition),
        sets_flags: sets_flags(definition),
        ..Operands::default()
    };
    let is_copy = access::is_memory_copy(definition);
    for (position, operand) in definition.operands.iter().enumerate() {
        let role = if is_copy { Role::ReadWrite } else { role(one, definition, position, operand) };
        for register in registers_of(one.word, definition, position, operand) {
            operands.reads.extend(role.reads().then_some(register));
            operands.writes.extend(role.writes().then_some(register));
        }
    }
    if definition.class == InsnClass::BRANCH_REG && !matches!(definition.mnemonic, "eret" | "drps") {
        add_once(&mut operands.reads, general(one.word.rn()));
    }
    if matches!(definition.mnemonic, "bl") || definition.mnemonic.starts_with("blr") {
        operands.writes.push(registers::LINK);
    }
    add_access(one, &mut operands);
    operands
}

fn add_once(list: &mut Vec<Register>, register: Register) {
    if !list.contains(&register) {
        list.push(register);
    }
}

fn add_access(one: &MachineInstruction, operands: &mut Operands) {
    let Some(access) = one.access() else { return };
    (operands.loads, operands.stores) = (access.loads, access.stores);
    let base = access.base.map(general);
    operands.address = base.into_iter().chain(access.index).collect();
    for register in operands.address.clone() {
        add_once(&mut operands.reads, register);
    }
    if access.write_back != WriteBack::None {
        operands.advances = base;
        operands.writes.extend(base);
        // The amount is a register.
        let amount = unless_zero(one.word.rm()).filter(|_| access.write_back == WriteBack::Other);
        let is_structure =
            one.definition.is_some_and(|it| matches!(it.class, InsnClass::ASISDLSEP | InsnClass::ASISDLSOP));
        operands.reads.extend(amount.filter(|_| is_structure));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Read,
    Write,
    ReadWrite,
}

impl Role {
    fn reads(self) -> bool {
        self != Role::Write
    }

    fn writes(self) -> bool {
        self != Role::Read
    }
}

fn role(one: &MachineInstruction, definition: &Insn, position: usize, operand: &InsnOperand) -> Role {
    let name = definition.mnemonic;
    let is_exclusive_store =
        definition.class == InsnClass::LDSTEXCL && name.starts_with("st") && name.contains('x');
    let access = one.access();
    match definition.class {
        InsnClass::LSE_ATOMIC | InsnClass::LSE128_ATOMIC | InsnClass::THE => {
            return of_atomic(name, position, definition);
        }
        // The status comes first, the data after it.
        _ if is_exclusive_store => return if position == 0 { Role::Write } else { Role::Read },
        // Load and store multiple and single lanes: the whole list is data.
        _ if access.is_some_and(|access| access.loads) => {
            let is_lane = operand.kind == Kind::LEt;
            let is_data = position < data_operands(definition);
            return match (is_data, is_lane) {
                (true, true) => Role::ReadWrite,
                (true, false) => Role::Write,
                (false, _) => Role::Read,
            };
        }
        _ if access.is_some() => return Role::Read,
        _ => {}
    }
    if position > 0 && !(position == 1 && name == "mrrs") || has_no_result(one.word, definition) {
        return Role::Read;
    }
    if accumulate::keeps_result(definition) { Role::ReadWrite } else { Role::Write }
}

/// Operands before the address: the data of a load.
fn data_operands(definition: &Insn) -> usize {
    let is_data = |operand: &&InsnOperand| {
        operand.class != InsnOperandClass::ADDRESS && operand.class != InsnOperandClass::PRED_REG
    };
    definition.operands.iter().take_while(is_data).count()
}

/// `swp`, `ldadd`: read the first and write the second register. `cas`: compares the first with memory, which is loaded into it.
fn of_atomic(name: &str, position: usize, definition: &Insn) -> Role {
    let is_pair = definition.operands.len() >= 4;
    let first = position < if is_pair { 2 } else { 1 };
    if name.contains("cas") {
        return if first { Role::ReadWrite } else { Role::Read };
    }
    // Of the atomic operations on pairs both registers are read and written.
    if matches!(definition.class, InsnClass::LSE128_ATOMIC) && is_pair
        || definition.operands.len() == 3 && name.ends_with('p')
    {
        return Role::ReadWrite;
    }
    match name {
        "ld64b" => Role::Write,
        _ if name.starts_with("st64b") => {
            if first && definition.operands.len() == 3 {
                Role::Write
            } else {
                Role::Read
            }
        }
        _ if first => Role::Read,
        _ => Role::Write,
    }
}

/// Whether all operands are inputs.
fn has_no_result(word: Word, definition: &Insn) -> bool {
    let name = definition.mnemonic;
    match definition.class {
        InsnClass::CONDCMP_IMM
        | InsnClass::CONDCMP_REG
        | InsnClass::FLOATCMP
        | InsnClass::FLOATCCMP
        | InsnClass::COMPBRANCH
        | InsnClass::TESTBRANCH
        | InsnClass::BRANCH_REG => true,
        InsnClass::IC_SYSTEM => !matches!(name, "mrs" | "mrrs" | "sysl"),
        // The register may be a comparison's zero register.
        InsnClass::ADDSUB_IMM | InsnClass::ADDSUB_EXT => {
            name.ends_with('s') && word.rd() == super::word::ZERO
        }
        _ => matches!(name, "wrffr" | "ptest" | "ctermeq" | "ctermne" | "tcancel"),
    }
}

/// Returns the registers of an operand, those of an address excepted.
fn registers_of(word: Word, definition: &Insn, position: usize, operand: &InsnOperand) -> Vec<Register> {
    let of_list = |first: u8, count: u32| (0..count as u8).map(|at| vector(first.wrapping_add(at))).collect();
    let one = |register: Option<Register>| register.into_iter().collect();
    let field = number(word, operand);
    match operand.kind {
        Kind::Rm_EXT | Kind::Rm_SFT | Kind::Rm_LSL => one(unless_zero(word.rm())),
        Kind::Rd_SP | Kind::Rn_SP | Kind::Rm_SP | Kind::Rt_SP | Kind::SVE_Rn_SP => one(field.map(general)),
        Kind::PAIRREG | Kind::PAIRREG_OR_XZR => {
            let before = position.checked_sub(1).and_then(|at| number(word, &definition.operands[at]));
            one(before.map(|number| number.wrapping_add(1)).and_then(unless_zero))
        }
        Kind::MOPS_ADDR_Rd => one(unless_zero(word.rd())),
        Kind::MOPS_ADDR_Rs => one(unless_zero(word.rm())),
        Kind::MOPS_WB_Rn => one(unless_zero(word.rn())),
        Kind::LVt => of_list(word.rd(), access::structures(word)),
        Kind::LVt_AL | Kind::LEt => of_list(word.rd(), access::lanes(word)),
        Kind::LVn => of_list(word.rn(), word.bits(13, 2) + 1),
        Kind::Em | Kind::Em16 if is_lower_half(word, definition) => one(Some(vector(word.bits(16, 4) as u8))),
        Kind::Em | Kind::Em16 => one(Some(vector(word.rm()))),
        Kind::SVE_ZtxN | Kind::SVE_ZnxN => {
            let count = definition.mnemonic.bytes().find(u8::is_ascii_digit).map_or(1, |digit| digit - b'0');
            of_list(field.unwrap_or(0), u32::from(count.clamp(1, 4)))
        }
        _ => match operand.class {
            InsnOperandClass::INT_REG => one(field.and_then(unless_zero)),
            InsnOperandClass::PRED_REG => one(field.map(predicate)),
            InsnOperandClass::FP_REG
            | InsnOperandClass::SISD_REG
            | InsnOperandClass::SIMD_REG
            | InsnOperandClass::SIMD_ELEMENT
            | InsnOperandClass::SVE_REG => one(field.map(vector)),
            _ => Vec::new(),
        },
    }
}

/// Whether an element is of 16 bits, and so in one of the first sixteen registers.
fn is_lower_half(word: Word, definition: &Insn) -> bool {
    let name = definition.mnemonic;
    let is_product = ["fmlal", "fmlsl", "bfmlal"].iter().any(|stem| name.starts_with(stem));
    let is_pair = name == "fcmla" || name.contains("dot") || name.starts_with("sm3");
    is_product || word.bits(22, 2) < 2 && !is_pair
}

fn reads_flags(word: Word, definition: &Insn) -> bool {
    match definition.class {
        InsnClass::CONDSEL
        | InsnClass::CONDCMP_IMM
        | InsnClass::CONDCMP_REG
        | InsnClass::FLOATCCMP
        | InsnClass::FLOATSEL
        | InsnClass::ADDSUB_CARRY => true,
        InsnClass::CONDBRANCH => flow::kind(word, definition) == Some(InstructionKind::Branch),
        _ => matches!(definition.mnemonic, "cfinv" | "axflag" | "xaflag" | "rmif"),
    }
}

fn sets_flags(definition: &Insn) -> bool {
    let name = definition.mnemonic;
    match definition.class {
        InsnClass::CONDCMP_IMM | InsnClass::CONDCMP_REG | InsnClass::FLOATCMP | InsnClass::FLOATCCMP => true,
        InsnClass::ADDSUB_IMM | InsnClass::ADDSUB_EXT | InsnClass::ADDSUB_SHIFT | InsnClass::ADDSUB_CARRY => {
            name.ends_with('s')
        }
        InsnClass::LOG_IMM | InsnClass::LOG_SHIFT => matches!(name, "ands" | "bics"),
        // SVE: comparisons, loops by predicates, operations that end in `s`.
        _ if name.starts_with("while") || name.starts_with("cmp") => true,
        _ => matches!(
            name,
            "setf8"
                | "fjcvtzs"
                | "setf16"
                | "cfinv"
                | "axflag"
                | "xaflag"
                | "rmif"
                | "ptest"
                | "ptrues"
                | "ands"
                | "bics"
                | "orrs"
                | "orns"
                | "eors"
                | "nands"
                | "nors"
                | "brkas"
                | "brkbs"
                | "brkns"
                | "brkpas"
                | "brkpbs"
                | "rdffrs"
                | "pfirst"
                | "pnext"
                | "match"
                | "nmatch"
                | "ctermeq"
                | "ctermne"
                | "subps"
                | "chkfeat"
        ),
    }
}

//! Properties of an instruction that follow from those before: fixed addresses that two instructions compute, the thread pointer, and whether an
//! exclusive store stores a value computed from the exclusive load.
//!
//! Values are followed along straight code only, from the last place that a direct branch leads to.

use std::collections::BTreeSet;

use disarm64_defn::InsnClass;

use super::instruction::{Known, MachineInstruction};
use super::operands::operands;
use super::registers::{general, unless_zero};
use super::word::ZERO;
use super::{flow, operation};
use crate::annotate::InstructionKind;
use crate::isa::model::Register;

/// Number of TPIDR_EL0, the thread pointer, in `mrs`: op0 3, op1 3, CRn 13, CRm 0, op2 2 (DDI 0487, D24.2).
const THREAD_POINTER: u32 = 0b101_1110_1000_0010;

/// The value of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Unknown,
    Address(u64),
    /// The thread pointer, with anything added.
    Thread,
}

/// Fills in what is known of a function's instructions.
pub(super) fn find(decoded: &mut [MachineInstruction]) {
    let target = |one: &MachineInstruction| flow::target(one.word, one.definition?, one.address);
    let targets: BTreeSet<u64> = decoded.iter().filter_map(target).collect();
    let mut state = State::new();
    for one in decoded {
        if targets.contains(&one.address) {
            state = State::new();
        }
        one.known = state.of(one);
        state.step(one);
    }
}

/// Values before an instruction.
struct State {
    /// By register number.
    values: [Value; 31],
    /// Registers with values computed from an exclusive load, by bit.
    computed: u32,
    /// The register that the last exclusive load wrote.
    loaded: Option<u8>,
}

impl State {
    fn new() -> Self {
        Self { values: [Value::Unknown; 31], computed: 0, loaded: None }
    }

    fn value(&self, register: u8) -> Value {
        self.values.get(usize::from(register)).copied().unwrap_or(Value::Unknown)
    }

    /// Returns what is known of an instruction.
    fn of(&self, one: &MachineInstruction) -> Known {
        let mut known = Known::default();
        let Some(definition) = one.definition else { return known };
        let (word, name) = (one.word, definition.mnemonic);
        if definition.class == InsnClass::ADDSUB_IMM && name == "add" || name == "adr" {
            known.address = match self.result(one) {
                Value::Address(address) => Some(address),
                _ => None,
            };
        }
        if let Some(access) = one.access() {
            let base = access.base.map_or(Value::Unknown, |base| self.value(base));
            if let (Value::Address(address), None) = (base, access.index) {
                known.address = Some(address.wrapping_add_signed(access.displacement));
            }
            let index = match access.index {
                Some(Register::General(index)) => self.value(index),
                _ => Value::Unknown,
            };
            known.is_thread_local = base == Value::Thread || index == Value::Thread;
        }
        if definition.class == InsnClass::LDSTEXCL && name.starts_with("st") {
            known.is_computed = self.is_computed(general(word.rd()));
        }
        known
    }

    fn is_computed(&self, register: Register) -> bool {
        matches!(register, Register::General(number) if number < 31 && self.computed >> number & 1 != 0)
    }

    /// Returns the value that an instruction puts into its first register.
    fn result(&self, one: &MachineInstruction) -> Value {
        let Some(definition) = one.definition else { return Value::Unknown };
        let word = one.word;
        let offset = || word.signed(5, 19) * 4 + i64::from(word.bits(29, 2));
        match (definition.class, definition.mnemonic) {
            (InsnClass::PCRELADDR, "adrp") => {
                Value::Address((one.address & !0xfff).wrapping_add_signed(offset() << 12))
            }
            (InsnClass::PCRELADDR, "adr") => Value::Address(one.address.wrapping_add_signed(offset())),
            (InsnClass::ADDSUB_IMM, "add") if word.is_64() && word.rn() != ZERO => {
                match self.value(word.rn()) {
                    Value::Address(address) => {
                        Value::Address(address.wrapping_add_signed(operation::immediate(word)))
                    }
                    other => other,
                }
            }
            (InsnClass::ADDSUB_SHIFT, "add") if word.is_64() => {
                let is_thread =
                    [word.rn(), word.rm()].into_iter().any(|one| self.value(one) == Value::Thread);
                if is_thread { Value::Thread } else { Value::Unknown }
            }
            (InsnClass::IC_SYSTEM, "mrs") if word.bits(5, 15) == THREAD_POINTER => Value::Thread,
            _ => match operation::moved(word, definition) {
                Some((from, _)) if word.is_64() => self.value(from),
                _ => Value::Unknown,
            },
        }
    }

    /// Goes on behind an instruction.
    fn step(&mut self, one: &MachineInstruction) {
        let Some(definition) = one.definition else {
            *self = Self::new();
            return;
        };
        use InstructionKind::{IndirectJump, Jump, Return};
        if matches!(flow::kind(one.word, definition), Some(Jump | IndirectJump | Return)) {
            *self = Self::new();
            return;
        }
        let result = self.result(one);
        let used = operands(one);
        let is_derived = used.reads.iter().any(|&register| self.is_computed(register))
            || used.reads.iter().any(|&register| self.loaded.map(general) == Some(register));
        for register in used.writes.iter().copied() {
            let Register::General(number @ 0..31) = register else { continue };
            self.values[usize::from(number)] = Value::Unknown;
            self.computed &= !(1 << number);
            if self.loaded == Some(number) {
                self.loaded = None;
            }
            if is_derived && definition.class != InsnClass::LDSTEXCL {
                self.computed |= 1 << number;
            }
        }
        if result != Value::Unknown && one.access().is_none() {
            let number = usize::from(one.word.rd());
            if let Some(value) = self.values.get_mut(number).filter(|_| unless_zero(one.word.rd()).is_some())
            {
                *value = result;
            }
        }
        if definition.class == InsnClass::LDSTEXCL
            && definition.mnemonic.starts_with("ld")
            && definition.mnemonic.contains('x')
        {
            self.loaded = unless_zero(one.word.rd()).map(|_| one.word.rd());
            self.computed = 0;
        }
    }
}

//! Register values some instructions after a sample: moves and integer arithmetic between registers are emulated, any other write makes the
//! register unknown.
//!
//! Invariant: a register that is known has the value that the processor would have put there. Memory is not read, flags are not kept.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use plumb_profile::REGISTERS;

use super::{MachineInstruction, whole};
use crate::isa::model::{Operands, Register as Whole};

/// Register values by DWARF number; `None` is unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values([Option<u64>; REGISTERS]);

impl Values {
    pub fn new(values: &[u64; REGISTERS]) -> Self {
        Self(values.map(Some))
    }

    /// Returns the value of a register or a part of it. [`Register::None`] reads as 0, as in addresses.
    pub fn get(&self, register: Register) -> Option<u64> {
        if register == Register::None {
            return Some(0);
        }
        let whole = self.0[number_of(register)?]?;
        let is_high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
        let shifted = if is_high { whole >> 8 } else { whole };
        Some(truncated(shifted, register.size()))
    }

    /// Writes a register: a 32-bit write clears the upper half, a narrower one keeps the rest.
    fn set(&mut self, register: Register, value: Option<u64>) {
        let Some(number) = number_of(register) else { return };
        let is_whole = register.size() >= 4;
        self.0[number] = value.filter(|_| is_whole).map(|value| truncated(value, register.size()));
    }

    /// Emulates one instruction.
    pub fn step(&mut self, instruction: &MachineInstruction, operands: &Operands) {
        let instruction = &instruction.0;
        let result = self.result(instruction);
        // Exchanges, wide multiplications and string counters write more than one register.
        for register in &operands.writes {
            if let Whole::General(number) = register {
                self.0[usize::from(*number)] = None;
            }
        }
        if instruction.op_count() > 0
            && instruction.op0_kind() == OpKind::Register
            && operands.writes.len() == 1
        {
            self.set(instruction.op0_register(), result);
        }
    }

    /// Returns the new value of the first operand, if it is known.
    fn result(&self, instruction: &Instruction) -> Option<u64> {
        if instruction.op_count() == 0 || instruction.op0_kind() != OpKind::Register {
            return None;
        }
        let target = instruction.op0_register();
        let bits = 8 * target.size() as u32;
        let own = || self.get(target);
        let other = || self.operand(instruction, 1);
        let count = || Some(other()? as u32 & if bits == 64 { 63 } else { 31 });
        Some(match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx => other()?,
            Mnemonic::Movsx | Mnemonic::Movsxd => extended(other()?, instruction.op1_register().size()),
            Mnemonic::Cdqe => extended(self.get(Register::EAX)?, 4),
            Mnemonic::Lea => self.address_of(instruction)?,
            Mnemonic::Add => own()?.wrapping_add(other()?),
            Mnemonic::Sub if same(instruction) => 0,
            Mnemonic::Sub => own()?.wrapping_sub(other()?),
            Mnemonic::Xor if same(instruction) => 0,
            Mnemonic::Xor => own()? ^ other()?,
            Mnemonic::And => own()? & other()?,
            Mnemonic::Or => own()? | other()?,
            Mnemonic::Inc => own()?.wrapping_add(1),
            Mnemonic::Dec => own()?.wrapping_sub(1),
            Mnemonic::Neg => own()?.wrapping_neg(),
            Mnemonic::Not => !own()?,
            Mnemonic::Shl | Mnemonic::Sal => own()? << count()?,
            Mnemonic::Shr => own()? >> count()?,
            Mnemonic::Sar => (extended(own()?, target.size()).cast_signed() >> count()?).cast_unsigned(),
            Mnemonic::Rol if bits == 64 => own()?.rotate_left(count()?),
            Mnemonic::Ror if bits == 64 => own()?.rotate_right(count()?),
            Mnemonic::Imul => match instruction.op_count() {
                2 => own()?.wrapping_mul(other()?),
                3 => other()?.wrapping_mul(self.operand(instruction, 2)?),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Returns the value of a register or immediate operand.
    fn operand(&self, instruction: &Instruction, number: u32) -> Option<u64> {
        if number >= instruction.op_count() {
            return None;
        }
        match instruction.op_kind(number) {
            OpKind::Register => self.get(instruction.op_register(number)),
            OpKind::Memory
            | OpKind::NearBranch16
            | OpKind::NearBranch32
            | OpKind::NearBranch64
            | OpKind::FarBranch16
            | OpKind::FarBranch32 => None,
            _ => instruction.try_immediate(number).ok(),
        }
    }

    /// Returns the address of a memory operand.
    pub fn address(&self, instruction: &MachineInstruction) -> Option<u64> {
        self.address_of(&instruction.0)
    }

    fn address_of(&self, instruction: &Instruction) -> Option<u64> {
        if instruction.is_ip_rel_memory_operand() {
            // In addresses of the file: the same for all samples of a file.
            return Some(instruction.ip_rel_memory_address());
        }
        let base = self.get(instruction.memory_base())?;
        let index = self.get(instruction.memory_index())?;
        let scaled = index.wrapping_mul(instruction.memory_index_scale().into());
        Some(base.wrapping_add(scaled).wrapping_add(instruction.memory_displacement64()))
    }
}

fn same(instruction: &Instruction) -> bool {
    instruction.op1_kind() == OpKind::Register && instruction.op0_register() == instruction.op1_register()
}

fn truncated(value: u64, bytes: usize) -> u64 {
    match bytes {
        1 => value & 0xff,
        2 => value & 0xffff,
        4 => value & 0xffff_ffff,
        _ => value,
    }
}

/// Sign-extends the lowest `bytes` bytes.
fn extended(value: u64, bytes: usize) -> u64 {
    match bytes {
        1 => i64::from(value as u8 as i8).cast_unsigned(),
        2 => i64::from(value as u16 as i16).cast_unsigned(),
        4 => i64::from(value as u32 as i32).cast_unsigned(),
        _ => value,
    }
}

/// DWARF number of a general register.
fn number_of(register: Register) -> Option<usize> {
    match whole(register)? {
        Whole::General(number) => Some(number.into()),
        Whole::Other(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use plumb_profile::Address;

    use super::*;
    use crate::isa::x86_64::{OperandReader, decode};

    /// Runs the code and returns rax, rdx, rcx, rbx.
    fn run(code: &[u8], values: [u64; REGISTERS]) -> [Option<u64>; 4] {
        let mut values = Values::new(&values);
        let code = decode(Address(0), code, 64);
        let mut reader = OperandReader::new();
        code.iter().for_each(|one| values.step(one, &reader.of(one)));
        [values.0[0], values.0[1], values.0[2], values.0[3]]
    }

    #[test]
    fn arithmetic_is_the_processors() {
        let mut values = [0; REGISTERS];
        (values[0], values[1], values[2]) = (0xffff_ffff_ffff_fffe, 7, 3);
        // imul $0x19660d,%edx,%edx; add $0x3c6ef35f,%edx; mov %edx,%eax; shr $0xa,%eax; shl $6,%rax
        let code = [
            0x69, 0xd2, 0x0d, 0x66, 0x19, 0x00, 0x81, 0xc2, 0x5f, 0xf3, 0x6e, 0x3c, 0x89, 0xd0, 0xc1, 0xe8,
            0x0a, 0x48, 0xc1, 0xe0, 0x06,
        ];
        let seed = 7_u32.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        let [rax, rdx, rcx, _] = run(&code, values);
        assert_eq!((rax, rdx, rcx), (Some(u64::from(seed >> 10) << 6), Some(seed.into()), Some(3)));
        // sar %rax; movslq %ecx,%rbx; neg %ebx
        let [rax, _, _, rbx] = run(&[0x48, 0xd1, 0xf8, 0x48, 0x63, 0xd9, 0xf7, 0xdb], values);
        assert_eq!((rax, rbx), (Some(u64::MAX), Some(0xffff_fffd)));
    }

    #[test]
    fn what_is_loaded_is_unknown() {
        let values = [1; REGISTERS];
        // mov (%rcx),%rax; mov $5,%dl; xor %ebx,%ebx
        let [rax, rdx, rcx, rbx] = run(&[0x48, 0x8b, 0x01, 0xb2, 0x05, 0x31, 0xdb], values);
        assert_eq!((rax, rdx, rcx, rbx), (None, None, Some(1), Some(0)));
        // xchg %rax,%rcx; mul %rbx
        assert_eq!(run(&[0x48, 0x91, 0x48, 0xf7, 0xe3], values)[..3], [None, None, None]);
    }
}

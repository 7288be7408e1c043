//! Register values some instructions after a sample: moves and integer arithmetic between registers are emulated, any other write makes the
//! register unknown.
//!
//! Invariant: a register that is known has the value that the processor would have put there. Memory is not read, flags are not kept.

use disarm64::Insn;
use disarm64_defn::InsnClass;
use plumb_profile::REGISTERS;

use super::access::WriteBack;
use super::instruction::MachineInstruction;
use super::operation::immediate;
use super::word::{Word, ZERO};
use crate::isa::model::{Operands, Register};

/// Bits of an address that select memory; the others hold tags, or sign a code address.
const ADDRESS: u64 = (1 << 56) - 1;

/// Values of x0 to x30 and the stack pointer, by DWARF number; `None` is unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values([Option<u64>; REGISTERS]);

impl Values {
    pub fn new(values: &[u64; REGISTERS]) -> Self {
        Self(values.map(Some))
    }

    /// Returns the value of a register by DWARF number.
    #[cfg(test)]
    pub(super) fn known(&self, number: usize) -> Option<u64> {
        self.0[number]
    }

    /// Returns the value of a register of which 31 is the stack pointer.
    fn or_stack(&self, number: u8) -> Option<u64> {
        self.0[usize::from(number & 31)]
    }

    /// Returns the value of a register of which 31 is zero.
    fn or_zero(&self, number: u8) -> Option<u64> {
        if number == ZERO { Some(0) } else { self.or_stack(number) }
    }

    /// Emulates one instruction.
    pub fn step(&mut self, one: &MachineInstruction, operands: &Operands) {
        let result = self.result(one);
        let advanced = self.advanced(one);
        for register in &operands.writes {
            if let Register::General(number @ 0..32) = register {
                self.0[usize::from(*number)] = None;
            }
        }
        for (number, value) in result.into_iter().chain(advanced) {
            self.0[usize::from(number & 31)] = Some(value);
        }
    }

    /// Returns the base register of an access and its value with write-back.
    fn advanced(&self, one: &MachineInstruction) -> Option<(u8, u64)> {
        let access = one.access()?;
        let (WriteBack::By(amount), Some(base)) = (access.write_back, access.base) else { return None };
        Some((base, self.or_stack(base)?.wrapping_add_signed(amount)))
    }

    /// Returns the register that an instruction computes and its new value, if it is known.
    fn result(&self, one: &MachineInstruction) -> Option<(u8, u64)> {
        let (word, definition) = (one.word, one.definition?);
        let may_be_stack = match definition.class {
            InsnClass::ADDSUB_IMM | InsnClass::ADDSUB_EXT => !definition.mnemonic.ends_with('s'),
            InsnClass::LOG_IMM => definition.mnemonic != "ands",
            _ => false,
        };
        if word.rd() == ZERO && !may_be_stack {
            return None;
        }
        let value = self.computed(one, definition)?;
        // Relative addresses have all bits, whatever the bit for the width is.
        let is_whole = word.is_64() || definition.class == InsnClass::PCRELADDR;
        Some((word.rd(), if is_whole { value } else { value & 0xffff_ffff }))
    }

    fn computed(&self, one: &MachineInstruction, definition: &Insn) -> Option<u64> {
        let (word, name) = (one.word, definition.mnemonic);
        let sum = |left: u64, right: u64| match name {
            "add" | "adds" => Some(left.wrapping_add(right)),
            "sub" | "subs" => Some(left.wrapping_sub(right)),
            _ => None,
        };
        match definition.class {
            InsnClass::ADDSUB_IMM => sum(self.or_stack(word.rn())?, immediate(word).cast_unsigned()),
            InsnClass::ADDSUB_SHIFT => sum(self.or_zero(word.rn())?, self.shifted(word)?),
            InsnClass::ADDSUB_EXT => {
                let right = extended(self.or_zero(word.rm())?, word.bits(13, 3)) << word.bits(10, 3);
                sum(self.or_stack(word.rn())?, right)
            }
            InsnClass::LOG_SHIFT => logical(name, self.or_zero(word.rn())?, self.shifted(word)?),
            InsnClass::LOG_IMM => logical(name, self.or_zero(word.rn())?, bit_mask(word)?),
            InsnClass::MOVEWIDE => self.wide(word, name),
            InsnClass::BITFIELD => bit_field(word, name, self.or_zero(word.rn())?),
            InsnClass::EXTRACT => {
                let (high, low) = (self.or_zero(word.rn())?, self.or_zero(word.rm())?);
                let both = u128::from(high) << width(word) | u128::from(low & mask(width(word)));
                Some((both >> word.bits(10, 6)) as u64)
            }
            InsnClass::DP_2SRC => two_sources(word, name, self.or_zero(word.rn())?, self.or_zero(word.rm())?),
            InsnClass::DP_3SRC => self.product(word, name),
            // In addresses of the file: the same for all samples of a file.
            InsnClass::PCRELADDR => {
                let offset = word.signed(5, 19) * 4 + i64::from(word.bits(29, 2));
                let (base, offset) =
                    if name == "adrp" { (one.address & !0xfff, offset << 12) } else { (one.address, offset) };
                Some(base.wrapping_add_signed(offset))
            }
            _ => None,
        }
    }

    /// Returns the last operand of an instruction with a shifted register.
    fn shifted(&self, word: Word) -> Option<u64> {
        let (value, by) = (self.or_zero(word.rm())?, word.bits(10, 6));
        Some(match word.bits(22, 2) {
            0 => value << by,
            1 => (value & mask(width(word))) >> by,
            2 => (signed(value, width(word)) >> by).cast_unsigned(),
            _ => rotated(value, by, width(word)),
        })
    }

    fn wide(&self, word: Word, name: &str) -> Option<u64> {
        let shift = 16 * word.bits(21, 2);
        let part = u64::from(word.bits(5, 16)) << shift;
        match name {
            "movz" => Some(part),
            "movn" => Some(!part),
            "movk" => Some(self.or_zero(word.rd())? & !(0xffff << shift) | part),
            _ => None,
        }
    }

    fn product(&self, word: Word, name: &str) -> Option<u64> {
        let (left, right) = (self.or_zero(word.rn())?, self.or_zero(word.rm())?);
        let added = self.or_zero(word.ra())?;
        let signed_half = |value: u64| signed(value, 32).cast_unsigned();
        let half = |value: u64| value & 0xffff_ffff;
        Some(match name {
            "madd" => added.wrapping_add(left.wrapping_mul(right)),
            "msub" => added.wrapping_sub(left.wrapping_mul(right)),
            "smaddl" => added.wrapping_add(signed_half(left).wrapping_mul(signed_half(right))),
            "smsubl" => added.wrapping_sub(signed_half(left).wrapping_mul(signed_half(right))),
            "umaddl" => added.wrapping_add(half(left).wrapping_mul(half(right))),
            "umsubl" => added.wrapping_sub(half(left).wrapping_mul(half(right))),
            "umulh" => ((u128::from(left) * u128::from(right)) >> 64) as u64,
            "smulh" => {
                let wide = |value: u64| i128::from(value.cast_signed());
                ((wide(left) * wide(right)) >> 64) as u64
            }
            _ => return None,
        })
    }

    /// Returns the address of a memory operand.
    pub fn address(&self, one: &MachineInstruction) -> Option<u64> {
        let access = one.access()?;
        if let Some(fixed) = access.fixed {
            return Some(fixed);
        }
        let index = match access.index {
            None => 0,
            Some(Register::General(number)) => self.index(one, number)?,
            Some(Register::Other(_)) => return None,
        };
        let base = self.or_stack(access.base?)?;
        let scaled = index.wrapping_mul(access.scale.into());
        Some(base.wrapping_add(scaled).wrapping_add_signed(access.displacement) & ADDRESS)
    }

    /// Returns the value of an index, extended as the instruction has it.
    fn index(&self, one: &MachineInstruction, number: u8) -> Option<u64> {
        let value = self.or_zero(number)?;
        let has_extension = one.definition?.class == InsnClass::LDST_REGOFF;
        Some(if has_extension { extended(value, one.word.bits(13, 3)) } else { value })
    }
}

/// Width of the registers in bits.
fn width(word: Word) -> u32 {
    if word.is_64() { 64 } else { 32 }
}

/// The lowest bits.
fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The lowest bits as a signed number.
fn signed(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits.clamp(1, 64);
    (value << unused).cast_signed() >> unused
}

fn rotated(value: u64, by: u32, width: u32) -> u64 {
    if width == 64 { value.rotate_right(by) } else { u64::from((value as u32).rotate_right(by)) }
}

/// Extends a register (`UXTB` to `SXTX`).
fn extended(value: u64, option: u32) -> u64 {
    let bits = 8 << (option & 3);
    if option & 4 == 0 { value & mask(bits) } else { signed(value, bits).cast_unsigned() }
}

fn logical(name: &str, left: u64, right: u64) -> Option<u64> {
    Some(match name {
        "and" | "ands" => left & right,
        "bic" | "bics" => left & !right,
        "orr" => left | right,
        "orn" => left | !right,
        "eor" => left ^ right,
        "eon" => left ^ !right,
        _ => return None,
    })
}

/// Decodes the immediate of a logical instruction (`DecodeBitMasks` in DDI 0487).
fn bit_mask(word: Word) -> Option<u64> {
    let (ones, rotation) = (word.bits(10, 6), word.bits(16, 6));
    let selector = word.bits(22, 1) << 6 | (!ones & 0x3f);
    let length = 31_u32.checked_sub(selector.leading_zeros()).filter(|&length| length > 0)?;
    let (size, levels) = (1 << length, (1 << length) - 1);
    let element = mask((ones & levels) + 1);
    let turn = rotation & levels;
    let element = (element >> turn | element << (size - turn).min(63)) & mask(size);
    let element = if turn == 0 { mask((ones & levels) + 1) } else { element };
    Some((0..64 / size).fold(0, |all, at| all | element << (at * size)))
}

/// Moves a field of a register (`sbfm`, `ubfm`).
fn bit_field(word: Word, name: &str, value: u64) -> Option<u64> {
    let (rotation, last) = (word.bits(16, 6), word.bits(10, 6));
    let (field, shift) =
        if last >= rotation { (value >> rotation, 0) } else { (value, width(word) - rotation) };
    let bits = if last >= rotation { last - rotation + 1 } else { last + 1 };
    match name {
        "ubfm" => Some((field & mask(bits)) << shift),
        "sbfm" => Some(signed(field, bits).cast_unsigned() << shift),
        _ => None,
    }
}

fn two_sources(word: Word, name: &str, left: u64, right: u64) -> Option<u64> {
    let width = width(word);
    let by = (right % u64::from(width)) as u32;
    let (left, right) = (left & mask(width), right & mask(width));
    Some(match name {
        "lslv" => left << by,
        "lsrv" => left >> by,
        "asrv" => (signed(left, width) >> by).cast_unsigned(),
        "rorv" => rotated(left, by, width),
        "udiv" => left.checked_div(right).unwrap_or(0),
        "sdiv" if right == 0 => 0,
        "sdiv" => signed(left, width).wrapping_div(signed(right, width)).cast_unsigned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use plumb_profile::Address;

    use super::*;
    use crate::isa::aarch64::{decode, operands};

    /// Runs the code and returns the values, and the address that each instruction accesses before it runs.
    fn run(code: &[u32], values: [u64; REGISTERS]) -> (Values, Vec<Option<u64>>) {
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut values = Values::new(&values);
        let step = |one: &MachineInstruction| {
            let address = values.address(one);
            values.step(one, &operands(one));
            address
        };
        let addresses = decode(Address(0x1000), &bytes).iter().map(step).collect();
        (values, addresses)
    }

    #[test]
    fn addresses_have_base_index_and_displacement() {
        let mut values = [0; REGISTERS];
        (values[1], values[2], values[31]) = (0xaa00_0000_0040_0000, 0xffff_ffff_0000_0003, 0x7ff0);
        // ldr x0, [x1, x2, lsl #3]; ldr x0, [x1, w2, uxtw #3]; ldrb w0, [x1, #5]; str x0, [sp, #8]
        let (_, addresses) = run(&[0xf862_7820, 0xf862_5820, 0x3940_1420, 0xf900_07e0], values);
        assert_eq!(addresses, [Some(0x00ff_fff8_0040_0018), Some(0x40_0018), Some(0x40_0005), Some(0x7ff8)]);
        values[2] = 0xffff_fffe;
        // ldr w0, [x1, w2, sxtw #2]; ldr x0, 0x1024
        let (_, addresses) = run(&[0xb862_d820, 0x5800_0100], values);
        assert_eq!(addresses, [Some(0x3f_fff8), Some(0x1024)]);
    }

    #[test]
    fn a_base_advances_and_what_is_loaded_is_unknown() {
        let mut values = [0; REGISTERS];
        (values[1], values[31]) = (0x5000, 0x8000);
        // ldr x0, [x1], #8; ldp x2, x3, [x1, #16]!; stp x29, x30, [sp, #-32]!; add x4, x0, #1
        let (after, addresses) = run(&[0xf840_8420, 0xa9c1_0c22, 0xa9be_7bfd, 0x9100_0404], values);
        assert_eq!(addresses, [Some(0x5000), Some(0x5018), Some(0x7fe0), None]);
        assert_eq!(
            [0, 1, 2, 3, 4, 31].map(|number| after.known(number)),
            [None, Some(0x5018), None, None, None, Some(0x7fe0)]
        );
    }
}

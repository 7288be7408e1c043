//! Compares the evaluator with gimli's on random expressions that use all operations.

use std::vec::Vec;

use gimli::{EvaluationResult, LittleEndian, Value};

use plumb_fixtures::random::Random;

use super::{Context, Fault, evaluate};
use crate::address::Avma;
use crate::memory::{Memory, ReadError};
use crate::x86_64::Registers;

/// Memory in which each byte is a function of its address, except for a part that cannot be read.
struct Pattern;

fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Memory for Pattern {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        if at.0 % 7 == 3 && at.0.is_multiple_of(8) {
            return Err(ReadError::Unreadable);
        }
        Ok(u64::from_le_bytes(core::array::from_fn(|i| byte(at.0.wrapping_add(i as u64)))))
    }
}

fn reference(text: &[u8], initial: u64, registers: &Registers) -> Option<u64> {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 5 };
    let expression = gimli::Expression(gimli::EndianSlice::new(text, LittleEndian));
    let mut evaluation = expression.evaluation(encoding);
    evaluation.set_initial_value(initial);
    evaluation.set_max_iterations(512);
    let mut state = evaluation.evaluate().ok()?;
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let mut value = [0; 8];
                for (i, out) in value.iter_mut().enumerate().take(size.into()) {
                    *out = byte(address.wrapping_add(i as u64));
                }
                evaluation.resume_with_memory(Value::Generic(u64::from_le_bytes(value))).ok()?
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                evaluation.resume_with_register(Value::Generic(registers.get(register.0)?)).ok()?
            }
            EvaluationResult::RequiresRelocatedAddress(address) => {
                evaluation.resume_with_relocated_address(address.wrapping_add(0x1000)).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.as_result() {
        [gimli::Piece { location: gimli::Location::Address { address }, size_in_bits: None, .. }] => {
            Some(*address)
        }
        _ => None,
    }
}

/// Appends a random operation with operands of the right size.
fn operation(random: &mut Random, text: &mut Vec<u8>) {
    let ops = [
        0x03, 0x06, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16,
        0x17, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
        0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f, 0x30, 0x33, 0x4f, 0x70, 0x77, 0x80, 0x92, 0x94, 0x96, 0xe0,
    ];
    let op = ops[random.below(ops.len())];
    text.push(op);
    let mut bytes = |count: usize| text.extend((0..count).map(|_| random.below(256) as u8));
    match op {
        0x03 | 0x0e | 0x0f => bytes(8),
        0x08 | 0x09 => bytes(1),
        0x0a | 0x0b => bytes(2),
        0x0c | 0x0d => bytes(4),
        0x15 => text.push(random.below(4) as u8),
        0x10 | 0x11 | 0x23 | 0x70 | 0x77 | 0x80 => text.push(random.below(128) as u8),
        // Jump only into the nops that follow: landing on an operand would not be a valid program.
        0x28 | 0x2f => text.extend([random.below(4) as u8, 0, 0x96, 0x96, 0x96]),
        0x92 => text.extend([random.below(20) as u8, random.below(128) as u8]),
        0x94 => text.push(1 + random.below(8) as u8),
        _ => {}
    }
}

#[test]
fn expressions_equal_gimli() {
    let mut random = Random(0x5eed);
    let mut registers = Registers::new(0x40_1000, 0x7ffe_0000_1230);
    for register in 0..14 {
        registers.set(register, u64::from(register) * 0x0101_0101_0101);
    }
    let (mut values, mut faults) = (0, 0);
    for _ in 0..200_000 {
        let mut text = Vec::new();
        for _ in 0..1 + random.below(6) {
            // Usually push an operand first.
            if random.below(3) > 0 {
                text.extend([0x30 + random.below(32) as u8]);
            }
            operation(&mut random, &mut text);
        }
        let initial = random.next() >> 16;
        let ours = evaluate(
            &text,
            Some(initial),
            &mut Context { registers: &registers, memory: &mut Pattern, bias: 0x1000 },
        );
        if matches!(ours, Err(Fault::Memory(_))) {
            continue;
        }
        assert_eq!(ours.ok(), reference(&text, initial, &registers), "{text:02x?} from {initial:#x}");
        if ours.is_ok() { values += 1 } else { faults += 1 }
    }
    assert!(values > 50_000 && faults > 10_000, "{values} values, {faults} faults");
}

#[test]
fn what_linkers_write_for_a_plt() {
    // DW_OP_breg7 8; breg16 0; lit15; and; lit10 (lazy) or lit11 (with endbr); ge; lit3; shl; plus
    for lit in [10, 11] {
        let text = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30 + lit, 0x2a, 0x33, 0x24, 0x22];
        for at in 0..16 {
            let registers = Registers::new(0x40_1020 + u64::from(at), 0x1000);
            let value =
                evaluate(&text, None, &mut Context { registers: &registers, memory: &mut Pattern, bias: 0 });
            assert_eq!(value, Ok(if at >= lit { 0x1010 } else { 0x1008 }), "{at}");
        }
    }
}

#[test]
fn work_is_bounded() {
    let registers = Registers::new(0, 0);
    let run = |text: &[u8]| {
        evaluate(text, None, &mut Context { registers: &registers, memory: &mut Pattern, bias: 0 })
    };
    assert_eq!(run(&[0x2f, 0xfd, 0xff]), Err(Fault::Bad), "skip to itself");
    assert_eq!(run(&[0x31, 0x12, 0x28, 0xfc, 0xff]), Err(Fault::Bad), "branches to itself");
    assert_eq!(run(&[0x31; 100]), Err(Fault::Bad), "too deep");
    assert_eq!(run(&[0x76, 0]), Err(Fault::Register));
    assert_eq!(run(&[]), Err(Fault::Bad));
}

//! The call-frame instructions (DWARF 5 §6.4.2 and §7.24, and GNU extensions), one at a time.

use super::error::{CfiError, CfiErrorKind};
use super::machine::Machine;
use crate::isa::Isa;
use crate::row::{CfaRule, RegisterRule};

/// Runs one instruction.
pub(super) fn step(machine: &mut Machine<'_, '_>) -> Result<(), CfiError> {
    let op = machine.reader.u8()?;
    let low = u64::from(op & 0x3f);
    match op >> 6 {
        1 => machine.advance(low),
        2 => {
            let offset = machine.reader.uleb()? as i64;
            let offset = machine.factored(offset);
            machine.set(low, RegisterRule::Offset(offset));
            Ok(())
        }
        3 => machine.restore(low, op),
        _ => extended(machine, op),
    }
}

fn extended(machine: &mut Machine<'_, '_>, op: u8) -> Result<(), CfiError> {
    match op {
        // nop
        0x00 => Ok(()),
        // set_loc, advance_loc1, 2, 4, MIPS_advance_loc8
        0x01 => {
            let mut bases = machine.frames.bases;
            bases.function = Some(machine.fde.range.start);
            let location = machine.fde.cie.fde_encoding.read(&mut machine.reader, &bases)?;
            machine.move_to(location, op)
        }
        0x02 => machine.reader.u8().and_then(|delta| machine.advance(delta.into())),
        0x03 => machine.reader.u16().and_then(|delta| machine.advance(delta.into())),
        0x04 => machine.reader.u32().and_then(|delta| machine.advance(delta.into())),
        0x1d => machine.reader.u64().and_then(|delta| machine.advance(delta)),
        // restore_extended, remember_state, restore_state
        0x06 => machine.reader.uleb().and_then(|register| machine.restore(register, op)),
        0x0a => machine.remember(),
        0x0b => machine.restore_state(),
        0x0c..=0x0f | 0x12 | 0x13 => cfa(machine, op),
        // AARCH64_negate_ra_state, AARCH64_negate_ra_state_with_pc: whether the return address is signed. The
        // signature is removed in any case.
        0x2c | 0x2d if machine.frames.isa == Isa::Aarch64 => Ok(()),
        // GNU_args_size: pushed arguments are below the CFA, so there is nothing to do.
        0x2e => machine.reader.uleb().map(|_| ()),
        0x05 | 0x07..=0x09 | 0x10 | 0x11 | 0x14..=0x16 | 0x2f => register(machine, op),
        _ => Err(machine.reader.error(CfiErrorKind::UnknownInstruction(op))),
    }
}

/// Runs an instruction that defines the CFA.
fn cfa(machine: &mut Machine<'_, '_>, op: u8) -> Result<(), CfiError> {
    match op {
        // def_cfa
        0x0c => {
            let register = machine.reader.uleb()?;
            let offset = machine.reader.uleb()? as i64;
            machine.set_cfa(register, offset)
        }
        // def_cfa_register
        0x0d => {
            let register = machine.reader.uleb()?;
            machine.set_cfa_register(register, op)
        }
        // def_cfa_offset
        0x0e => {
            let offset = machine.reader.uleb()? as i64;
            machine.set_cfa_offset(offset, op)
        }
        // def_cfa_expression
        0x0f => {
            machine.row.cfa = CfaRule::Expression(machine.expression()?);
            Ok(())
        }
        // def_cfa_sf
        0x12 => {
            let register = machine.reader.uleb()?;
            let offset = machine.reader.sleb()?;
            machine.set_cfa(register, machine.factored(offset))
        }
        // def_cfa_offset_sf
        _ => {
            let offset = machine.reader.sleb()?;
            machine.set_cfa_offset(machine.factored(offset), op)
        }
    }
}

/// Runs an instruction that sets the rule of a register.
fn register(machine: &mut Machine<'_, '_>, op: u8) -> Result<(), CfiError> {
    let register = machine.reader.uleb()?;
    let rule = match op {
        // offset_extended, offset_extended_sf, GNU_negative_offset_extended
        0x05 => RegisterRule::Offset(unsigned(machine)?),
        0x11 => RegisterRule::Offset(signed(machine)?),
        0x2f => RegisterRule::Offset(unsigned(machine)?.wrapping_neg()),
        // val_offset, val_offset_sf
        0x14 => RegisterRule::ValOffset(unsigned(machine)?),
        0x15 => RegisterRule::ValOffset(signed(machine)?),
        // undefined, same_value
        0x07 => RegisterRule::Undefined,
        0x08 => RegisterRule::SameValue,
        // register
        0x09 => {
            let other = machine.reader.uleb()?;
            let other = u16::try_from(other).map_err(|_| machine.reader.error(CfiErrorKind::TooLarge))?;
            RegisterRule::Register(other)
        }
        // expression, val_expression
        0x10 => RegisterRule::Expression(machine.expression()?),
        _ => RegisterRule::ValExpression(machine.expression()?),
    };
    machine.set(register, rule);
    Ok(())
}

fn unsigned(machine: &mut Machine<'_, '_>) -> Result<i64, CfiError> {
    let offset = machine.reader.uleb()? as i64;
    Ok(machine.factored(offset))
}

fn signed(machine: &mut Machine<'_, '_>) -> Result<i64, CfiError> {
    let offset = machine.reader.sleb()?;
    Ok(machine.factored(offset))
}

//! Finds the cheapest address for a probe (uprobe) of a function's calls.
//!
//! The kernel emulates some instructions when they have a probe. It executes others out of line and single-steps them, which takes the thread
//! into the kernel a second time and costs ten times as much (arch/x86/kernel/uprobes.c). Often, an instruction that it emulates comes shortly
//! after the entry.
//!
//! Invariant: each call executes the instruction at the chosen address exactly once. So only instructions that can neither branch nor fault lie
//! before it, and no jump leads to these or to the address itself. If that isn't certain, the entry is chosen.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use object::elf::EM_X86_64;

use crate::elf::Image;
use crate::symtab::Symtab;

/// Most bytes behind the entry.
const FURTHEST: u64 = 64;
/// Most bytes of a function, and of all code of a file, that are searched for jumps.
const MAX_FUNCTION: u64 = 1 << 20;
const MAX_CODE: u64 = 256 << 20;

/// The way the kernel executes a probed instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeStep {
    /// The kernel emulates the instruction.
    Emulated,
    /// The kernel single-steps the instruction.
    Stepped,
    /// Unknown: code of another architecture.
    #[default]
    Unknown,
}

/// The distance of the best place from the entry at this address, and at this offset in the file, and what passing it takes. `tables`: all
/// symbols of the file; without any the entry is the place.
pub(crate) fn place(image: &Image, offset: u64, entry: u64, tables: &[Symtab]) -> (u64, ProbeStep) {
    if image.machine != EM_X86_64 {
        return (0, ProbeStep::Unknown);
    }
    let first = image.read_up_to(offset, 16).unwrap_or_default();
    if is_emulated(&first) {
        return (0, ProbeStep::Emulated);
    }
    match further(image, offset, entry, tables) {
        Some(distance) => (distance, ProbeStep::Emulated),
        None => (0, ProbeStep::Stepped),
    }
}

/// The way the kernel executes the instruction at this offset in the file, as far as that is the same in all kernels.
pub(crate) fn step(image: &Image, offset: u64) -> ProbeStep {
    match image.read_up_to(offset, 16) {
        Ok(code) if image.machine == EM_X86_64 => step_of(&code),
        _ => ProbeStep::Unknown,
    }
}

fn step_of(code: &[u8]) -> ProbeStep {
    let instruction = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).decode();
    if is_emulated(code) {
        ProbeStep::Emulated
    } else if matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Pause | Mnemonic::INVALID) {
        // Long forms and prefixes of nop are emulated by some kernels only: all of them since Linux 6.18.
        ProbeStep::Unknown
    } else {
        ProbeStep::Stepped
    }
}

fn further(image: &Image, offset: u64, entry: u64, tables: &[Symtab]) -> Option<u64> {
    let named = tables.iter().filter_map(|table| table.find(entry)).filter(|named| named.start == entry);
    let end = named.filter(|named| named.has_size).map(|named| named.end).max()?;
    let size = end.checked_sub(entry).filter(|&size| size <= MAX_FUNCTION)?;
    let code = image.read_up_to(offset, size).ok()?;
    // Other functions that begin here are called as well.
    let next = tables.iter().filter_map(|table| table.next_start(entry)).min();
    let limit = next.unwrap_or(u64::MAX).min(end);
    let distance = straight(&code, entry, limit)?;
    (!is_jumped_to(image, entry, entry + distance)?).then_some(distance)
}

/// The distance of the first instruction that the kernel emulates behind those that can't but go on; `None` if there is none, or if jumps
/// within the function may go anywhere. `limit`: the place lies before it.
fn straight(code: &[u8], entry: u64, limit: u64) -> Option<u64> {
    let decoder = || Decoder::with_ip(64, code, entry, DecoderOptions::NONE);
    let mut found = None;
    for instruction in decoder() {
        let at = instruction.ip() - entry;
        if at >= FURTHEST || instruction.ip() >= limit {
            break;
        }
        if is_emulated(code.get(at as usize..)?) {
            found = Some(at);
            break;
        }
        if !goes_on(&instruction) {
            break;
        }
    }
    let found = found?;
    let between = entry + 1..=entry + found;
    let harms = |one: Instruction| {
        let is_jump = one.op_count() > 0 && is_near_branch(&one);
        one.is_invalid()
            || one.flow_control() == FlowControl::IndirectBranch
            || (is_jump && between.contains(&one.near_branch_target()))
    };
    (!decoder().into_iter().any(harms)).then_some(found)
}

fn is_near_branch(instruction: &Instruction) -> bool {
    matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64)
}

/// Whether nothing but the next instruction comes after this one: it doesn't branch, and has no memory to fault at.
fn goes_on(instruction: &Instruction) -> bool {
    let is_plain = matches!(instruction.mnemonic(), Mnemonic::Endbr64 | Mnemonic::Nop | Mnemonic::Lea);
    let has_memory =
        (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    let may_trap = matches!(instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv)
        || instruction.is_string_instruction();
    instruction.flow_control() == FlowControl::Next && !may_trap && (is_plain || !has_memory)
}

/// Whether the kernel emulates the instruction that the bytes begin with: `branch_setup_xol_ops` and `push_setup_xol_ops`, as they are since
/// Linux 4.17.
fn is_emulated(code: &[u8]) -> bool {
    matches!(
        *code,
        // push of a register, nop, call and jmp, and conditional jumps.
        [0x50..=0x57 | 0x90 | 0xe8 | 0xe9 | 0xeb | 0x70..=0x7f, ..] | [0x41, 0x50..=0x57, ..] | [0x0f, 0x80..=0x8f, ..]
    )
}

/// Whether any code of the file may jump or call to behind the entry, up to the place: whatever looks like such an instruction counts.
/// `None`: the code can't be read.
fn is_jumped_to(image: &Image, entry: u64, place: u64) -> Option<bool> {
    let is_hit = |next: u64, distance: [u8; 4]| {
        let target = next.wrapping_add_signed(i32::from_le_bytes(distance).into());
        target > entry && target <= place
    };
    for section in image.sections.iter().filter(|section| section.executable) {
        if section.size > MAX_CODE {
            return None;
        }
        let mut code = image.read(section).ok()?;
        // The last instruction may have five bytes.
        code.push(0);
        for (at, window) in code.windows(6).enumerate() {
            let next = section.address.wrapping_add(at as u64);
            let hit = match *window {
                [0xe8 | 0xe9, a, b, c, d, _] => is_hit(next.wrapping_add(5), [a, b, c, d]),
                [0x0f, 0x80..=0x8f, a, b, c, d] => is_hit(next.wrapping_add(6), [a, b, c, d]),
                _ => false,
            };
            if hit {
                return Some(true);
            }
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: u64 = 0x1000;

    #[test]
    fn the_place_is_the_first_that_is_emulated_on_the_straight_way() {
        for (code, expected) in [
            // glibc's free: test %rdi,%rdi; je; push %rbp …
            (&[0x48, 0x85, 0xff, 0x74, 0x10, 0x55, 0xc3][..], Some(3)),
            // endbr64; push %rbx; ret.
            (&[0xf3, 0x0f, 0x1e, 0xfa, 0x53, 0xc3], Some(4)),
            // sub $8,%rsp; lea; call.
            (&[0x48, 0x83, 0xec, 8, 0x48, 0x8d, 0x3d, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3], Some(11)),
            // mov %edi,%eax; push %r12.
            (&[0x89, 0xf8, 0x41, 0x54, 0xc3], Some(2)),
            // mov (%rdi),%rax may fault.
            (&[0x48, 0x8b, 0x07, 0x55, 0xc3], None),
            // The function returns before the push.
            (&[0x89, 0xf8, 0xc3, 0x55], None),
            // A loop that begins after the first instruction, and one that begins at the push.
            (&[0x31, 0xc0, 0x89, 0xf9, 0x55, 0xeb, 0xfb, 0xc3], None),
            (&[0x31, 0xc0, 0x55, 0xeb, 0xfd, 0xc3], None),
            // A jump to the entry also executes the probe.
            (&[0x31, 0xc0, 0x55, 0xeb, 0xfb, 0xc3], Some(2)),
            // jmp *%rax may go anywhere.
            (&[0x31, 0xc0, 0x55, 0xff, 0xe0], None),
            (&[0x06, 0x55], None),
        ] {
            assert_eq!(straight(code, ENTRY, u64::MAX), expected, "{code:x?}");
        }
        assert_eq!(
            straight(&[0xf3, 0x0f, 0x1e, 0xfa, 0x53, 0xc3], ENTRY, ENTRY + 4),
            None,
            "another function"
        );
    }

    #[test]
    fn forms_of_nop_are_not_called_stepped() {
        for (code, expected) in [
            (&[0x55, 0xc3][..], ProbeStep::Emulated),
            (&[0x0f, 0x1f, 0x44, 0, 0], ProbeStep::Unknown),
            (&[0x66, 0x90], ProbeStep::Unknown),
            (&[0xf3, 0x0f, 0x1e, 0xfa], ProbeStep::Stepped),
            (&[0x48, 0x89, 0xe5], ProbeStep::Stepped),
            (&[0xc3], ProbeStep::Stepped),
            (&[0x06], ProbeStep::Unknown),
            (&[], ProbeStep::Unknown),
        ] {
            assert_eq!(step_of(code), expected, "{code:x?}");
        }
    }

    #[test]
    fn prefixes_that_the_kernel_steps_are_no_emulated_instructions() {
        for code in
            [&[0x66, 0xe8, 0, 0][..], &[0xf3, 0x90], &[0x66, 0x50], &[0x42, 0x50], &[0xff, 0xd0], &[0x68]]
        {
            assert!(!is_emulated(code), "{code:x?}");
        }
        for code in [&[0x41, 0x57][..], &[0x90], &[0x0f, 0x84, 0, 0, 0, 0], &[0xeb, 2]] {
            assert!(is_emulated(code), "{code:x?}");
        }
    }
}

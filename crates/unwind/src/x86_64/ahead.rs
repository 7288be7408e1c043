//! Recognizes what is left of a prologue or an epilogue by its instructions: pushes and stack memory that is taken, or pops, stack memory that
//! is released, and `ret`. (Intel SDM volume 2, opcodes.)

use crate::address::Avma;
use crate::architecture::Epilogue;
use crate::memory::Memory;

/// Number of bytes to read: seven bytes for a release, two for each of six pops, one for the return.
const LONGEST: usize = 24;

/// Returns the epilogue whose instructions begin at `pc`.
pub(super) fn epilogue<M: Memory>(pc: Avma, memory: &mut M) -> Option<Epilogue> {
    let mut code = [0; LONGEST];
    epilogue_of(read(pc, memory, &mut code))
}

/// Returns the number of bytes by which a prologue whose instructions begin at `pc` lowers the stack pointer; 0 if there is none.
pub(super) fn prologue<M: Memory>(pc: Avma, memory: &mut M) -> u64 {
    let mut code = [0; LONGEST];
    prologue_of(read(pc, memory, &mut code))
}

fn read<'c, M: Memory>(pc: Avma, memory: &mut M, code: &'c mut [u8; LONGEST]) -> &'c [u8] {
    let length = [LONGEST, 16, 8, 4, 1].into_iter().find(|&length| memory.read_code(pc, &mut code[..length]));
    &code[..length.unwrap_or(0)]
}

fn prologue_of(mut code: &[u8]) -> u64 {
    let mut taken = 0;
    loop {
        let (length, bytes) = match *code {
            // push of a register, but the stack pointer
            [0x50..=0x53 | 0x55..=0x57, ..] => (1, 8),
            [0x41, 0x50..=0x57, ..] => (2, 8),
            // sub from the stack pointer
            [0x48, 0x83, 0xec, bytes @ 0..=0x7f, ..] => (4, bytes.into()),
            [0x48, 0x81, 0xec, a, b, c @ 0..=0x0f, 0, ..] => (7, u32::from_le_bytes([a, b, c, 0]).into()),
            _ => return taken,
        };
        taken += bytes;
        code = code.get(length..).unwrap_or_default();
    }
}

fn epilogue_of(mut code: &[u8]) -> Option<Epilogue> {
    let mut epilogue = Epilogue { room: 0, fp: None };
    loop {
        let (length, room) = match *code {
            [0xc3, ..] | [0xf3, 0xc3, ..] => return Some(epilogue),
            [0x5d, ..] => {
                epilogue.fp = Some(epilogue.room);
                (1, 8)
            }
            // pop of another register, but the stack pointer
            [0x58..=0x5b | 0x5e..=0x5f, ..] => (1, 8),
            [0x41, 0x58..=0x5f, ..] => (2, 8),
            // add to the stack pointer
            [0x48, 0x83, 0xc4, room @ 0..=0x7f, ..] => (4, room.into()),
            [0x48, 0x81, 0xc4, a, b, c @ 0..=0x0f, 0, ..] => (7, u32::from_le_bytes([a, b, c, 0]).into()),
            _ => return None,
        };
        epilogue.room += room;
        code = code.get(length..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pops_and_releases_up_to_the_return_are_an_epilogue() {
        // Assembled by GNU as: add $0x18,%rsp; pop %rbx; pop %r15; pop %r14; pop %rbp; ret.
        let code = [0x48, 0x83, 0xc4, 0x18, 0x5b, 0x41, 0x5f, 0x41, 0x5e, 0x5d, 0xc3];
        assert_eq!(epilogue_of(&code), Some(Epilogue { room: 0x18 + 32, fp: Some(0x18 + 24) }));
        assert_eq!(epilogue_of(&code[4..]), Some(Epilogue { room: 32, fp: Some(24) }));
        assert_eq!(epilogue_of(&code[10..]), Some(Epilogue { room: 0, fp: None }));
        // add $0x1008,%rsp; ret
        assert_eq!(
            epilogue_of(&[0x48, 0x81, 0xc4, 8, 0x10, 0, 0, 0xc3]),
            Some(Epilogue { room: 0x1008, fp: None })
        );
        // Cut; pop %rsp; sub $8,%rsp; another instruction.
        for other in [&code[..9], &[0x5c, 0xc3], &[0x48, 0x83, 0xec, 8, 0xc3], &[0x90, 0xc3], &[]] {
            assert_eq!(epilogue_of(other), None, "{other:x?}");
        }
    }

    #[test]
    fn pushes_and_what_is_taken_are_a_prologue() {
        // Disassembled by objdump from LuaJIT 2.1: push %rbp; push %rbx; push %r15; push %r14; sub $0x28,%rsp; mov $0x5,%ebx.
        let code = [0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0x28, 0xbb, 5, 0, 0, 0];
        assert_eq!([0, 1, 2, 4, 6, 10].map(|at| prologue_of(&code[at..])), [72, 64, 56, 48, 40, 0]);
        assert_eq!((prologue_of(&code[..4]), prologue_of(&[])), (24, 0), "cut");
    }
}

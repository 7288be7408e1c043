//! Recognizes code that ends its thread: the code that coroutines and threads return to, if they ever do.
//!
//! Start routines are written by hand, mostly without rules: glibc's `__start_context`, Boost's `make_fcontext` and
//! its copies, musl's `__clone`. The creator of a stack puts the address of such code on it, or calls from there.
//! Such code has no caller to return to. The return address is followed by a few moves, perhaps calls, and then
//! either the system call that ends the thread or the process, or `hlt`, which user code may not run and which
//! indicates that the call before it does not return.
//!
//! Only the instructions that such code uses are decoded; anything else means that the code does not end its thread.
//! (Intel SDM volume 2: ModR/M in table 2-2, opcodes in appendix A.)

use crate::address::Avma;
use crate::memory::Memory;

/// Number of bytes to read: more than such code has.
pub const LONGEST: usize = 64;
/// Number of instructions to decode: more than such code has.
const MOST: usize = 20;
/// Numbers of `exit` and `exit_group` (asm/unistd_64.h).
const EXITS: [u32; 2] = [60, 231];

/// Returns whether the code at `pc` ends its thread.
pub(super) fn ends_thread<M: Memory>(pc: Avma, memory: &mut M) -> bool {
    let mut code = [0; LONGEST];
    let length = [LONGEST, 32, 16].into_iter().find(|&length| memory.read_code(pc, &mut code[..length]));
    length.is_some_and(|length| ends(&code[..length]))
}

/// Returns whether `pc` is just after a system call that may have created a thread, and a result of 0 leads to code
/// that ends the thread: the child's part of glibc's `clone` and `clone3`, and of musl's `__clone`.
pub(super) fn begins_thread<M: Memory>(pc: Avma, memory: &mut M) -> bool {
    let mut code = [0; 16];
    if !memory.read_code(pc.offset(-2), &mut code) || !code.starts_with(&[0x0f, 0x05]) {
        return false;
    }
    let relative = |at: usize| i64::from(code[at] as i8) + at as i64 - 1;
    match code[2..] {
        // test %rax, %rax; jl; je
        [0x48, 0x85, 0xc0, 0x7c, _, 0x74, ..] => ends_thread(pc.offset(relative(8)), memory),
        // test %eax, %eax; jne
        [0x85, 0xc0, 0x75, ..] => ends_thread(pc.offset(4), memory),
        _ => false,
    }
}

/// Relevant effect of an instruction, and its length.
enum Step {
    /// No relevant effect.
    Plain(usize),
    /// Sets `eax` to this number.
    SetsEax(usize, u32),
    /// May jump forward by this distance, the second number.
    Branch(usize, usize),
    /// Enters the kernel.
    SystemCall(usize),
    /// Not executable in user space.
    Halt,
}

/// Returns whether `code` ends its thread. Bytes after the end of that code do not matter.
pub(super) fn ends(code: &[u8]) -> bool {
    let (mut at, mut eax, mut pushed, mut reach) = (0, None, None, 0);
    for _ in 0..MOST {
        let rest = code.get(at..).unwrap_or_default();
        let length = match (rest, step(rest)) {
            // push imm8; pop %rax
            ([0x6a, number, ..], _) => {
                pushed = Some(u32::from(*number));
                2
            }
            ([0x58, ..], _) => {
                eax = pushed.take();
                1
            }
            // mov imm8, %al; the rest of %rax must be 0
            ([0xb0, number, ..], _) => {
                eax = eax.filter(|&eax| eax == 0).map(|_| u32::from(*number));
                2
            }
            (_, Some(Step::Plain(length))) => length,
            (_, Some(Step::SetsEax(length, number))) => {
                eax = Some(number);
                length
            }
            (_, Some(Step::Branch(length, ahead))) => {
                reach = reach.max(at + length + ahead);
                length
            }
            (_, Some(Step::SystemCall(length))) => {
                if eax.is_some_and(|number| EXITS.contains(&number)) {
                    return reach <= at;
                }
                eax = None;
                length
            }
            (_, Some(Step::Halt)) => return reach <= at,
            (_, None) => return false,
        };
        at += length;
    }
    false
}

fn step(code: &[u8]) -> Option<Step> {
    if code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) {
        return Some(Step::Plain(4));
    }
    let (prefix, wide, rest) = match code {
        [rex @ 0x40..=0x4f, rest @ ..] => (1, rex & 8 != 0, rest),
        rest => (0, false, rest),
    };
    let plain = |length: usize| Some(Step::Plain(prefix + length));
    match *rest {
        // xor %eax,%eax
        [0x31 | 0x33, 0xc0, ..] if prefix == 0 => Some(Step::SetsEax(2, 0)),
        // mov, xor, test, lea
        [0x31 | 0x33 | 0x85 | 0x89 | 0x8b | 0x8d, ..] => plain(1 + operand(rest.get(1..)?)?),
        // and or sub with a small constant
        [0x83, ..] => plain(2 + operand(rest.get(1..)?)?),
        [0xb8, a, b, c, d, ..] if !wide => Some(Step::SetsEax(prefix + 5, u32::from_le_bytes([a, b, c, d]))),
        [0xb8..=0xbf, ..] => plain(if wide { 9 } else { 5 }),
        [0x50..=0x57 | 0x59..=0x5f, ..] => plain(1),
        [0xc7, ..] => plain(5 + operand(rest.get(1..)?)?),
        // je, jne forward
        [0x74 | 0x75, ahead @ 0..=0x7f, ..] => Some(Step::Branch(2, ahead.into())),
        // call
        [0xe8, _, _, _, _, ..] => plain(5),
        [0xff, form, ..] if form & 0x38 == 0x10 => plain(1 + operand(rest.get(1..)?)?),
        [0x0f, 0x05, ..] => Some(Step::SystemCall(2)),
        [0xf4, ..] if prefix == 0 => Some(Step::Halt),
        _ => None,
    }
}

/// Returns the length of the operand that begins with this byte (ModR/M).
fn operand(code: &[u8]) -> Option<usize> {
    let (&form, rest) = code.split_first()?;
    let (mode, base) = (form >> 6, form & 7);
    if mode == 3 {
        return Some(1);
    }
    let (scaled, base) = if base == 4 { (1, rest.first()? & 7) } else { (0, base) };
    let offset = match mode {
        0 if base == 5 => 4,
        0 => 0,
        1 => 1,
        _ => 4,
    };
    Some(1 + scaled + offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::ReadError;

    #[test]
    fn code_that_leaves_to_nobody_is_known() {
        // Disassembled with objdump from glibc 2.36, Boost 1.74 and musl 1.2.3.
        let start_context: &[u8] = &[
            0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff, 0x74, 0x08, 0xe8, 0x0f, 0xf6, 0xfe,
            0xff, 0x48, 0x89, 0xc7, 0xe8, 0xa7, 0xcc, 0xfe, 0xff, 0xf4,
        ];
        let finish: &[u8] = &[0x48, 0x31, 0xff, 0xe8, 0, 0, 0, 0, 0xf4];
        let clone: &[u8] = &[0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05, 0xf4];
        assert!(ends(start_context) && ends(finish) && ends(clone));
        for code in [start_context, finish, clone] {
            (0..code.len() - 1)
                .for_each(|length| assert!(!ends(&code[..length]) || code == clone && length >= 8));
        }
    }

    /// Code disassembled with objdump from glibc 2.36 and musl 1.2.3, and a call of read in a separate function.
    #[test]
    fn a_thread_begins_behind_its_system_call() {
        let clone = [
            &[0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, 0x13, 0x74, 0x01, 0xc3, 0x31, 0xed, 0x58, 0x5f][..],
            &[0xff, 0xd0, 0x48, 0x89, 0xc7, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05],
        ];
        let musl = [
            &[0x0f, 0x05, 0x85, 0xc0, 0x75, 0x10, 0x31, 0xed, 0x5f][..],
            &[0x41, 0xff, 0xd1, 0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05, 0xf4],
        ];
        let read = [
            0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, 0x13, 0x74, 0x01, 0xc3, 0x31, 0xc0, 0x5b, 0xc3, 0, 0, 0, 0,
            0, 0,
        ];
        let begins = |code: &[u8]| begins_thread(Avma(0x1002), &mut Code(code));
        assert!(begins(&clone.concat()) && begins(&musl.concat()) && !begins(&read));
        assert!(!begins(&[&[0x90, 0x90][..], &clone.concat()[2..]].concat()), "no system call");
    }

    /// Memory with code at 0x1000 and nothing else.
    struct Code<'c>(&'c [u8]);

    impl Memory for Code<'_> {
        fn read_u64(&mut self, _: Avma) -> Result<u64, ReadError> {
            Err(ReadError::BeyondCopy)
        }

        fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
            let code = self.0.get((at.0 - 0x1000) as usize..).unwrap_or_default();
            let length = code.len().min(to.len());
            to.fill(0);
            to[..length].copy_from_slice(&code[..length]);
            true
        }
    }

    #[test]
    fn code_that_goes_on_is_none() {
        // mov %eax,%edi; call; ret. The same with a jump over hlt. Another system call. A backward jump.
        let others: [&[u8]; 5] = [
            &[0x89, 0xc7, 0xe8, 0, 0, 0, 0, 0xc3],
            &[0x85, 0xc0, 0x74, 0x01, 0xf4, 0xc3],
            &[0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0xc3],
            &[0x85, 0xc0, 0x74, 0xf0, 0xf4],
            &[],
        ];
        others.iter().for_each(|code| assert!(!ends(code), "{code:x?}"));
    }
}

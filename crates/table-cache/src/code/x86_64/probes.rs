//! Recognizes loops that touch each page of a large frame while allocating it. Compilers generate them for
//! `-fstack-clash-protection`.
//!
//! The stack pointer changes in each round and is known again after the loop: gcc and clang compute its final value
//! in a register beforehand.

use iced_x86::{Instruction as Decoded, Mnemonic, OpKind, Register};

use super::{Instruction, immediate};

/// If `first` computes that final value, returns the address after the loop, and the number of bytes that the loop
/// allocates.
pub(in crate::code) fn behind(
    first: &Instruction,
    mut instruction: impl FnMut(u64) -> Option<Instruction>,
) -> Option<(u64, i32)> {
    let first = &first.0;
    let end = first.op0_register();
    let (begin, taken) = match first.mnemonic() {
        _ if matches!(end, Register::None | Register::RSP | Register::RBP) => return None,
        Mnemonic::Lea => (first.next_ip(), taken_by_lea(first)?),
        Mnemonic::Mov if first.op1_register() == Register::RSP => {
            let second = instruction(first.next_ip())?.0;
            let is_taken = second.mnemonic() == Mnemonic::Sub && second.op0_register() == end;
            (second.next_ip(), immediate(&second).filter(|&taken| is_taken && taken > 0)?)
        }
        _ => return None,
    };
    Some((behind_loop(instruction, begin, end)?, taken))
}

/// Returns the distance in bytes of a computed address below the stack pointer.
fn taken_by_lea(lea: &Decoded) -> Option<i32> {
    let is_alone = lea.memory_base() == Register::RSP && lea.memory_index() == Register::None;
    let taken = (lea.memory_displacement64() as i64).checked_neg()?;
    i32::try_from(taken).ok().filter(|&taken| is_alone && taken > 0)
}

/// Returns the address after a loop that begins at `begin` and ends when the stack pointer equals register `end`.
fn behind_loop(
    mut instruction: impl FnMut(u64) -> Option<Instruction>,
    begin: u64,
    end: Register,
) -> Option<u64> {
    let take = instruction(begin)?.0;
    let touch = instruction(take.next_ip())?.0;
    let compare = instruction(touch.next_ip())?.0;
    let again = instruction(compare.next_ip())?.0;
    let is_of_stack_pointer =
        |one: &Decoded, mnemonic| one.mnemonic() == mnemonic && one.op0_register() == Register::RSP;
    let is_loop = is_of_stack_pointer(&take, Mnemonic::Sub)
        && matches!(touch.mnemonic(), Mnemonic::Or | Mnemonic::Mov | Mnemonic::Test)
        && touch.op0_kind() == OpKind::Memory
        && is_of_stack_pointer(&compare, Mnemonic::Cmp)
        && compare.op1_register() == end
        && again.mnemonic() == Mnemonic::Jne
        && again.near_branch_target() == begin;
    is_loop.then(|| again.next_ip())
}

//! Recognizes code that starts and ends threads by its instructions: glibc's `clone`, `clone3` and musl's `__clone`.

use super::decode::{Effect, effect};
use crate::address::Avma;
use crate::memory::Memory;

const SVC: u32 = 0xd400_0001;
/// `cmp x0, #0`
const COMPARE: u32 = 0xf100_001f;
/// `cbz x0`, without its distance.
const BRANCH_IF_ZERO: u32 = 0xb400_0000;
/// `b.eq`, without its distance.
const BRANCH_IF_EQUAL: u32 = 0x5400_0000;
/// Numbers of `exit` and `exit_group` (asm-generic/unistd.h).
const EXITS: [u32; 2] = [93, 94];
/// Maximum number of instructions in such code.
const MOST: i64 = 8;

/// Returns whether the code at a return address ends its thread: it makes the system call for that.
pub(super) fn ends_thread<M: Memory>(pc: Avma, memory: &mut M) -> bool {
    let mut number = None;
    for index in 0..MOST {
        let Some(word) = word(pc.offset(4 * index), memory) else { return false };
        match effect(word) {
            Effect::Plain if word == SVC => return number.is_some_and(|number| EXITS.contains(&number)),
            // mov x8, #number
            Effect::Writes(8) if word & 0x7fe0_0000 == 0x5280_0000 => number = Some(word >> 5 & 0xffff),
            Effect::Plain | Effect::Writes(_) | Effect::Loads(_) | Effect::Move { .. } => {}
            _ => return false,
        }
    }
    false
}

/// Returns whether `pc` is just behind a system call that has created this thread, as its result of 0 leads to a call behind
/// which the thread ends. A comparison may come between.
pub(super) fn begins_thread<M: Memory>(pc: Avma, memory: &mut M) -> bool {
    let mut at = pc.offset(-4);
    let mut next = |memory: &mut M| {
        let found = word(at, memory);
        at = at.offset(4);
        found
    };
    let begins = match next(memory) {
        Some(SVC) => true,
        Some(COMPARE) => word(pc.offset(-8), memory) == Some(SVC),
        _ => false,
    };
    let mut branch = next(memory);
    if branch == Some(COMPARE) {
        branch = next(memory);
    }
    let is_branch = |word: u32| word & 0xff00_001f == BRANCH_IF_ZERO || word & 0xff00_001f == BRANCH_IF_EQUAL;
    match branch.filter(|&word| begins && is_branch(word)).map(effect) {
        Some(Effect::MayBranch(distance)) => starts_thread(at.offset(distance - 4), memory),
        _ => false,
    }
}

/// Returns whether the code at `at` calls a thread's function and then ends the thread.
fn starts_thread<M: Memory>(at: Avma, memory: &mut M) -> bool {
    let call = (0..MOST)
        .map(|index| at.offset(4 * index))
        .find(|&at| word(at, memory).map(effect) == Some(Effect::Call));
    call.is_some_and(|call| ends_thread(call.offset(4), memory))
}

fn word<M: Memory>(at: Avma, memory: &mut M) -> Option<u32> {
    let mut bytes = [0; 4];
    memory.read_code(at, &mut bytes).then(|| u32::from_le_bytes(bytes))
}

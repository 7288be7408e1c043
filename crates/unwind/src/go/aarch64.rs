//! Functions of Go's runtime on aarch64 that write the stack pointer: they leave the goroutine's stack for another, and most come back.
//!
//! While they run on the other stack, the frame pointer still points at their frame, or is 0 if nobody waits for them.

use alloc::vec::Vec;
use core::ops::Range;

use super::bytes::Bytes;
use super::code::{Code, Frame, MOVE_STACK, POINT};
use super::table::Function;
use super::way::Way;

/// Instructions, from the Arm architecture reference manual, C6.2: `ldur x29, [sp, #-8]`, `ldp x29, x30, [sp, #-8]`, `mov x29, xzr`, `ret`.
const RESTORE: u32 = 0xf85f_83fd;
const RESTORE_BOTH: u32 = 0xa97f_fbfd;
const CLEAR: u32 = 0xaa1f_03fd;
const RETURN: u32 = 0xd65f_03c0;

/// Maximum size of a function that leaves its stack, in bytes. The runtime's have a few hundred.
const MAX_SIZE: u64 = 4096;
/// Maximum number of branches whose targets are still ahead.
const MAX_AHEAD: usize = 16;

/// Registers at an instruction, as far as they matter.
#[derive(Clone, Copy)]
struct State {
    /// The stack is the function's own.
    is_own: bool,
    /// The frame pointer points at the function's frame.
    points: bool,
    /// The frame pointer is 0 on another stack: nobody waits for the function there.
    is_last: bool,
    /// The link register has the return address.
    has_link: bool,
}

/// Appends the rows of a function that writes the stack pointer. Follows its code once, from each branch to its target; what is reached
/// only backwards counts as unknown.
pub(super) fn each_row<B: Bytes + ?Sized>(
    code: Code<'_, B>,
    function: &Function,
    steps: impl Iterator<Item = (Range<u64>, u64)>,
    frame: Option<Frame>,
    rows: &mut Vec<(Range<u64>, Way)>,
) {
    let mut state = Some(State { is_own: true, points: false, is_last: false, has_link: true });
    let mut ahead: [Option<(u64, State)>; MAX_AHEAD] = [None; MAX_AHEAD];
    let mut first = 0;
    for (range, depth) in steps {
        first = if first == 0 { depth } else { first };
        for at in range.clone().step_by(4) {
            if at - function.range.start >= MAX_SIZE {
                return;
            }
            for to in &mut ahead {
                if let Some((_, reached)) = to.take_if(|(to, _)| *to == at) {
                    state = state.or(Some(reached));
                }
            }
            let saved = frame.is_some_and(|frame| at >= frame.saved);
            let way = state.map_or(Way::Unknown, |state| way(state, depth, first, saved));
            push(rows, at..at.saturating_add(4).min(range.end), way);
            let Some(word) = code.word(at) else { return };
            if let (Some(state), Some(to)) = (state, branch(word, at))
                && let Some(free) = ahead.iter_mut().find(|to| to.is_none())
            {
                *free = Some((to, state));
            }
            state = state.filter(|_| !ends(word)).map(|state| after(state, word));
        }
    }
}

fn push(rows: &mut Vec<(Range<u64>, Way)>, range: Range<u64>, way: Way) {
    match rows.last_mut() {
        Some((last, same)) if *same == way && last.end == range.start => last.end = range.end,
        _ => rows.push((range, way)),
    }
}

/// Returns how to find the caller. `first`: the depth at which the return address was saved.
fn way(state: State, depth: u64, first: u64, saved: bool) -> Way {
    match (state.is_own, depth) {
        (true, 0) if state.has_link => Way::Sp { depth, frame: depth, saved: false },
        (true, 1..) => Way::Sp { depth, frame: first, saved: saved && depth >= 8 },
        (false, _) if state.is_last => Way::Root,
        (false, _) if state.points && first > 0 => Way::Fp { frame: first },
        _ => Way::Unknown,
    }
}

/// Returns the state after an instruction.
fn after(state: State, word: u32) -> State {
    // `mov sp, xN`, `ldr x29, [xN, #n]`, `bl`, `blr`, `ldr x30, [sp], #n`
    let moves_stack = word & 0xffff_fc1f == 0x9100_001f && word != 0x9100_03ff && word != MOVE_STACK;
    let loads_fp = word & 0xffc0_001f == 0xf940_001d;
    let calls = word >> 26 == 0b10_0101 || word & 0xffff_fc1f == 0xd63f_0000;
    let loads_link = word & 0xffe0_0fff == 0xf840_07fe;
    match word {
        POINT => State { points: true, ..state },
        RESTORE => State { is_own: true, points: false, ..state },
        RESTORE_BOTH => State { is_own: true, points: false, has_link: true, ..state },
        CLEAR => State { points: false, is_last: !state.is_own, ..state },
        _ if moves_stack => State { is_own: false, ..state },
        _ if loads_fp => State { points: false, ..state },
        _ if calls => State { has_link: false, ..state },
        _ if loads_link => State { has_link: true, ..state },
        _ => state,
    }
}

/// Returns whether nothing runs on from an instruction: `b`, `br`, `ret`, `udf`, `brk`.
fn ends(word: u32) -> bool {
    word >> 26 == 0b00_0101
        || word & 0xffff_fc1f == 0xd61f_0000
        || word == RETURN
        || word >> 16 == 0
        || word >> 21 == 0x6a1
}

/// Returns the target of a branch that is not a call: `b`, `b.cond`, `cbz`, `cbnz`, `tbz`, `tbnz`.
fn branch(word: u32, at: u64) -> Option<u64> {
    // A field of `bits` from bit `low` on, as a distance in instructions.
    let distance = |low: u32, bits: u32| i64::from((word << (32 - low - bits)) as i32 >> (32 - bits)) * 4;
    let distance = match word >> 24 {
        0x14..=0x17 => distance(0, 26),
        0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => distance(5, 19),
        0x36 | 0x37 | 0xb6 | 0xb7 => distance(5, 14),
        _ => return None,
    };
    at.checked_add_signed(distance)
}

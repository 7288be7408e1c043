//! Functions of Go's runtime on aarch64 that write the stack pointer: they leave the goroutine's stack for another, and most come back.
//!
//! While they run on the other stack, the frame pointer still points at their frame, or is 0 if nobody waits for them.

use alloc::vec::Vec;
use core::ops::Range;

use super::bytes::Bytes;
use super::code::{Code, Frame};
use super::table::Function;
use super::way::Way;
use crate::aarch64::{Access, Effect, SP, X29, X30, effect};

/// The register in which a prologue makes the stack pointer of a large frame.
const PROLOGUE: u16 = 20;
/// The number of the zero register where a register is copied.
const ZERO: u16 = 31;

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
            let effect = effect(word);
            if let (Some(state), Effect::Branch(distance) | Effect::MayBranch(distance)) = (state, effect)
                && let Some(to) = at.checked_add_signed(distance)
                && let Some(free) = ahead.iter_mut().find(|to| to.is_none())
            {
                *free = Some((to, state));
            }
            state = state.and_then(|state| after(state, effect));
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

/// Returns the state after an instruction; `None` if nothing runs on from it.
fn after(state: State, effect: Effect) -> Option<State> {
    Some(match effect {
        Effect::Branch(_) | Effect::Jump(_) | Effect::Return | Effect::Stops => return None,
        Effect::Call => State { has_link: false, ..state },
        Effect::Add { to: X29, from: SP, offset: -8 } => State { points: true, ..state },
        Effect::Add { to: SP, from, offset: 0 } if from != SP && from != PROLOGUE => {
            State { is_own: false, ..state }
        }
        Effect::Move { to: X29, from: ZERO } => State { points: false, is_last: !state.is_own, ..state },
        Effect::Loads([Some(X29), _]) => State { points: false, ..state },
        Effect::Access(Access { loads: true, offset, registers, .. }) => {
            let is_restored = offset == -8 && registers[0] == Some(X29);
            State {
                is_own: state.is_own || is_restored,
                points: state.points && registers[0] != Some(X29),
                has_link: state.has_link || registers.contains(&Some(X30)),
                ..state
            }
        }
        _ => state,
    })
}

//! Functions that are gone, or new, because the compiler began or ceased to inline them.
//!
//! Where debug information names inlined calls, a function keeps its row, and it is known that it is inlined now. Where there is none, its
//! time turns up in its caller: that is said as a guess, if the two together cost what they did.

use std::collections::HashMap;

use super::functions::Functions;
use super::rows::Spot;
use super::sum::Sum;
use crate::view::View;

/// Where a function went, or came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Its calls are inlined now.
    Inlined,
    /// They were inlined, and no longer are.
    Outlined,
    /// It is gone, and its caller, this function, costs as much more: perhaps it is inlined there.
    IntoCaller(u32),
    /// It is new, and its caller, this function, costs as much less: perhaps it was inlined there.
    OutOfCaller(u32),
}

/// All calls of a function are inlined, but for so small a share.
const RARE: f64 = 0.1;

/// What is known of a function's copies.
pub(super) fn known(base: &[Sum], new: &[Sum]) -> Option<Moved> {
    let share = |sums: &[Sum]| {
        let all: Sum = sums.iter().fold(Sum::default(), |mut all, &sum| {
            all += sum;
            all
        });
        (all.weight > 0.0).then(|| all.inlined / all.weight)
    };
    match (share(base)?, share(new)?) {
        (before, after) if before < RARE && after > 1.0 - RARE => Some(Moved::Inlined),
        (before, after) if before > 1.0 - RARE && after < RARE => Some(Moved::Outlined),
        _ => None,
    }
}

/// The function that called `function` most often, if it did so for at least half of its cost. `first`: the number of the first view.
pub(super) fn caller(
    views: &[View<'_>],
    spots: &[Vec<(Spot, Sum)>],
    functions: &Functions,
    first: usize,
    function: u32,
) -> Option<u32> {
    let mut callers: HashMap<u32, f64> = HashMap::new();
    let mut whole = 0.0;
    for (index, (view, spots)) in views.iter().zip(spots).enumerate() {
        for &((id, ..), sum) in spots {
            let node = view.node(id);
            if functions.of(first + index, node.frame) != function {
                continue;
            }
            whole += sum.weight;
            if let Some(caller) = node.caller {
                *callers.entry(functions.of(first + index, view.node(caller).frame)).or_default() +=
                    sum.weight;
            }
        }
    }
    let (caller, weight) = callers.into_iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    (caller != function && weight >= whole / 2.0).then_some(caller)
}

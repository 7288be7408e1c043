//! Functions that vanished, or are new, because the compiler began or ceased to inline them.
//!
//! If debug information names inlined calls, a function keeps its row, and its inlining is known. Otherwise its
//! time turns up in its caller: that is reported as a guess if the two together cost what they did.

use std::collections::HashMap;

use super::functions::Functions;
use super::rows::Spot;
use super::sum::Sum;
use crate::view::View;

/// The reason why a function vanished or appeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Calls of the function are inlined now.
    Inlined,
    /// Calls of the function were inlined, and no longer are.
    Outlined,
    /// The function vanished, and its caller, this function, costs as much more: perhaps it is inlined there.
    IntoCaller(u32),
    /// The function is new, and its caller, this function, costs as much less: perhaps it was inlined there.
    OutOfCaller(u32),
}

/// All calls count as inlined (or none do) if the rest is below this share.
const RARE: f64 = 0.1;

/// Compares the inlined share of a function in both sides.
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

/// Returns the function that called `function` most, if at least half of its cost came from there. `first` is the index of the first view.
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

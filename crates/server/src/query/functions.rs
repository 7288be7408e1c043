//! Functions by name, over all stacks: their self and total values, callers and callees. Exact: nothing is left out before
//! summing, and a recursive function is counted once.

use std::collections::HashMap;

use plumb_analyze::Callees;
use plumb_documents::functions::{CallValue, FunctionValue, NeighbourValues};
use plumb_store::{CallNode, CallTree, Cancellation};

use crate::error::ApiError;

/// Walks a tree, callers first, and calls back for each node with how often each name is above it.
fn walk(
    tree: &CallTree<1>,
    cancellation: &Cancellation,
    mut visit: impl FnMut(&CallNode<1>, &[u32]),
) -> Result<(), ApiError> {
    let callees = Callees::new(tree.nodes.iter().map(|node| node.caller));
    let node = |place: u32| &tree.nodes[place as usize];
    callees.walk(
        &mut vec![0; tree.names.len()],
        |place| node(place).name as usize,
        |place, above| {
            cancellation.check()?;
            visit(node(place), above);
            Ok(())
        },
    )
}

/// All functions, largest self value first.
pub(crate) fn functions(
    tree: &CallTree<1>,
    cancellation: &Cancellation,
) -> Result<Vec<FunctionValue>, ApiError> {
    let mut sums = vec![(0_i64, 0_i64); tree.names.len()];
    walk(tree, cancellation, |node, above| {
        let (own, total) = &mut sums[node.name as usize];
        *own = own.saturating_add(node.own[0]);
        // Below itself, it is part of the total already.
        if above[node.name as usize] == 0 {
            *total = total.saturating_add(node.total[0]);
        }
    })?;
    let rows = tree.names.iter().zip(sums);
    let mut rows: Vec<FunctionValue> =
        rows.map(|(name, (own, total))| FunctionValue { function: name.to_string(), own, total }).collect();
    rows.sort_by(|one, other| {
        (other.own, other.total).cmp(&(one.own, one.total)).then_with(|| one.function.cmp(&other.function))
    });
    Ok(rows)
}

/// Callers and callees of a function; `None` if no stack has it.
pub(crate) fn neighbours(
    tree: &CallTree<1>,
    function: &str,
    cancellation: &Cancellation,
) -> Result<Option<NeighbourValues>, ApiError> {
    let Some(name) = tree.names.iter().position(|name| **name == *function) else { return Ok(None) };
    let name = name as u32;
    let mut found = NeighbourValues::default();
    let (mut callers, mut callees) = (HashMap::<Option<u32>, i64>::new(), HashMap::<u32, i64>::new());
    walk(tree, cancellation, |node, above| {
        let caller = node.caller.map(|caller| tree.nodes[caller as usize].name);
        if node.name == name {
            found.own = found.own.saturating_add(node.own[0]);
            if above[name as usize] == 0 {
                found.total = found.total.saturating_add(node.total[0]);
                let sum = callers.entry(caller).or_default();
                *sum = sum.saturating_add(node.total[0]);
            }
        }
        // Of nested calls, the outermost one: the function occurs once above, and the callee not in between.
        if caller == Some(name) && above[name as usize] == 1 {
            let sum = callees.entry(node.name).or_default();
            *sum = sum.saturating_add(node.total[0]);
        }
    })?;
    let row = |name: Option<u32>, total: i64| {
        let function = name.map_or_else(String::new, |name| tree.names[name as usize].to_string());
        CallValue { function, total }
    };
    found.callers = callers.into_iter().map(|(name, total)| row(name, total)).collect();
    found.callees = callees.into_iter().map(|(name, total)| row(Some(name), total)).collect();
    for rows in [&mut found.callers, &mut found.callees] {
        rows.sort_by(|one, other| {
            other.total.cmp(&one.total).then_with(|| one.function.cmp(&other.function))
        });
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use std::sync::Arc;

    use super::*;

    /// `main` (1) calls `f` (2), which calls `f` (3), which calls `g` (4); and `main` calls `g` (5).
    fn tree() -> CallTree<1> {
        let node = |caller, name, own, total| CallNode { caller, name, own: [own], total: [total] };
        CallTree {
            names: ["main", "f", "g"].map(Arc::from).to_vec(),
            nodes: vec![
                node(None, 0, 1, 15),
                node(Some(0), 1, 2, 9),
                node(Some(1), 1, 3, 7),
                node(Some(2), 2, 4, 4),
                node(Some(0), 2, 5, 5),
            ],
        }
    }

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        let rows = functions(&tree(), &Cancellation::default()).unwrap();
        let rows: Vec<(&str, i64, i64)> =
            rows.iter().map(|row| (row.function.as_str(), row.own, row.total)).collect();
        assert_eq!(rows, [("g", 9, 9), ("f", 5, 9), ("main", 1, 15)]);
    }

    #[test]
    fn callers_and_callees_are_those_of_the_outermost_call() {
        let of = |name: &str| neighbours(&tree(), name, &Cancellation::default()).unwrap();
        let f = of("f").unwrap();
        assert_eq!((f.own, f.total), (5, 9));
        assert_eq!(f.callers, [CallValue { function: "main".into(), total: 9 }]);
        assert_eq!(f.callees, [CallValue { function: "f".into(), total: 7 }]);
        let g = of("g").unwrap();
        let callers: Vec<(&str, i64)> =
            g.callers.iter().map(|row| (row.function.as_str(), row.total)).collect();
        assert_eq!(callers, [("main", 5), ("f", 4)]);
        let main = of("main").unwrap();
        assert_eq!(main.callers, [CallValue { function: String::new(), total: 15 }]);
        assert_eq!(of("none"), None);
    }
}

//! Chooses the calls to show. Pyroscope prunes each side twice and then both together; the second cut of a side also ranks the sums of what
//! the first removed. plumb makes all these cuts, to show the same boxes.

use plumb_store::CallTree;

/// A call that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept<const SIDES: usize> {
    /// Index among the nodes of the tree.
    pub node: u32,
    /// The caller's index among the kept calls.
    pub caller: Option<u32>,
    pub own: [i64; SIDES],
    pub total: [i64; SIDES],
    /// The sum of its pruned callees.
    pub other: [i64; SIDES],
}

/// The kept calls, callers first, and the sum of pruned outermost frames.
pub(crate) struct Pruned<const SIDES: usize> {
    pub nodes: Vec<Kept<SIDES>>,
    pub other: [i64; SIDES],
}

/// Keeps about `most` of the largest calls; equal ones are kept or pruned together.
pub(crate) fn prune<const SIDES: usize>(tree: &CallTree<SIDES>, most: usize) -> Pruned<SIDES> {
    let first = cut_sides(tree, std::array::from_fn(|side| least_of_side(tree, side, most)));
    if SIDES == 1 {
        return first;
    }
    let largest = |sides: &[i64; SIDES]| sides.iter().copied().max().unwrap_or(0);
    // The total takes part too.
    let mut sizes = vec![largest(&tree.total())];
    sizes.extend(first.nodes.iter().map(|kept| largest(&kept.total)));
    let others = first.nodes.iter().map(|kept| kept.other).chain([first.other]);
    sizes.extend(others.filter(|other| *other != [0; SIDES]).map(|other| largest(&other)));
    cut_together(first, threshold(sizes, most))
}

/// The smallest value kept on a side: the result of two cuts, of which the second includes the sums of what the first
/// pruned.
fn least_of_side<const SIDES: usize>(tree: &CallTree<SIDES>, side: usize, most: usize) -> i64 {
    let totals = || tree.nodes.iter().map(|node| node.total[side]).filter(|&total| total != 0);
    let first = threshold(totals().collect(), most);
    let mut others = vec![0_i64; tree.nodes.len() + 1];
    for node in &tree.nodes {
        let above = node.caller.map_or(i64::MAX, |caller| tree.nodes[caller as usize].total[side]);
        if node.total[side] < first && above >= first {
            let place = node.caller.map_or(tree.nodes.len(), |caller| caller as usize);
            others[place] = others[place].saturating_add(node.total[side]);
        }
    }
    let kept = totals().filter(|&total| total >= first);
    let second = threshold(kept.chain(others.into_iter().filter(|&other| other != 0)).collect(), most);
    first.max(second)
}

/// The `most`-th largest size; 0 if there are at most that many.
fn threshold(mut sizes: Vec<i64>, most: usize) -> i64 {
    if sizes.len() <= most || most == 0 {
        return 0;
    }
    let (_, least, _) = sizes.select_nth_unstable_by(most - 1, |one, other| other.cmp(one));
    *least
}

/// On each side, keeps the calls that are at least as large as its threshold.
fn cut_sides<const SIDES: usize>(tree: &CallTree<SIDES>, least: [i64; SIDES]) -> Pruned<SIDES> {
    let mut pruned = Pruned { nodes: Vec::new(), other: [0; SIDES] };
    let mut places: Vec<Option<u32>> = vec![None; tree.nodes.len()];
    for (node, call) in tree.nodes.iter().enumerate() {
        let caller = match call.caller {
            None => None,
            Some(caller) => match places[caller as usize] {
                Some(place) => Some(place),
                // The caller is part of a pruned sum, and so is this call.
                None => continue,
            },
        };
        let is_kept: [bool; SIDES] =
            std::array::from_fn(|side| call.total[side] != 0 && call.total[side] >= least[side]);
        let above = caller.map(|caller| pruned.nodes[caller as usize].total);
        let other = match caller {
            None => &mut pruned.other,
            Some(caller) => &mut pruned.nodes[caller as usize].other,
        };
        for side in 0..SIDES {
            // On a side where the caller is pruned, this call is too.
            if !is_kept[side] && above.is_none_or(|above| above[side] != 0) {
                other[side] = other[side].saturating_add(call.total[side]);
            }
        }
        if is_kept.contains(&true) {
            places[node] = Some(pruned.nodes.len() as u32);
            let of_side = |values: [i64; SIDES]| {
                std::array::from_fn(|side| if is_kept[side] { values[side] } else { 0 })
            };
            let (own, total) = (of_side(call.own), of_side(call.total));
            pruned.nodes.push(Kept { node: node as u32, caller, own, total, other: [0; SIDES] });
        }
    }
    pruned
}

/// Keeps the calls that reach the threshold on any side.
fn cut_together<const SIDES: usize>(first: Pruned<SIDES>, least: i64) -> Pruned<SIDES> {
    let mut pruned = Pruned { nodes: Vec::with_capacity(first.nodes.len()), other: first.other };
    let mut places: Vec<Option<u32>> = vec![None; first.nodes.len()];
    for (place, kept) in first.nodes.into_iter().enumerate() {
        let caller = match kept.caller.map(|caller| places[caller as usize]) {
            None => None,
            Some(Some(caller)) => Some(caller),
            Some(None) => continue,
        };
        if kept.total.iter().any(|&total| total >= least) {
            places[place] = Some(pruned.nodes.len() as u32);
            pruned.nodes.push(Kept { caller, ..kept });
            continue;
        }
        let other = match caller {
            None => &mut pruned.other,
            Some(caller) => &mut pruned.nodes[caller as usize].other,
        };
        (0..SIDES).for_each(|side| other[side] = other[side].saturating_add(kept.total[side]));
    }
    pruned
}

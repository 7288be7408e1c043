//! Rows of boxes. A box is a few numbers: for each side the offset, total and self value, then the index of the name.
//! Offsets count from the end of the previous box. Siblings are sorted by name, "other" comes last.

use std::collections::HashMap;

use plumb_analyze::Callees;
use plumb_store::CallTree;

use super::prune::Pruned;

/// Names, rows, and the largest self value.
pub(crate) struct Layout {
    pub names: Vec<String>,
    pub levels: Vec<Vec<i64>>,
    pub max_self: i64,
}

/// A box that waits for its place in a row.
struct Waiting<const SIDES: usize> {
    what: What,
    level: usize,
    offset: [i64; SIDES],
    own: [i64; SIDES],
    total: [i64; SIDES],
}

/// The content of a box.
#[derive(Clone, Copy)]
enum What {
    Whole,
    /// Index of a kept call.
    Call(u32),
    Other,
}

/// Lays out the kept calls of a tree.
pub(crate) fn layout<const SIDES: usize>(tree: &CallTree<SIDES>, pruned: &Pruned<SIDES>) -> Layout {
    let callees = by_name(tree, pruned);
    let mut names = NameTable::default();
    let mut levels: Vec<Vec<i64>> = Vec::new();
    let mut max_self = 0;
    let whole =
        Waiting { what: What::Whole, level: 0, offset: [0; SIDES], own: [0; SIDES], total: tree.total() };
    let mut waiting = vec![whole];
    while let Some(one) = waiting.pop() {
        if one.level == levels.len() {
            levels.push(Vec::new());
        }
        let name = match one.what {
            What::Whole => names.place("total", None),
            What::Other => names.place("other", None),
            What::Call(place) => {
                let name = tree.nodes[pruned.nodes[place as usize].node as usize].name;
                names.place(&tree.names[name as usize], Some(name))
            }
        };
        max_self = one.own.iter().copied().fold(max_self, i64::max);
        // Backwards, because the last box of a row comes first.
        let row = &mut levels[one.level];
        row.push(name);
        for side in (0..SIDES).rev() {
            row.extend([one.own[side], one.total[side], one.offset[side]]);
        }
        wait(tree, (pruned, &callees), &one, &mut waiting);
    }
    for row in &mut levels {
        row.reverse();
        count_from_the_box_before::<SIDES>(row);
    }
    Layout { names: names.list, levels, max_self }
}

fn count_from_the_box_before<const SIDES: usize>(row: &mut [i64]) {
    let mut ends = [0; SIDES];
    for one in row.chunks_exact_mut(3 * SIDES + 1) {
        for (side, end) in ends.iter_mut().enumerate() {
            let offset = one[3 * side];
            one[3 * side] -= *end;
            *end = offset + one[3 * side + 1];
        }
    }
}

/// Name of a kept call.
fn name<'t, const SIDES: usize>(tree: &'t CallTree<SIDES>, pruned: &Pruned<SIDES>, place: u32) -> &'t str {
    let node = pruned.nodes[place as usize].node;
    &tree.names[tree.nodes[node as usize].name as usize]
}

/// The kept calls by caller, sorted by name.
fn by_name<const SIDES: usize>(tree: &CallTree<SIDES>, pruned: &Pruned<SIDES>) -> Callees {
    let mut callees = Callees::new(pruned.nodes.iter().map(|kept| kept.caller));
    callees.sort_by(|one, other| name(tree, pruned, one).cmp(name(tree, pruned, other)));
    callees
}

/// Queues the callees of a box.
fn wait<const SIDES: usize>(
    tree: &CallTree<SIDES>,
    (pruned, callees): (&Pruned<SIDES>, &Callees),
    caller: &Waiting<SIDES>,
    waiting: &mut Vec<Waiting<SIDES>>,
) {
    let (place, mut other) = match caller.what {
        What::Whole => (None, pruned.other),
        What::Call(place) => (Some(place), pruned.nodes[place as usize].other),
        What::Other => return,
    };
    let level = caller.level + 1;
    let mut offset: [i64; SIDES] = std::array::from_fn(|side| caller.offset[side] + caller.own[side]);
    for &place in callees.of(place) {
        let kept = &pruned.nodes[place as usize];
        if name(tree, pruned, place) == "other" {
            // A function named "other" can't be distinguished from the sum of what is left out.
            (0..SIDES).for_each(|side| other[side] += kept.total[side]);
            continue;
        }
        let (own, total) = (kept.own, kept.total);
        waiting.push(Waiting { what: What::Call(place), level, offset, own, total });
        (0..SIDES).for_each(|side| offset[side] += total[side]);
    }
    if other != [0; SIDES] {
        waiting.push(Waiting { what: What::Other, level, offset, own: other, total: other });
    }
}

/// Names in order of first use.
#[derive(Default)]
struct NameTable {
    list: Vec<String>,
    /// By the index of a name in the tree.
    known: HashMap<Option<u32>, i64>,
}

impl NameTable {
    fn place(&mut self, name: &str, key: Option<u32>) -> i64 {
        if self.list.is_empty() {
            self.list.push(name.to_owned());
            return 0;
        }
        let next = self.list.len() as i64;
        *self.known.entry(key).or_insert_with(|| {
            self.list.push(name.to_owned());
            next
        })
    }
}

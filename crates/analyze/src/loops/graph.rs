//! Natural loops of a function (Aho, Lam, Sethi, Ullman: Compilers, 9.6), by basic block.

use std::collections::BTreeSet;

use crate::annotate::{AnnotatedRow, Annotation, InstructionKind, Listing};

/// The blocks of a loop, or of a function without a loop.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    /// The block at which an iteration begins; `None` without a loop.
    pub header: Option<usize>,
    /// Blocks of the loop, without those of inner loops.
    pub own: BTreeSet<usize>,
    /// Cost of these blocks.
    pub weight: f64,
}

/// The control flow graph of basic blocks.
pub(super) struct Graph {
    /// Indices of each block's first and last instruction.
    pub extents: Vec<(usize, usize)>,
    pub successors: Vec<Vec<usize>>,
    predecessors: Vec<Vec<usize>>,
}

impl Graph {
    pub fn new(listing: &Listing) -> Self {
        let instructions = listing.instructions();
        let count = instructions.last().map_or(0, |last| last.block + 1);
        let mut extents = vec![(usize::MAX, 0); count];
        for (index, instruction) in instructions.iter().enumerate() {
            let (first, last) = &mut extents[instruction.block];
            (*first, *last) = ((*first).min(index), index);
        }
        let mut graph =
            Graph { extents, successors: vec![Vec::new(); count], predecessors: vec![Vec::new(); count] };
        for block in 0..count {
            let last = graph.extents[block].1;
            let kind = instructions[last].class.kind;
            let ends = matches!(
                kind,
                InstructionKind::Jump | InstructionKind::IndirectJump | InstructionKind::Return
            );
            if !ends && last + 1 < instructions.len() {
                graph.connect(block, instructions[last + 1].block);
            }
            if let Some(to) = listing.jump(last) {
                graph.connect(block, instructions[to].block);
            }
        }
        graph
    }

    /// Returns the blocks from which control reaches a block.
    pub fn predecessors(&self, block: usize) -> impl Iterator<Item = usize> {
        self.predecessors[block].iter().copied()
    }

    /// Whether control reaches a block other than by an indirect jump.
    pub fn has_predecessor(&self, block: usize) -> bool {
        !self.predecessors[block].is_empty()
    }

    fn connect(&mut self, from: usize, to: usize) {
        if !self.successors[from].contains(&to) {
            self.successors[from].push(to);
            self.predecessors[to].push(from);
        }
    }

    /// Returns the loops: one per back edge, with its target as the header and all blocks that reach the edge without passing the header.
    /// Two back edges to one header are two loops. One may be inside the other.
    fn loops(&self, is_sampled: &impl Fn(usize) -> bool) -> Vec<(usize, BTreeSet<usize>)> {
        let mut found: Vec<(usize, BTreeSet<usize>)> = Vec::new();
        for (from, header) in self.back_edges() {
            if let Some(body) = self.body(header, from, is_sampled) {
                found.push((header, body));
            }
        }
        found
    }

    /// Returns the edges to a block that is on the depth-first path from an entry.
    fn back_edges(&self) -> Vec<(usize, usize)> {
        const NEW: u8 = 0;
        const OPEN: u8 = 1;
        const DONE: u8 = 2;
        let mut state = vec![NEW; self.successors.len()];
        let mut edges = Vec::new();
        // Blocks that only indirect jumps reach are entries too.
        for entry in 0..self.successors.len() {
            let mut way = vec![(entry, 0)];
            if state[entry] != NEW {
                continue;
            }
            state[entry] = OPEN;
            while let Some((block, next)) = way.last_mut() {
                let Some(&to) = self.successors[*block].get(*next) else {
                    state[*block] = DONE;
                    way.pop();
                    continue;
                };
                *next += 1;
                match state[to] {
                    OPEN => edges.push((*block, to)),
                    NEW => {
                        state[to] = OPEN;
                        way.push((to, 0));
                    }
                    _ => {}
                }
            }
        }
        edges
    }

    fn body(
        &self,
        header: usize,
        from: usize,
        is_sampled: &impl Fn(usize) -> bool,
    ) -> Option<BTreeSet<usize>> {
        let mut body = BTreeSet::from([header]);
        let mut open = vec![from];
        while let Some(block) = open.pop() {
            // A block without predecessors is padding, unless it has samples: then an indirect jump reaches it.
            let is_padding = self.predecessors[block].is_empty() && !is_sampled(block);
            if is_padding || !body.insert(block) {
                continue;
            }
            // The function's entry is in no loop except as its header.
            if block == 0 {
                return None;
            }
            open.extend(&self.predecessors[block]);
        }
        Some(body)
    }
}

/// Returns an instruction's cost: the mean of its own and its adjusted weight, because after a jump neither is certain.
pub(super) fn weight(row: &AnnotatedRow) -> f64 {
    (row.adjusted + row.own.weight as f64) / 2.0
}

/// Returns the loop with the most weight outside of its inner loops; without any loop all blocks. `None` if nothing has weight.
pub(super) fn innermost(annotation: &Annotation, graph: &Graph) -> Option<Blocks> {
    let weight_of = |block: usize| {
        let (first, last) = graph.extents[block];
        annotation.rows[first..=last].iter().map(weight).sum::<f64>()
    };
    let loops = graph.loops(&|block| weight_of(block) > 0.0);
    let all: BTreeSet<usize> = (0..graph.extents.len()).collect();
    let is_within = |inner: &BTreeSet<usize>, outer: &BTreeSet<usize>| {
        inner.len() < outer.len() && inner.is_subset(outer)
    };
    let own = |blocks: &BTreeSet<usize>| {
        let mut own = blocks.clone();
        loops.iter().filter(|(_, inner)| is_within(inner, blocks)).for_each(|(_, inner)| {
            own.retain(|block| !inner.contains(block));
        });
        own
    };
    let mut candidates: Vec<Blocks> = Vec::new();
    for (header, blocks) in &loops {
        let own = own(blocks);
        candidates.push(Blocks {
            header: Some(*header),
            weight: own.iter().map(|&b| weight_of(b)).sum(),
            own,
        });
    }
    let rest = own(&all);
    candidates.push(Blocks {
        header: None,
        weight: rest.iter().map(|&block| weight_of(block)).sum(),
        own: rest,
    });
    candidates
        .into_iter()
        .filter(|one| one.weight > 0.0)
        .max_by(|one, other| one.weight.total_cmp(&other.weight))
}

//! Costs of an annotated function summed by source line and by basic block.

use std::collections::HashMap;

use super::{Annotation, Doubt, SourcePlace};
use crate::cost::Cost;

/// A source line and the cost of the code generated for it, inlined or not.
#[derive(Clone, Debug, PartialEq)]
pub struct HotLine {
    /// The line, and the innermost function around it.
    pub place: SourcePlace,
    /// Samples that landed on its instructions.
    pub own: Cost,
    /// Weight of those samples after the skid adjustment.
    pub adjusted: f64,
    /// Samples in its callees.
    pub called: Cost,
    /// Indices of its instructions.
    pub instructions: Vec<usize>,
}

/// A basic block.
#[derive(Clone, Debug, PartialEq)]
pub struct HotBlock {
    /// Index of its first instruction.
    pub first: usize,
    /// Index of its last instruction.
    pub last: usize,
    /// Samples that landed in it.
    pub own: Cost,
    /// Weight of those samples after the skid adjustment.
    pub adjusted: f64,
    /// Part of `adjusted` that can be attributed to the block but not to an instruction: see [`Doubt::AfterBranch`].
    pub after_branch: f64,
}

impl Annotation {
    /// Returns the indices of instructions with adjusted weight, heaviest first.
    pub fn hot_instructions(&self) -> Vec<usize> {
        let mut hot: Vec<usize> =
            (0..self.rows.len()).filter(|&index| self.rows[index].adjusted > 0.0).collect();
        hot.sort_by(|&a, &b| self.rows[b].adjusted.total_cmp(&self.rows[a].adjusted).then(a.cmp(&b)));
        hot
    }

    /// Returns the source lines with weight, heaviest first. Instructions without a line are left out.
    pub fn hot_lines(&self) -> Vec<HotLine> {
        let mut numbers: HashMap<&SourcePlace, usize> = HashMap::new();
        let mut lines: Vec<HotLine> = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let Some(place) = row.places.first().filter(|place| place.line > 0) else { continue };
            let number = *numbers.entry(place).or_insert(lines.len());
            if number == lines.len() {
                let (own, called) = (Cost::default(), Cost::default());
                lines.push(HotLine {
                    place: place.clone(),
                    own,
                    adjusted: 0.0,
                    called,
                    instructions: Vec::new(),
                });
            }
            let line = &mut lines[number];
            line.own += row.own;
            line.adjusted += row.adjusted;
            line.called += row.called;
            line.instructions.push(index);
        }
        lines.retain(|line| line.adjusted > 0.0 || line.own.samples > 0 || line.called.samples > 0);
        lines.sort_by(|a, b| {
            let order = |line: &HotLine| (line.place.file.clone(), line.place.line);
            b.adjusted.total_cmp(&a.adjusted).then_with(|| order(a).cmp(&order(b)))
        });
        lines
    }

    /// Returns all blocks in address order.
    pub fn blocks(&self) -> Vec<HotBlock> {
        let mut blocks: Vec<HotBlock> = Vec::new();
        for (index, (instruction, row)) in self.listing.instructions().iter().zip(&self.rows).enumerate() {
            if instruction.block == blocks.len() {
                let (own, adjusted, after_branch) = (Cost::default(), 0.0, 0.0);
                blocks.push(HotBlock { first: index, last: index, own, adjusted, after_branch });
            }
            let Some(block) = blocks.last_mut() else { continue };
            block.last = index;
            block.own += row.own;
            block.adjusted += row.adjusted;
            if row.doubt == Some(Doubt::AfterBranch) {
                block.after_branch += row.adjusted;
            }
        }
        blocks
    }
}

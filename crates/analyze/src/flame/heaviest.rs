//! The heaviest boxes of a flame graph: no screen shows hundreds of thousands.

use std::cmp::Reverse;

use super::label::{BoxKind, Label};
use super::{Flame, FlameBox};
use crate::cost::Cost;

/// Name of the box that stands for smaller callees. Its first letter puts it behind most functions.
const SMALLER: &str = "… smaller calls";

impl Flame<'_> {
    /// Keeps at most `most` boxes, those with the largest weights, and the root. All other callees of a box become one, named `… smaller calls`, so
    /// that the boxes' own costs still add up.
    pub fn keep_heaviest(&mut self, most: usize) {
        if self.boxes.len() <= most {
            return;
        }
        let totals = self.totals();
        let is_kept = heaviest(&totals, most);
        let smaller = self.smaller_callees(&totals, &is_kept);
        self.left_out += is_kept.iter().filter(|&&kept| !kept).count();
        let label = self.keep_labels(&is_kept);
        self.boxes = kept_boxes(&self.boxes, &is_kept, &smaller, label);
    }

    /// Cost of the callees of each kept box that are not kept.
    fn smaller_callees(&self, totals: &[Cost], is_kept: &[bool]) -> Vec<Cost> {
        let mut smaller = vec![Cost::default(); self.boxes.len()];
        let mut path: Vec<usize> = Vec::new();
        for (place, one) in self.boxes.iter().enumerate() {
            path.truncate(one.depth as usize);
            if let Some(&caller) = path.last()
                && is_kept[caller]
                && !is_kept[place]
            {
                smaller[caller] += totals[place];
            }
            path.push(place);
        }
        smaller
    }

    /// Keeps the labels of kept boxes and adds that of smaller ones. Returns its index.
    fn keep_labels(&mut self, is_kept: &[bool]) -> u32 {
        let mut is_used = vec![false; self.labels.len()];
        let kept = self.boxes.iter().zip(is_kept).filter(|&(_, &kept)| kept);
        kept.for_each(|(one, _)| is_used[one.label as usize] = true);
        let new = Label { name: SMALLER.into(), kind: BoxKind::Group, dso: "", file: "" };
        let mut places = vec![0_u32; self.labels.len()];
        let mut labels = Vec::new();
        let mut of_smaller = None;
        for (place, label) in std::mem::take(&mut self.labels).into_iter().enumerate() {
            // The root's label is first, whatever its name.
            if place > 0 && of_smaller.is_none() && label > new {
                of_smaller = Some(labels.len() as u32);
                labels.push(new.clone());
            }
            if is_used[place] {
                places[place] = labels.len() as u32;
                labels.push(label);
            }
        }
        let of_smaller = of_smaller.unwrap_or_else(|| {
            labels.push(new);
            labels.len() as u32 - 1
        });
        self.labels = labels;
        self.boxes.iter_mut().for_each(|one| one.label = places[one.label as usize]);
        of_smaller
    }
}

/// Whether each box is among the `most` heaviest, of equal ones the first in pre-order; and the root. The caller of such a box is among them as well: it
/// weighs as much or more, and is before it.
fn heaviest(totals: &[Cost], most: usize) -> Vec<bool> {
    let mut weights: Vec<u64> = totals.iter().map(|total| total.weight).collect();
    let (heavier, &mut least, _) = weights.select_nth_unstable_by_key(most, |&weight| Reverse(weight));
    let mut equal = most - heavier.iter().filter(|&&weight| weight > least).count();
    let is_kept = |(place, total): (usize, &Cost)| {
        let is_equal = total.weight == least && equal > 0;
        equal -= usize::from(is_equal);
        place == 0 || total.weight > least || is_equal
    };
    totals.iter().enumerate().map(is_kept).collect()
}

/// The kept boxes in pre-order, and among the callees of each the one for `smaller` ones, if they have a cost.
fn kept_boxes(boxes: &[FlameBox], is_kept: &[bool], smaller: &[Cost], label: u32) -> Vec<FlameBox> {
    let mut kept: Vec<FlameBox> = Vec::new();
    // By depth, what is still to be added below the box there.
    let mut waiting: Vec<Cost> = Vec::new();
    let sum = |depth: usize, own: Cost| FlameBox { depth: depth as u32, label, line: 0, own };
    for (place, one) in boxes.iter().enumerate().filter(|&(place, _)| is_kept[place]) {
        let depth = one.depth as usize;
        while waiting.len() > depth {
            let depth = waiting.len();
            kept.extend(waiting.pop().filter(|cost| cost.samples > 0).map(|cost| sum(depth, cost)));
        }
        if let Some(cost) = waiting.last_mut().filter(|cost| cost.samples > 0 && label < one.label) {
            kept.push(sum(depth, std::mem::take(cost)));
        }
        kept.push(*one);
        waiting.push(smaller[place]);
    }
    while let Some(cost) = waiting.pop() {
        if cost.samples > 0 {
            kept.push(sum(waiting.len() + 1, cost));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of boxes with depth, label and own samples.
    fn flame(labels: &[&'static str], boxes: &[(u32, u32, u64)]) -> Flame<'static> {
        let label =
            |name: &&'static str| Label { name: (*name).into(), kind: BoxKind::Program, dso: "", file: "" };
        let one = |&(depth, label, samples): &(u32, u32, u64)| FlameBox {
            depth,
            label,
            line: 0,
            own: Cost { weight: samples * 10, samples },
        };
        Flame {
            labels: labels.iter().map(label).collect(),
            boxes: boxes.iter().map(one).collect(),
            left_out: 0,
        }
    }

    fn shown(flame: &Flame<'_>) -> Vec<String> {
        let label = |one: &FlameBox| flame.labels[one.label as usize].name.clone();
        flame.boxes.iter().map(|one| format!("{} {} {}", one.depth, label(one), one.own.samples)).collect()
    }

    #[test]
    fn the_smallest_callees_become_one_and_the_sum_stays() {
        let labels = ["all", "!a", "b", "c", "main", "x"];
        let boxes =
            [(0, 0, 0), (1, 4, 1), (2, 1, 20), (2, 2, 2), (3, 5, 3), (2, 3, 30), (3, 5, 4), (1, 5, 1)];
        let mut some = flame(&labels, &boxes);
        let whole = some.total();
        some.keep_heaviest(8);
        assert_eq!(some.left_out, 0);
        some.keep_heaviest(4);
        assert_eq!(some.left_out, 4);
        let expected = [
            "0 all 0",
            "1 main 1",
            "2 !a 20",
            "2 c 30",
            "3 … smaller calls 4",
            "2 … smaller calls 5",
            "1 … smaller calls 1",
        ];
        assert_eq!(shown(&some), expected);
        assert_eq!(some.total(), whole);
        assert_eq!(some.labels.len(), 5);
    }

    #[test]
    fn of_equal_boxes_the_first_are_kept() {
        let mut some = flame(&["all", "a", "b", "c"], &[(0, 0, 0), (1, 1, 1), (1, 2, 1), (1, 3, 1)]);
        some.keep_heaviest(2);
        assert_eq!(some.left_out, 2);
        assert_eq!(shown(&some), ["0 all 0", "1 a 1", "1 … smaller calls 2"]);
    }
}

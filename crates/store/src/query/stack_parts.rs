//! Stacks of a query by name, and which of their calls are the largest.
//!
//! Calls are looked at from the outermost frames inwards, always the largest one next: whatever is too small for the answer costs no more than its
//! outermost frame. The calls that are kept are the largest ones of all stacks at hand, and their values are exact.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::calls::ROOT;
use crate::cancellation::Cancellation;
use crate::error::StoreError;

/// Stacks of a block or a head, with their values on a side. Stacks that share outer frames are adjacent.
pub(super) struct StackPart {
    side: usize,
    /// Names of all frames, outermost first.
    names: Vec<u32>,
    /// End of each stack in `names`.
    ends: Vec<u32>,
    values: Vec<i64>,
}

impl StackPart {
    pub fn new(side: usize) -> Self {
        Self { side, names: Vec::new(), ends: Vec::new(), values: Vec::new() }
    }

    /// Adds a stack. Returns whether there was room for it.
    pub fn push(&mut self, stack: impl Iterator<Item = u32>, value: i64) -> bool {
        self.names.extend(stack);
        let Ok(end) = u32::try_from(self.names.len()) else { return false };
        self.ends.push(end);
        self.values.push(value);
        true
    }

    /// Gives back memory that no stack needs.
    pub fn shrink(&mut self) {
        self.names.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.values.shrink_to_fit();
    }

    fn stack(&self, place: u32) -> &[u32] {
        let place = place as usize;
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.names[begin as usize..self.ends[place] as usize]
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        self.names.capacity() * 4 + self.ends.capacity() * 4 + self.values.capacity() * 8
    }

    /// Most calls that its stacks can be.
    pub fn most_calls(&self) -> usize {
        let mut before: &[u32] = &[];
        let mut calls = 0;
        for place in 0..self.ends.len() as u32 {
            let stack = self.stack(place);
            calls += stack.len() - stack.iter().zip(before).take_while(|(one, other)| one == other).count();
            before = stack;
        }
        calls
    }
}

/// Adjacent stacks of a part.
#[derive(Clone, Copy)]
struct Segment {
    part: u32,
    from: u32,
    until: u32,
}

/// Adjacent stacks of a part that go on with the same name.
struct Run {
    name: u32,
    stacks: Segment,
    value: i64,
    /// Sum of the absolute values.
    size: u64,
}

/// Stacks that go on with the same name.
struct Sibling<const SIDES: usize> {
    name: u32,
    /// The largest side's sum of absolute values.
    size: u64,
    /// Part and place of the first stack. It decides which of equally large calls is first, as ids of names differ from time to time.
    first: (u32, u32),
    /// Places of its runs.
    runs: Range<usize>,
    total: [i64; SIDES],
}

/// Size of a waiting call, its first stack, and its place among the waiting ones.
type Next = (u64, Reverse<(u32, u32)>, u32);

/// A call that has not been looked into.
struct Waiting<const SIDES: usize> {
    caller: u32,
    name: u32,
    depth: usize,
    stacks: Box<[Segment]>,
    total: [i64; SIDES],
}

/// Collects the calls that [`largest_calls`] finds.
pub(super) trait CallSink<const SIDES: usize> {
    /// Adds the value that a call itself has. Returns the call's number.
    fn call(&mut self, caller: u32, name: u32, own: [i64; SIDES]) -> u32;
    /// Adds the value of callees that are too small.
    fn other(&mut self, caller: u32, total: [i64; SIDES]);
}

/// Finds the `most` largest calls of stacks, callers first.
pub(super) fn largest_calls<const SIDES: usize>(
    parts: &[StackPart],
    most: usize,
    sink: &mut impl CallSink<SIDES>,
    cancellation: &Cancellation,
) -> Result<(), StoreError> {
    let (mut waiting, mut free): (Vec<Option<Waiting<SIDES>>>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut order: BinaryHeap<Next> = BinaryHeap::new();
    let (mut runs, mut siblings): (Vec<Run>, Vec<Sibling<SIDES>>) = (Vec::new(), Vec::new());
    let whole =
        |(part, of): (usize, &StackPart)| Segment { part: part as u32, from: 0, until: of.ends.len() as u32 };
    let all: Box<[Segment]> = parts.iter().enumerate().map(whole).collect();
    let mut kept = 0;
    let mut next = Some((ROOT, 0, all));
    while let Some((caller, depth, stacks)) = next.take() {
        cancellation.check()?;
        runs_of(parts, &stacks, depth, &mut runs);
        siblings_of(parts, &runs, &mut siblings);
        let left = most - kept;
        if siblings.len() > left {
            siblings.select_nth_unstable_by_key(left, |one| (Reverse(one.size), one.first));
            siblings.drain(left..).for_each(|small| sink.other(caller, small.total));
        }
        for Sibling { name, size, first, runs: own, total } in siblings.drain(..) {
            let stacks = runs[own].iter().map(|run| run.stacks).collect();
            let one = Some(Waiting { caller, name, depth, stacks, total });
            let place = free.pop().unwrap_or(waiting.len() as u32);
            match waiting.get_mut(place as usize) {
                Some(slot) => *slot = one,
                None => waiting.push(one),
            }
            order.push((size, Reverse(first), place));
        }
        if kept < most
            && let Some((_, _, place)) = order.pop()
            && let Some(one) = waiting[place as usize].take()
        {
            free.push(place);
            let own = own_of(parts, &one.stacks, one.depth + 1);
            let call = sink.call(one.caller, one.name, own);
            next = Some((call, one.depth + 1, one.stacks));
            kept += 1;
        }
    }
    let mut rest: Vec<Waiting<SIDES>> = waiting.into_iter().flatten().collect();
    rest.sort_unstable_by_key(|one| one.caller);
    rest.into_iter().for_each(|one| sink.other(one.caller, one.total));
    Ok(())
}

/// Values of the stacks that end at a depth.
fn own_of<const SIDES: usize>(parts: &[StackPart], stacks: &[Segment], depth: usize) -> [i64; SIDES] {
    let mut own = [0_i64; SIDES];
    for segment in stacks {
        let part = &parts[segment.part as usize];
        let ending = (segment.from..segment.until).filter(|&place| part.stack(place).len() == depth);
        for place in ending {
            own[part.side] = own[part.side].saturating_add(part.values[place as usize]);
        }
    }
    own
}

/// Fills `siblings` with sums of runs, which are sorted by name.
fn siblings_of<const SIDES: usize>(parts: &[StackPart], runs: &[Run], siblings: &mut Vec<Sibling<SIDES>>) {
    siblings.clear();
    let mut begin = 0;
    for same in runs.chunk_by(|one, next| one.name == next.name) {
        let (mut total, mut sizes) = ([0_i64; SIDES], [0_u64; SIDES]);
        for run in same {
            let side = parts[run.stacks.part as usize].side;
            total[side] = total[side].saturating_add(run.value);
            sizes[side] = sizes[side].saturating_add(run.size);
        }
        siblings.push(Sibling {
            name: same[0].name,
            size: sizes.into_iter().max().unwrap_or(0),
            first: (same[0].stacks.part, same[0].stacks.from),
            runs: begin..begin + same.len(),
            total,
        });
        begin += same.len();
    }
}

/// Fills `runs` with what stacks are at a depth, sorted by name.
fn runs_of(parts: &[StackPart], stacks: &[Segment], depth: usize, runs: &mut Vec<Run>) {
    runs.clear();
    for segment in stacks {
        let part = &parts[segment.part as usize];
        let mut is_open = false;
        for place in segment.from..segment.until {
            let Some(&name) = part.stack(place).get(depth) else {
                is_open = false;
                continue;
            };
            let value = part.values[place as usize];
            match runs.last_mut().filter(|last| is_open && last.name == name) {
                Some(last) => {
                    last.stacks.until = place + 1;
                    last.value = last.value.saturating_add(value);
                    last.size = last.size.saturating_add(value.unsigned_abs());
                }
                None => runs.push(Run {
                    name,
                    stacks: Segment { part: segment.part, from: place, until: place + 1 },
                    value,
                    size: value.unsigned_abs(),
                }),
            }
            is_open = true;
        }
    }
    runs.sort_by_key(|run| run.name);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use std::collections::BTreeMap;

    use super::*;

    /// Path, own value and total of each call, and the sums that were left out by path of the caller.
    #[derive(Default)]
    struct Found {
        paths: Vec<Vec<u32>>,
        own: BTreeMap<Vec<u32>, i64>,
        other: BTreeMap<Vec<u32>, i64>,
    }

    impl CallSink<1> for Found {
        fn call(&mut self, caller: u32, name: u32, own: [i64; 1]) -> u32 {
            let mut path = self.paths.get(caller as usize).cloned().unwrap_or_default();
            path.push(name);
            self.own.insert(path.clone(), own[0]);
            self.paths.push(path);
            self.paths.len() as u32 - 1
        }

        fn other(&mut self, caller: u32, total: [i64; 1]) {
            *self.other.entry(self.paths.get(caller as usize).cloned().unwrap_or_default()).or_default() +=
                total[0];
        }
    }

    /// Two parts of pseudorandom stacks, each with its value.
    fn stacks() -> [Vec<(Vec<u32>, i64)>; 2] {
        let mut state = 7_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        std::array::from_fn(|_| {
            let mut one: Vec<(Vec<u32>, i64)> = (0..200)
                .map(|_| {
                    let names = (0..=draw(5)).map(|_| draw(4) as u32).collect();
                    (names, 1 + draw(1000) as i64)
                })
                .collect();
            one.sort();
            one
        })
    }

    #[test]
    fn the_largest_calls_of_all_parts_are_kept_with_exact_values() {
        let stacks = stacks();
        let (mut totals, mut own): (BTreeMap<Vec<u32>, i64>, BTreeMap<Vec<u32>, i64>) = Default::default();
        let parts = stacks.each_ref().map(|stacks| {
            let mut part = StackPart::new(0);
            for (names, value) in stacks {
                part.push(names.iter().copied(), *value);
                (1..=names.len()).for_each(|end| *totals.entry(names[..end].to_vec()).or_default() += value);
                *own.entry(names.clone()).or_default() += value;
            }
            part
        });
        let mut sizes: Vec<i64> = totals.values().copied().collect();
        sizes.sort_unstable_by(|one, other| other.cmp(one));
        let all: i64 = stacks.iter().flatten().map(|(_, value)| value).sum();
        for most in [1, 10, 100, totals.len(), usize::MAX] {
            let mut found = Found::default();
            largest_calls(&parts, most, &mut found, &Cancellation::default()).unwrap();
            assert_eq!(found.paths.len(), most.min(totals.len()));
            for path in &found.paths {
                assert!(totals[path] >= sizes[found.paths.len() - 1]);
                assert_eq!(found.own[path], own.get(path).copied().unwrap_or(0));
            }
            let sum: i64 = found.own.values().chain(found.other.values()).sum();
            assert_eq!(sum, all);
            assert_eq!(found.other.is_empty(), most >= totals.len());
        }
    }
}

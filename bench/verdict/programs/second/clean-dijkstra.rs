//! Shortest ways in a small grid with a binary heap: well made, nothing to mend.
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SIDE: usize = 120;

fn shortest(costs: &[u32], from: usize) -> u32 {
    let mut best = vec![u32::MAX; SIDE * SIDE];
    let mut heap = BinaryHeap::with_capacity(SIDE * SIDE);
    best[from] = 0;
    heap.push(Reverse((0, from)));
    while let Some(Reverse((cost, at))) = heap.pop() {
        if cost > best[at] {
            continue;
        }
        let (row, column) = (at / SIDE, at % SIDE);
        let mut step = |to: usize| {
            let next = cost + costs[to];
            if next < best[to] {
                best[to] = next;
                heap.push(Reverse((next, to)));
            }
        };
        if row > 0 {
            step(at - SIDE);
        }
        if row + 1 < SIDE {
            step(at + SIDE);
        }
        if column > 0 {
            step(at - 1);
        }
        if column + 1 < SIDE {
            step(at + 1);
        }
    }
    best.into_iter().max().unwrap_or(0)
}

fn main() {
    let costs: Vec<u32> = (0..SIDE * SIDE).map(|i| (i * 7919 % 97 + 1) as u32).collect();
    let total: u64 = (0..500).map(|from| u64::from(shortest(&costs, from * 23 % (SIDE * SIDE)))).sum();
    eprintln!("{total}");
}

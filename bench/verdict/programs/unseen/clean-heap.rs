//! Clean: shortest ways in a grid by Dijkstra with a binary heap, the cells in one vector.
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SIDE: usize = 600;

fn shortest(costs: &[u32]) -> u32 {
    let mut least = vec![u32::MAX; SIDE * SIDE];
    let mut heap = BinaryHeap::with_capacity(SIDE * 8);
    least[0] = 0;
    heap.push((Reverse(0u32), 0usize));
    while let Some((Reverse(cost), at)) = heap.pop() {
        if cost > least[at] {
            continue;
        }
        let (row, column) = (at / SIDE, at % SIDE);
        let mut visit = |next: usize| {
            let sum = cost + costs[next];
            if sum < least[next] {
                least[next] = sum;
                heap.push((Reverse(sum), next));
            }
        };
        if row > 0 { visit(at - SIDE) }
        if row + 1 < SIDE { visit(at + SIDE) }
        if column > 0 { visit(at - 1) }
        if column + 1 < SIDE { visit(at + 1) }
    }
    least[SIDE * SIDE - 1]
}

fn main() {
    let mut state = 1u32;
    let costs: Vec<u32> = (0..SIDE * SIDE)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            1 + (state >> 28)
        })
        .collect();
    let sum: u64 = (0..14).map(|_| u64::from(shortest(&costs))).sum();
    eprintln!("{sum}");
}

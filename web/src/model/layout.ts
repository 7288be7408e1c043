// From weights to pixels along one row, and back. A row of any length costs no more than the width of the screen:
// boxes too narrow to see are jumped over by binary search.

import type { Tree } from "./tree";

/** The stretch of weight that fills the width. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Boxes narrower than this many pixels are drawn together as one. */
export const NARROWEST = 0.5;

/** Called for each visible box with its pixels, cut off at the edges; box -1 stands for a crowd of narrow ones. */
export type Draw = (box: number, left: number, right: number) => void;

export function spanOf(tree: Tree, box: number): Span {
  return { from: tree.start[box], to: tree.start[box] + tree.total[box] };
}

export function visible(tree: Tree, depth: number, span: Span, width: number, draw: Draw): void {
  const row = tree.rows[depth];
  const { start: starts, total: totals } = tree;
  const weight = span.to - span.from;
  if (row === undefined || !(weight > 0) || !(width > 0)) return;
  const scale = width / weight;
  const narrow = NARROWEST / scale;
  let crowd = -1;
  let crowdEnd = 0;
  const flush = () => {
    if (crowd >= 0 && (crowdEnd - crowd) * scale >= NARROWEST) {
      draw(-1, Math.max(0, (crowd - span.from) * scale), Math.min(width, (crowdEnd - span.from) * scale));
    }
    crowd = -1;
  };
  for (let i = firstEndingAfter(tree, row, span.from, 0); i < row.length; ) {
    const box = row[i];
    const start = starts[box];
    if (start >= span.to) break;
    const end = start + totals[box];
    if (totals[box] >= narrow) {
      flush();
      draw(box, Math.max(0, (start - span.from) * scale), Math.min(width, (end - span.from) * scale));
      i++;
      continue;
    }
    // The last box that ends within half a pixel of here: all up to it are one crowd, gaps among them too small to see.
    const next = Math.max(i + 1, firstEndingAfter(tree, row, start + narrow, i));
    const last = row[next - 1];
    if (crowd >= 0 && start - crowdEnd > narrow) flush();
    if (crowd < 0) crowd = start;
    crowdEnd = starts[last] + totals[last];
    i = next;
  }
  flush();
}

/** The box at a depth that covers `weight`, or -1. */
export function hit(tree: Tree, depth: number, weight: number): number {
  const row = tree.rows[depth];
  if (row === undefined) return -1;
  const i = firstEndingAfter(tree, row, weight, 0);
  return i < row.length && tree.start[row[i]] <= weight ? row[i] : -1;
}

/** Index in `row`, at or after `from`, of the first box that ends to the right of `weight`: most often it is near. */
function firstEndingAfter({ start, total }: Tree, row: Uint32Array, weight: number, from: number): number {
  let low = from;
  let high = from;
  for (let step = 1; high < row.length && start[row[high]] + total[row[high]] <= weight; step *= 2) {
    low = high + 1;
    high += step;
  }
  if (high > row.length) high = row.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (start[row[middle]] + total[row[middle]] > weight) high = middle;
    else low = middle + 1;
  }
  return low;
}

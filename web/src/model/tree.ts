// A flame graph's boxes as columns, in pre-order: a box comes before what it called, and children of one box are in
// the order of their names, so that the same code is in the same place in every picture.
//
// A box is a number (its row in the columns). Nothing here knows pixels, colours or the page.

import type { Sides } from "./diff";

/** What only the profile can know of a box; everything else follows from it. One entry a box, in pre-order. */
export interface Columns {
  /** Distance from the root, which has 0. */
  readonly depth: Uint32Array;
  /** Row of the frame table. */
  readonly frame: Uint32Array;
  /** Samples taken in the box itself, not in what it called. */
  readonly selfSamples: Float64Array;
  /** Their weight, in the event's unit. */
  readonly self: Float64Array;
  /** Source line most often seen in the box, 0 if not known. */
  readonly line: Uint32Array;
  /** Of a differential picture: what `self` was made of. */
  readonly sides?: Sides;
  /** Of a picture in the order of time: when boxes begin and how long they last, in nanoseconds. */
  readonly times?: { readonly from: Float64Array; readonly length: Float64Array };
}

export interface Tree extends Columns {
  readonly size: number;
  /** The caller's box, -1 for the root. */
  readonly parent: Int32Array;
  /** One past the last box of what is below: `[box, end[box])` is a subtree. */
  readonly end: Uint32Array;
  /** Weight of the box and of all that it called. */
  readonly total: Float64Array;
  readonly samples: Float64Array;
  /** What each side of a differential picture spent in the box and in all that it called. */
  readonly sums?: { readonly base: Float64Array; readonly next: Float64Array };
  /** Weight to the left of the box. */
  readonly start: Float64Array;
  /** Depth of the deepest box below. */
  readonly bottom: Uint32Array;
  /** The boxes of each depth from left to right. */
  readonly rows: readonly Uint32Array[];
}

/** Works out the tree. Depths that skip a level are an error: the file is damaged. */
export function buildTree(columns: Columns): Tree {
  const { depth, self, selfSamples } = columns;
  const size = depth.length;
  if (size === 0 || depth[0] !== 0) throw new Error("the flame graph has no root");
  const parent = parents(depth);
  const end = new Uint32Array(size);
  const total = self.slice();
  const samples = selfSamples.slice();
  const bottom = depth.slice();
  for (let box = size - 1; box >= 0; box--) {
    if (end[box] === 0) end[box] = box + 1;
    const up = parent[box];
    if (up < 0) continue;
    total[up] += total[box];
    samples[up] += samples[box];
    if (bottom[box] > bottom[up]) bottom[up] = bottom[box];
    if (end[up] === 0) end[up] = end[box];
  }
  const start = starts(parent, total);
  const sums = columns.sides && { base: added(columns.sides.base, parent), next: added(columns.sides.next, parent) };
  return { ...columns, ...(sums ? { sums } : {}), size, parent, end, total, samples, start, bottom, rows: rowsOf(depth, bottom[0]) };
}

/** Each box's own and that of all that it called. */
function added(self: Float64Array, parent: Int32Array): Float64Array {
  const sums = self.slice();
  for (let box = sums.length - 1; box > 0; box--) sums[parent[box]] += sums[box];
  return sums;
}

function parents(depth: Uint32Array): Int32Array {
  const parent = new Int32Array(depth.length);
  parent[0] = -1;
  for (let box = 1; box < depth.length; box++) {
    const level = depth[box];
    let up = box - 1;
    if (level === 0 || level > depth[up] + 1) throw new Error(`box ${box} of the flame graph has no caller`);
    while (depth[up] >= level) up = parent[up];
    parent[box] = up;
  }
  return parent;
}

/** Children stand side by side from their parent's left edge; what is left at the right is the parent's own. */
function starts(parent: Int32Array, total: Float64Array): Float64Array {
  const start = new Float64Array(parent.length);
  const next = new Float64Array(parent.length);
  for (let box = 1; box < parent.length; box++) {
    const up = parent[box];
    start[box] = start[up] + next[up];
    next[up] += total[box];
  }
  return start;
}

function rowsOf(depth: Uint32Array, deepest: number): Uint32Array[] {
  const counts = new Uint32Array(deepest + 1);
  for (let box = 0; box < depth.length; box++) counts[depth[box]]++;
  const rows = Array.from(counts, (count) => new Uint32Array(count));
  counts.fill(0);
  for (let box = 0; box < depth.length; box++) rows[depth[box]][counts[depth[box]]++] = box;
  return rows;
}

/** Whether `outer` is `inner` or one of its callers. */
export function contains(tree: Tree, outer: number, inner: number): boolean {
  return outer <= inner && inner < tree.end[outer];
}

/** The boxes from the root to `box`. */
export function pathTo(tree: Tree, box: number): number[] {
  const path: number[] = [];
  for (let at = box; at >= 0; at = tree.parent[at]) path.push(at);
  return path.reverse();
}

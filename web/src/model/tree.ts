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
  /** Weight of the samples taken in the box itself, not in what it called, in the event's unit. */
  readonly self: Float64Array;
  /** How many samples these are; or what each weighs, where all weigh the same. */
  readonly selfSamples: Float64Array | number;
  /** Source line most often seen in the box, 0 if not known. */
  readonly line: Uint32Array;
  /** Of a differential picture: what `self` was made of. */
  readonly sides?: Sides;
  /** Of a picture in the order of time: when boxes begin and how long they last, in nanoseconds. */
  readonly times?: { readonly from: Float64Array; readonly length: Float64Array };
}

export interface Tree extends Columns {
  readonly size: number;
  readonly selfSamples: Float64Array;
  /** The caller's box, -1 for the root. */
  readonly parent: Int32Array;
  /** One past the last box of what is below: `[box, end[box])` is a subtree. */
  readonly end: Uint32Array;
  /** Weight of the box and of all that it called. */
  readonly total: Float64Array;
  readonly samples: Float64Array;
  /** What each side of a differential picture spent in the box and in all that it called. */
  readonly sums?: { readonly base: Float64Array; readonly next: Float64Array } | undefined;
  /** Weight to the left of the box. */
  readonly start: Float64Array;
  /** Depth of the deepest box below. */
  readonly bottom: Uint32Array;
  /** The boxes of each depth from left to right. */
  readonly rows: readonly Uint32Array[];
}

/** Works out the tree. Depths that skip a level are an error: the file is damaged. */
export function buildTree(columns: Columns): Tree {
  return new Boxes(columns);
}

/**
 * A picture is drawn as soon as it is known where its boxes are. What only a pointer, a search or another arrangement asks for is worked
 * out when it is asked for: of hundreds of thousands of boxes it takes longer than drawing them.
 */
class Boxes implements Tree {
  readonly size: number;
  readonly depth: Uint32Array;
  readonly frame: Uint32Array;
  readonly self: Float64Array;
  readonly line: Uint32Array;
  readonly sides?: Sides;
  readonly times?: NonNullable<Columns["times"]>;
  readonly start: Float64Array;
  readonly total: Float64Array;
  readonly rows: readonly Uint32Array[];
  private readonly given: Float64Array | number;
  private ownSamples: Float64Array | undefined;
  private allSamples: Float64Array | undefined;
  private bothSums: Tree["sums"];
  private shape: Shape | undefined;

  constructor({ depth, frame, self, selfSamples, line, sides, times }: Columns) {
    this.size = depth.length;
    [this.depth, this.frame, this.self, this.line, this.given] = [depth, frame, self, line, selfSamples];
    if (sides) this.sides = sides;
    if (times) this.times = times;
    const { start, total, counts } = spans(depth, self);
    [this.start, this.total, this.rows] = [start, total, rowsOf(depth, counts)];
  }

  get parent(): Int32Array {
    return this.shaped().parent;
  }

  get end(): Uint32Array {
    return this.shaped().end;
  }

  get bottom(): Uint32Array {
    return this.shaped().bottom;
  }

  get selfSamples(): Float64Array {
    const { given } = this;
    return (this.ownSamples ??= typeof given === "number" ? this.self.map((weight) => Math.round(weight / given)) : given);
  }

  get samples(): Float64Array {
    const { given } = this;
    return (this.allSamples ??= typeof given === "number" ? this.total.map((weight) => Math.round(weight / given)) : added(given, this.parent));
  }

  get sums(): Tree["sums"] {
    const { sides } = this;
    return (this.bothSums ??= sides && { base: added(sides.base, this.parent), next: added(sides.next, this.parent) });
  }

  private shaped(): Shape {
    return (this.shape ??= shapeOf(this.depth));
  }
}

/**
 * Where boxes begin, what they weigh with all that they called, and how many each depth has. Children stand side by side from their
 * parent's left edge; what is left at the right is the parent's own.
 */
function spans(depth: Uint32Array, self: Float64Array): { start: Float64Array; total: Float64Array; counts: number[] } {
  const size = depth.length;
  if (size === 0 || depth[0] !== 0) throw new Error("the flame graph has no root");
  const start = new Float64Array(size);
  const total = new Float64Array(size);
  const counts: number[] = [];
  /** By depth: the box that the next one may be in. */
  const open: number[] = [];
  // What was spent in boxes that end left of here; a box that is open has its own at its right.
  let closed = 0;
  let level = -1;
  for (let box = 0; box <= size; box++) {
    // One past the last box all are closed.
    const at = box < size ? depth[box] : 0;
    if (at > level + 1 || (at === 0 && box > 0 && box < size)) throw new Error(`box ${box} of the flame graph has no caller`);
    for (; level >= at; level--) {
      const done = open[level];
      closed += self[done];
      total[done] = closed - start[done];
    }
    if (box === size) break;
    if (at === counts.length) counts.push(0);
    counts[at]++;
    open[at] = box;
    level = at;
    start[box] = closed;
  }
  return { start, total, counts };
}

interface Shape {
  readonly parent: Int32Array;
  readonly end: Uint32Array;
  readonly bottom: Uint32Array;
}

/** What is above and below each box. */
function shapeOf(depth: Uint32Array): Shape {
  const size = depth.length;
  const parent = new Int32Array(size);
  const end = new Uint32Array(size);
  const bottom = depth.slice();
  parent[0] = -1;
  for (let box = 1; box < size; box++) {
    let up = box - 1;
    while (depth[up] >= depth[box]) up = parent[up];
    parent[box] = up;
  }
  for (let box = size - 1; box >= 0; box--) {
    if (end[box] === 0) end[box] = box + 1;
    const up = parent[box];
    if (up < 0) continue;
    if (bottom[box] > bottom[up]) bottom[up] = bottom[box];
    if (end[up] === 0) end[up] = end[box];
  }
  return { parent, end, bottom };
}

/** Each box's own and that of all that it called. */
function added(self: Float64Array, parent: Int32Array): Float64Array {
  const sums = self.slice();
  for (let box = sums.length - 1; box > 0; box--) sums[parent[box]] += sums[box];
  return sums;
}

function rowsOf(depth: Uint32Array, counts: readonly number[]): Uint32Array[] {
  const rows = counts.map((count) => new Uint32Array(count));
  const filled = new Uint32Array(counts.length);
  for (let box = 0; box < depth.length; box++) rows[depth[box]][filled[depth[box]]++] = box;
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

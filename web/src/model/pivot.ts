// All calls of one function put together: below it what it called, merged over all places; above it who called.
//
// A recursive call inside a call is part of the outer one, so that nothing counts twice and both trees have the
// same total.

import { buildTree, type Tree } from "./tree";

export interface Pivot {
  /** The function and what it called. */
  readonly callees: Tree;
  /** The function and its callers: the deeper, the further out. */
  readonly callers: Tree;
}

export function pivot(tree: Tree, frame: number): Pivot {
  const callees = new Merger(frame);
  const callers = new Merger(frame);
  const merged = new Uint32Array(tree.size);
  for (let box = 0; box < tree.size; ) {
    if (tree.frame[box] !== frame) {
      box++;
      continue;
    }
    callees.addSelf(0, tree, box);
    for (let inner = box + 1; inner < tree.end[box]; inner++) {
      const up = tree.parent[inner];
      merged[inner] = callees.child(up === box ? 0 : merged[up], tree.frame[inner]);
      callees.addSelf(merged[inner], tree, inner);
    }
    let at = 0;
    // The root is no caller.
    for (let up = tree.parent[box]; up > 0; up = tree.parent[up]) at = callers.child(at, tree.frame[up], tree.line[up]);
    callers.addTotal(at, tree, box);
    box = tree.end[box];
  }
  return { callees: callees.finish(), callers: callers.finish() };
}

/** A tree that grows by looking up children, until its boxes are put in order. */
export class Merger {
  private readonly frame: number[];
  private readonly self = [0];
  private readonly selfSamples = [0];
  private readonly line = [0];
  private readonly base = [0];
  private readonly next = [0];
  /** Marks that were tested on the boxes that are put together: -1 none, -2 different ones. */
  private readonly mark = [-1];
  /** Whether the tree is of a differential picture. */
  private isDiff = false;
  private readonly children: Map<number, number>[] = [new Map()];

  constructor(root: number) {
    this.frame = [root];
  }

  child(of: number, frame: number, line = 0): number {
    const known = this.children[of].get(frame);
    if (known !== undefined) return known;
    const box = this.frame.length;
    this.children[of].set(frame, box);
    this.children.push(new Map());
    this.frame.push(frame);
    this.self.push(0);
    this.selfSamples.push(0);
    this.line.push(line);
    this.base.push(0);
    this.next.push(0);
    this.mark.push(-1);
    return box;
  }

  addSelf(to: number, tree: Tree, box: number): void {
    this.self[to] += tree.self[box];
    this.selfSamples[to] += tree.selfSamples[box];
    this.addSides(to, tree.sides, box);
    if (this.line[to] === 0) this.line[to] = tree.line[box];
  }

  /** Takes a box's mark, which is kept as long as all boxes that come together have the same. */
  addMark(to: number, tree: Tree, box: number): void {
    if (!tree.sides) return;
    const mark = tree.sides.mark[box];
    this.mark[to] = this.mark[to] === -1 || this.mark[to] === mark ? mark : -2;
  }

  addTotal(to: number, tree: Tree, box: number): void {
    this.self[to] += tree.total[box];
    this.selfSamples[to] += tree.samples[box];
    this.addSides(to, tree.sums, box);
    if (this.line[0] === 0) this.line[0] = tree.line[box];
  }

  private addSides(to: number, of: { base: Float64Array; next: Float64Array } | undefined, box: number): void {
    if (!of) return;
    this.isDiff = true;
    this.base[to] += of.base[box];
    this.next[to] += of.next[box];
  }

  /** Frames are numbered in the order of their names, so sorting by number sorts by name. */
  finish(): Tree {
    const order: number[] = [];
    const depths: number[] = [];
    const open: [box: number, depth: number][] = [[0, 0]];
    for (let top = open.pop(); top !== undefined; top = open.pop()) {
      const [box, depth] = top;
      order.push(box);
      depths.push(depth);
      const children = [...this.children[box].values()].sort((a, b) => this.frame[b] - this.frame[a]);
      for (const child of children) open.push([child, depth + 1]);
    }
    // A sum of boxes that differ was not tested: it has no mark.
    const sides = {
      base: Float64Array.from(order, (box) => this.base[box]),
      next: Float64Array.from(order, (box) => this.next[box]),
      mark: Uint8Array.from(order, (box) => Math.max(0, this.mark[box])),
    };
    return buildTree({
      ...(this.isDiff ? { sides } : {}),
      depth: Uint32Array.from(depths),
      frame: Uint32Array.from(order, (box) => this.frame[box]),
      self: Float64Array.from(order, (box) => this.self[box]),
      selfSamples: Float64Array.from(order, (box) => this.selfSamples[box]),
      line: Uint32Array.from(order, (box) => this.line[box]),
    });
  }
}

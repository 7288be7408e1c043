// Recursion put together: a call of a function inside a call of it becomes part of the outer one.

import { Merger } from "./pivot";
import { buildTree, type Tree } from "./tree";

/** With all direct recursion put together (`frame` is -1), or all recursion of one function, whatever it goes through. */
export function withoutRecursion(tree: Tree, frame: number): Tree {
  return tree.times ? inTime(tree, tree.times, frame) : merged(tree, frame);
}

/** For each box the one that it becomes a part of: itself, or an outer call of the same function. Outer boxes come first. */
function outerCalls(tree: Tree, frame: number): Uint32Array {
  const outer = new Uint32Array(tree.size);
  // Of one function: the outermost box of it that a box is in, -1 if none.
  const outermost = new Int32Array(tree.size).fill(-1);
  for (let box = 1; box < tree.size; box++) {
    const up = tree.parent[box];
    const own = tree.frame[box];
    outermost[box] = outermost[up] >= 0 ? outermost[up] : own === frame ? box : -1;
    const isInner = frame < 0 ? own === tree.frame[up] : own === frame && outermost[up] >= 0;
    outer[box] = isInner ? outer[frame < 0 ? up : outermost[up]] : box;
  }
  return outer;
}

function merged(tree: Tree, frame: number): Tree {
  const outer = outerCalls(tree, frame);
  const merger = new Merger(tree.frame[0]);
  const merged = new Uint32Array(tree.size);
  merger.addSelf(0, tree, 0);
  merger.addMark(0, tree, 0);
  for (let box = 1; box < tree.size; box++) {
    const isOuter = outer[box] === box;
    merged[box] = isOuter ? merger.child(merged[outer[tree.parent[box]]], tree.frame[box]) : merged[outer[box]];
    merger.addSelf(merged[box], tree, box);
    if (isOuter) merger.addMark(merged[box], tree, box);
  }
  return merger.finish();
}

/** In the order of time boxes stay apart. One that something else comes into the middle of is there twice: before and after. */
function inTime(tree: Tree, times: NonNullable<Tree["times"]>, frame: number): Tree {
  const outer = outerCalls(tree, frame);
  const out = { depth: [0], frame: [tree.frame[0]], self: [tree.self[0]], selfSamples: [tree.selfSamples[0]], line: [tree.line[0]], from: [times.from[0]], length: [times.length[0]] };
  /** The box of the picture that stands for one of the tree now. */
  const now = new Uint32Array(tree.size);
  const depth = new Uint32Array(tree.size);
  /** The boxes of the tree that the picture's last box is in. */
  const path = [0];
  const push = (box: number, level: number, from: number): void => {
    now[box] = out.depth.length;
    out.depth.push(level);
    out.frame.push(tree.frame[box]);
    out.self.push(0);
    out.selfSamples.push(0);
    out.line.push(tree.line[box]);
    out.from.push(from);
    out.length.push(times.from[box] + times.length[box] - from);
    path.length = level;
    path.push(box);
  };
  const reopen = (box: number, from: number): void => {
    if (path[depth[box]] === box) return;
    reopen(outer[tree.parent[box]], from);
    out.length[now[box]] = Math.max(0, Math.min(out.length[now[box]], from - out.from[now[box]]));
    push(box, depth[box], from);
  };
  for (let box = 1; box < tree.size; box++) {
    if (outer[box] === box) {
      const up = outer[tree.parent[box]];
      depth[box] = depth[up] + 1;
      reopen(up, times.from[box]);
      push(box, depth[box], times.from[box]);
    }
    const to = now[outer[box]];
    out.self[to] += tree.self[box];
    out.selfSamples[to] += tree.selfSamples[box];
  }
  return buildTree({
    depth: Uint32Array.from(out.depth),
    frame: Uint32Array.from(out.frame),
    self: Float64Array.from(out.self),
    selfSamples: Float64Array.from(out.selfSamples),
    line: Uint32Array.from(out.line),
    times: { from: Float64Array.from(out.from), length: Float64Array.from(out.length) },
  });
}

/** Whether a function is called, directly or not, by itself. */
export function isRecursive(tree: Tree, frame: number): boolean {
  for (let box = 0; box < tree.size; box++) {
    if (tree.frame[box] !== frame) continue;
    for (let inner = box + 1; inner < tree.end[box]; inner++) if (tree.frame[inner] === frame) return true;
    box = tree.end[box] - 1;
  }
  return false;
}

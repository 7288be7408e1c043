// Another order of a flame graph's boxes: what costs most at the left. The order by names keeps the same code in the same place in every
// picture; this one puts the few that matter side by side.

import { buildTree, type Tree } from "./tree";

/** The same boxes, those below each ordered by their weight. A differential picture and one of time keep their order. */
export function leftHeavy(tree: Tree): Tree {
  if (tree.sides || tree.times) return tree;
  const order: number[] = [];
  const open: number[] = [0];
  for (let box = open.pop(); box !== undefined; box = open.pop()) {
    order.push(box);
    const below: number[] = [];
    for (let child = box + 1; child < tree.end[box]; child = tree.end[child]) below.push(child);
    // The last one is taken first. Of equals that is the first by name.
    below.sort((a, b) => tree.total[a] - tree.total[b] || b - a);
    for (const child of below) open.push(child);
  }
  return buildTree({
    depth: Uint32Array.from(order, (box) => tree.depth[box]),
    frame: Uint32Array.from(order, (box) => tree.frame[box]),
    selfSamples: Float64Array.from(order, (box) => tree.selfSamples[box]),
    self: Float64Array.from(order, (box) => tree.self[box]),
    line: Uint32Array.from(order, (box) => tree.line[box]),
  });
}

// Moving from box to box with the arrow keys: only to boxes that can be seen.

import { NARROWEST } from "./layout";
import { spanFor, treeOf, type Place, type Scene } from "./scene";

export type Arrow = "up" | "down" | "left" | "right";

/** Where an arrow leads from `place`; `place` itself where it leads nowhere. */
export function move(scene: Scene, place: Place, arrow: Arrow, width: number): Place {
  if (arrow === "left" || arrow === "right") return beside(scene, place, arrow === "left" ? -1 : 1, width);
  // On the callees' side of a flame graph, up is away from the root; an icicle or the callers' side turns it round.
  const isOutward = (arrow === "up") !== scene.icicle;
  if (place.box === 0 && scene.callers) return away(scene, { callers: !isOutward, box: 0 }, width) ?? place;
  return (isOutward !== place.callers ? away(scene, place, width) : towards(scene, place)) ?? place;
}

/** The widest box below: the way to where the time goes. */
function away(scene: Scene, { callers, box }: Place, width: number): Place | undefined {
  const tree = treeOf(scene, callers);
  let widest = -1;
  for (let child = box + 1; child < tree.end[box]; child = tree.end[child]) {
    if (isVisible(scene, callers, child, width) && (widest < 0 || tree.total[child] > tree.total[widest])) widest = child;
  }
  return widest < 0 ? undefined : { callers, box: widest };
}

function towards(scene: Scene, { callers, box }: Place): Place | undefined {
  const up = treeOf(scene, callers).parent[box];
  // Both trees have the same root; it is the callees' that is drawn.
  return up < 0 ? undefined : { callers: callers && up > 0, box: up };
}

function beside(scene: Scene, place: Place, step: 1 | -1, width: number): Place {
  const tree = treeOf(scene, place.callers);
  const row = tree.rows[tree.depth[place.box]];
  for (let i = indexIn(row, place.box) + step; i >= 0 && i < row.length; i += step) {
    if (isVisible(scene, place.callers, row[i], width)) return { callers: place.callers, box: row[i] };
  }
  return place;
}

/** Rows are in pre-order, so boxes in them ascend. */
function indexIn(row: Uint32Array, box: number): number {
  let low = 0;
  let high = row.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (row[middle] < box) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether the box is at least as wide as the narrowest that is drawn, and in the window. */
export function isVisible(scene: Scene, callers: boolean, box: number, width: number): boolean {
  const tree = treeOf(scene, callers);
  const { from, to } = spanFor(scene, callers);
  const start = tree.start[box];
  if (start >= to || start + tree.total[box] <= from) return false;
  return tree.total[box] * width >= NARROWEST * (to - from);
}

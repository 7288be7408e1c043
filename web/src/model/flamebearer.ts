// Flame graphs of a store as the picture's columns. What the server cut off is in boxes that are called "other".

import type { Frames, Profile } from "./decode";
import { buildTree } from "./tree";

interface Box {
  readonly start: number;
  readonly total: number;
  readonly self: number;
  readonly name: number;
}

export function fromFlamebearer(names: readonly string[], levels: readonly (readonly string[])[], unit: string, title: string): Profile {
  const rows = levels.map(boxesOf);
  const [depth, frame, self]: [number[], number[], number[]] = [[], [], []];
  // The next box of each level: pre-order visits a level from left to right.
  const next = rows.map(() => 0);
  const visit = (level: number, box: Box) => {
    depth.push(level);
    frame.push(box.name);
    self.push(box.self);
    const below = rows[level + 1];
    if (below === undefined) return;
    while (next[level + 1] < below.length && below[next[level + 1]].start < box.start + box.total) {
      visit(level + 1, below[next[level + 1]++]);
    }
  };
  const root = rows[0]?.[0];
  if (root === undefined || root.total === 0) throw new Error("no samples in this range; choose a longer one");
  visit(0, root);
  const size = depth.length;
  const tree = buildTree({
    depth: Uint32Array.from(depth),
    frame: Uint32Array.from(frame),
    selfSamples: new Float64Array(size),
    self: Float64Array.from(self),
    line: new Uint32Array(size),
  });
  const nothing = names.map(() => "");
  const frames: Frames = {
    name: names,
    dso: nothing,
    file: nothing,
    kind: names.map((name, index) => (index === root.name ? "root" : name === "other" ? "missing" : "program")),
  };
  return { facts: { title, samples: 0, recorded: 0, lost: 0, unit, weighs: unit === "ns" ? "time" : "value" }, frames, tree };
}

/** Each box is its distance from the end of the one before, its total, its own and its name. */
function boxesOf(values: readonly string[]): Box[] {
  const boxes: Box[] = [];
  let at = 0;
  for (let i = 0; i + 3 < values.length; i += 4) {
    const [gap, total, self, name] = values.slice(i, i + 4).map(Number);
    boxes.push({ start: at + gap, total, self, name });
    at += gap + total;
  }
  return boxes;
}

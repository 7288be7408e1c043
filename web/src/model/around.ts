// Callers and callees of a function, all paths merged, worked out from a flame graph: what a server answers with `/function`.

import type { CallNode, CallTree } from "../api/types";
import type { Frames } from "./decode";
import { pivot } from "./pivot";
import type { Tree } from "./tree";

const KINDS: Readonly<Record<string, "kernel" | "marker">> = { kernel: "kernel", fault: "kernel", process: "kernel", interrupt: "kernel", missing: "marker" };

/** Trees of `callers` and `callees`; without nodes where no frame has that name. */
export function callersAndCallees(frames: Frames, tree: Tree, name: string): CallTree[] {
  // One name may be that of several frames: of several files, or inlined and not.
  const named = frames.name.flatMap((one, frame) => (one === name ? [frame] : []));
  const heaviest = named.map((frame) => pivot(tree, frame)).sort((a, b) => b.callees.total[0] - a.callees.total[0])[0];
  if (!heaviest || heaviest.callees.total[0] === 0) return [{ kind: "callers", nodes: [] }, { kind: "callees", nodes: [] }];
  const whole = { weight: tree.total[0], samples: tree.samples[0] };
  return [
    { kind: "callers", nodes: nodes(frames, heaviest.callers, whole.weight) },
    { kind: "callees", nodes: nodes(frames, heaviest.callees, whole.weight) },
  ];
}

function nodes(frames: Frames, tree: Tree, whole: number): CallNode[] {
  const percent = (weight: number) => (whole > 0 ? (100 * weight) / whole : 0);
  const kindOf = (frame: number) => KINDS[frames.kind[frame]] ?? "user";
  return Array.from({ length: tree.size }, (_, box) => ({
    parent: box === 0 ? null : tree.parent[box],
    sym: frames.name[tree.frame[box]],
    dso: frames.dso[tree.frame[box]],
    kind: kindOf(tree.frame[box]),
    children_weight: tree.total[box],
    children_samples: tree.samples[box],
    children_percent: percent(tree.total[box]),
    self_weight: tree.self[box],
    self_samples: tree.selfSamples[box],
    self_percent: percent(tree.self[box]),
    cut_branches: 0,
    cut_weight: 0,
  }));
}

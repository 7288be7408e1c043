// What the page shows, as the part of its address after `#`, so that Back works and a link shows the same.
//
// A zoom is kept as a hash of the names on the way to the box, not as a number, so that a link also works in the
// picture of a later recording of the same program.

import type { Frames } from "./decode";
import type { Tree } from "./tree";

export interface State {
  readonly zoom?: string;
  readonly find?: string;
  readonly regex: boolean;
  readonly icicle: boolean;
  /** The function whose calls are put together, by the hash of its name. */
  readonly calls?: string;
  /** Whether the zoomed box is on the callers' side. */
  readonly callers: boolean;
  /** Of a differential picture: whether its sides are exchanged, and whether all code is shown. */
  readonly swapped?: boolean;
  readonly all?: boolean;
  /** Whether boxes are ordered by weight, not by name. */
  readonly heavy?: boolean;
  /** What colours say: the kind of code unless it is the file. */
  readonly byFile?: boolean;
  /** Recursion that is put together: of a function by the hash of its name, or of `all`. */
  readonly merged?: string;
}

export function toHash(state: State, icicleByDefault: boolean): string {
  const parts = new URLSearchParams();
  if (state.calls !== undefined) parts.set("calls", state.calls);
  if (state.zoom !== undefined) parts.set(state.callers ? "callers" : "zoom", state.zoom);
  if (state.find) parts.set(state.regex ? "regex" : "find", state.find);
  if (state.icicle !== icicleByDefault) parts.set("view", state.icicle ? "icicle" : "flame");
  if (state.heavy) parts.set("order", "weight");
  if (state.byFile) parts.set("colour", "file");
  if (state.merged) parts.set("merge", state.merged);
  if (state.swapped) parts.set("swap", "1");
  if (state.all) parts.set("width", "all");
  return parts.toString();
}

export function fromHash(hash: string, icicleByDefault: boolean): State {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const zoom = parts.get("callers") ?? parts.get("zoom");
  const find = parts.get("regex") ?? parts.get("find");
  const calls = parts.get("calls");
  const view = parts.get("view");
  const merged = parts.get("merge");
  return {
    ...(zoom ? { zoom } : {}),
    ...(find ? { find } : {}),
    ...(calls ? { calls } : {}),
    regex: parts.has("regex"),
    icicle: view === null ? icicleByDefault : view === "icicle",
    callers: parts.has("callers"),
    ...(parts.get("order") === "weight" ? { heavy: true } : {}),
    ...(parts.get("colour") === "file" ? { byFile: true } : {}),
    ...(merged ? { merged } : {}),
    ...(parts.has("swap") ? { swapped: true } : {}),
    ...(parts.get("width") === "all" ? { all: true } : {}),
  };
}

/** 53 bits that differ for different texts and starts, written short. */
class Hash {
  private low = 0xdeadbeef;
  private high = 0x41c6ce57;

  constructor(from?: Hash) {
    if (from) [this.low, this.high] = [from.low, from.high];
  }

  add(text: string): this {
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      this.low = Math.imul(this.low ^ code, 2654435761);
      this.high = Math.imul(this.high ^ code, 1597334677);
    }
    this.low = Math.imul(this.low ^ (this.high >>> 15), 2246822507);
    this.high = Math.imul(this.high ^ (this.low >>> 13), 3266489909);
    return this;
  }

  toString(): string {
    return ((this.high & 0x1fffff) * 2 ** 32 + (this.low >>> 0)).toString(36);
  }
}

const key = (frames: Frames, frame: number): string => `${frames.kind[frame]}\n${frames.name[frame]}\n`;

export function hashOfFrame(frames: Frames, frame: number): string {
  return new Hash().add(key(frames, frame)).toString();
}

export function frameOfHash(frames: Frames, hash: string): number {
  return frames.name.findIndex((_, frame) => hashOfFrame(frames, frame) === hash);
}

export function hashOfBox(frames: Frames, tree: Tree, box: number): string {
  let hash = new Hash();
  const path: number[] = [];
  for (let at = box; at > 0; at = tree.parent[at]) path.push(tree.frame[at]);
  for (const frame of path.reverse()) hash = hash.add(key(frames, frame));
  return hash.toString();
}

/** The box that the hash was made of, -1 if this picture has none. */
export function boxOfHash(frames: Frames, tree: Tree, hash: string): number {
  const path: Hash[] = [new Hash()];
  if (path[0].toString() === hash) return 0;
  for (let box = 1; box < tree.size; box++) {
    path.length = tree.depth[box];
    const here = new Hash(path[path.length - 1]).add(key(frames, tree.frame[box]));
    if (here.toString() === hash) return box;
    path.push(here);
  }
  return -1;
}

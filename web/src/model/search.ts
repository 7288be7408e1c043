// Finding frames by name, and how much of the profile they make up.

import type { Frames } from "./decode";
import type { Tree } from "./tree";

export interface Query {
  readonly text: string;
  /** Whether `text` is a regular expression; otherwise any name that holds it matches, upper and lower case alike. */
  readonly regex: boolean;
}

export interface Found {
  /** Per frame: 1 if it matches. */
  readonly frames: Uint8Array;
  /** Boxes that match and have no matching caller, from left to right: no weight is in two of them. */
  readonly outermost: readonly number[];
  /** Their weight: what matched, nothing counted twice. */
  readonly weight: number;
}

/** The frames that match. Throws a `SyntaxError` for a bad regular expression. */
export function matching(frames: Frames, query: Query): Uint8Array {
  const test = predicate(query);
  return Uint8Array.from(frames.name, (name, i) => (frames.kind[i] !== "root" && test(name) ? 1 : 0));
}

function predicate(query: Query): (name: string) => boolean {
  if (query.regex) {
    // As with grep: case matters unless the pattern has no capital letter.
    const pattern = new RegExp(query.text, /[A-Z]/.test(query.text.replace(/\\./g, "")) ? "u" : "iu");
    return (name) => pattern.test(name);
  }
  const text = query.text.toLowerCase();
  return (name) => name.toLowerCase().includes(text);
}

/** What of `tree` the matching frames make up, below `root` only. */
export function find(tree: Tree, frames: Uint8Array, root = 0): Found {
  const outermost: number[] = [];
  let weight = 0;
  for (let box = root; box < tree.end[root]; ) {
    if (frames[tree.frame[box]] === 1) {
      outermost.push(box);
      weight += tree.total[box];
      box = tree.end[box];
    } else {
      box++;
    }
  }
  return { frames, outermost, weight };
}

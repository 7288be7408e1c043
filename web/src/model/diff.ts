// A differential picture: what two sides spent in the same boxes, how wide that makes a box, and what may be said of it.

import { signed } from "./format";
import { buildTree, type Tree } from "./tree";

/** What may be said of a box with all that it called. The order is the file's: the numbers are stored. */
export const MARKS = ["noise", "more", "less", "new", "gone"] as const;
export type Mark = (typeof MARKS)[number];

/** The same seen from the other side. */
const SWAPPED: Readonly<Record<Mark, Mark>> = { noise: "noise", more: "less", less: "more", new: "gone", gone: "new" };

/** What the picture is of. */
export interface DiffFacts {
  /** What each side is called, and how much it has in all. */
  readonly names: readonly [string, string];
  readonly values: readonly [number, number];
  /** What values are of, and what has to be the case for a box to be coloured. */
  readonly per: string;
  readonly rule: string;
}

/** Columns of a tree that only a differential picture has. */
export interface Sides {
  /** What each side spent in the box itself. */
  readonly base: Float64Array;
  readonly next: Float64Array;
  /** Places in `MARKS`. */
  readonly mark: Uint8Array;
}

/** What boxes are as wide as: what was added and what was taken away together, or all that either side spent. */
export type Width = "changes" | "all";

export function widths(sides: Sides, width: Width): Float64Array {
  return sides.base.map((base, box) => {
    const next = sides.next[box];
    return width === "changes" ? Math.abs(next - base) : Math.max(base, next);
  });
}

/** The same boxes in other widths. */
export function rewidened(tree: Tree, width: Width): Tree {
  const { sides, depth, frame, selfSamples, line } = tree;
  return sides ? buildTree({ depth, frame, self: widths(sides, width), selfSamples, line, sides }) : tree;
}

/** Whether a box below the root differs by more than chance explains. */
export const differs = ({ sides }: Tree): boolean => sides?.mark.some((mark, box) => box > 0 && MARKS[mark] !== "noise") ?? false;

export interface Amounts {
  readonly base: number;
  readonly next: number;
  readonly mark: Mark;
}

/** What both sides spent in a box with all that it called, in the order in which the reader looks at them. */
export function amounts(tree: Tree, box: number, swapped: boolean): Amounts | undefined {
  if (!tree.sides || !tree.sums) return undefined;
  const [base, next] = [tree.sums.base[box], tree.sums.next[box]];
  const mark = markOf(tree.sides, box, swapped);
  return swapped ? { base: next, next: base, mark } : { base, next, mark };
}

export function markOf(sides: Sides, box: number, swapped: boolean): Mark {
  const mark = MARKS[sides.mark[box]] ?? "noise";
  return swapped ? SWAPPED[mark] : mark;
}

/** `+1.20 s (+12.3%)`; of what is new there is no percentage. */
export function changeOf(base: number, next: number, unit: string): string {
  const difference = signed(next - base, unit);
  if (base === 0) return difference;
  const percent = (100 * (next - base)) / base;
  return `${difference} (${percent < 0 ? "−" : "+"}${Math.abs(percent).toFixed(Math.abs(percent) < 100 ? 1 : 0)}%)`;
}

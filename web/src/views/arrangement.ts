// Which boxes the picture is of, and in which order and widths: as they came, the heaviest first, with recursion put together, or a difference seen
// from either side. Knows nothing of what is zoomed to or searched for.

import type { Facts } from "../model/decode";
import { rewidened } from "../model/diff";
import { leftHeavy } from "../model/order";
import { withoutRecursion } from "../model/recursion";
import type { Tree } from "../model/tree";
import type { Order } from "./toolbar";

/** Recursion of all functions is put together, where it is direct; or of none. */
export const ALL = -2;
export const NONE = -1;

export class Arrangement {
  /** The arranged boxes. */
  tree: Tree;
  /** Whether boxes are in the order of their weights instead of names. */
  heavy = false;
  /** The function whose recursion is put together; `ALL` or `NONE`. */
  merged = NONE;
  /** Of a differential picture: whether base and new are exchanged, and whether all code is shown. */
  swapped = false;
  all = false;
  private readonly isDiff: boolean;

  constructor(
    /** As it came: in the order of names, or of time. */
    readonly given: Tree,
    { diff }: Facts,
  ) {
    this.tree = given;
    this.isDiff = diff !== undefined;
  }

  /** The order that was asked for. */
  orderOf(heavy: boolean): Order {
    return this.given.times ? "time" : heavy ? "weight" : "name";
  }

  /** Takes on an order of boxes, and which recursion is put together. False if it has them already: then all boxes keep their numbers. */
  arrange(heavy: boolean, merged: number): boolean {
    // Pictures of time and of differences have an order of their own.
    heavy &&= this.given.times === undefined && !this.isDiff;
    if (heavy === this.heavy && merged === this.merged) return false;
    this.heavy = heavy;
    this.merged = merged;
    const tree = merged === NONE ? this.given : withoutRecursion(this.given, merged === ALL ? -1 : merged);
    this.widen(heavy ? leftHeavy(tree) : tree, this.all);
    return true;
  }

  /** Takes on how a differential picture is looked at. */
  lookAt(swapped: boolean, all: boolean): void {
    this.swapped = swapped;
    this.widen(this.tree, all);
  }

  /** A differential picture in widths of changes, or of all code, as where nothing at all changed. */
  private widen(tree: Tree, all: boolean): void {
    this.tree = tree;
    if (!this.isDiff) return;
    const changes = rewidened(tree, "changes");
    this.all = all || changes.total[0] === 0;
    this.tree = this.all ? rewidened(tree, "all") : changes;
  }
}

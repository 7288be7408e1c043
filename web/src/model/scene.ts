// What is on the canvas: one tree, or two back to back (callees and callers of one function), and which row of
// the picture shows which depth of which tree.

import { hit, spanOf, type Span } from "./layout";
import { contains, type Tree } from "./tree";

/** A box of one of the scene's trees. */
export interface Place {
  /** Whether `box` is one of the callers' tree. */
  readonly callers: boolean;
  readonly box: number;
}

export interface Scene {
  readonly tree: Tree;
  readonly callers?: Tree;
  readonly icicle: boolean;
  readonly zoom: Place;
}

export const treeOf = (scene: Scene, callers: boolean): Tree => (callers && scene.callers) || scene.tree;

/** Same box? */
export const same = (a: Place | undefined, b: Place | undefined): boolean =>
  a !== undefined && b !== undefined && a.box === b.box && a.callers === b.callers;

/** Rows that each tree takes; the callers' root is the other tree's root, drawn once. */
function heights(scene: Scene): { main: number; callers: number } {
  const bottom = (tree: Tree, callers: boolean) => {
    const box = scene.zoom.callers === callers ? scene.zoom.box : 0;
    return box === 0 ? tree.rows.length - 1 : tree.bottom[box];
  };
  return {
    main: bottom(scene.tree, false) + 1,
    callers: scene.callers ? bottom(scene.callers, true) : 0,
  };
}

/** How many rows the picture has. */
export function rowCount(scene: Scene): number {
  const { main, callers } = heights(scene);
  return main + callers;
}

/** The row, from the top, of a depth. */
export function rowOf(scene: Scene, callers: boolean, depth: number): number {
  const rows = heights(scene);
  const away = callers ? -depth : depth;
  return scene.icicle ? rows.callers + away : rows.main - 1 - away;
}

/** What a row shows. */
export function depthAt(scene: Scene, row: number): { callers: boolean; depth: number } {
  const rows = heights(scene);
  const away = scene.icicle ? row - rows.callers : rows.main - 1 - row;
  return away < 0 ? { callers: true, depth: -away } : { callers: false, depth: away };
}

/** The stretch of weight that fills the width: the zoomed box's, on its side. */
export function spanFor(scene: Scene, callers: boolean): Span {
  return spanOf(treeOf(scene, callers), scene.zoom.callers === callers ? scene.zoom.box : 0);
}

/** The box at a fraction (0 to 1) of the width in a row. */
export function placeAt(scene: Scene, row: number, fraction: number): Place | undefined {
  const { callers, depth } = depthAt(scene, row);
  const span = spanFor(scene, callers);
  const box = hit(treeOf(scene, callers), depth, span.from + fraction * (span.to - span.from));
  return box < 0 ? undefined : { callers, box };
}

/** Whether the box is among the callers of the zoomed one: shown full width and dimmed. */
export function isOutside({ tree, callers: other, zoom }: Scene, callers: boolean, box: number): boolean {
  // A caller comes before what it called, which most boxes in view do not.
  if (callers !== zoom.callers || box >= zoom.box) return false;
  return contains((callers && other) || tree, box, zoom.box);
}

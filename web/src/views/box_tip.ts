// What the tooltip says of a box.

import type { Facts } from "../model/decode";
import { amounts, changeOf } from "../model/diff";
import { percent } from "../model/format";
import type { Tree } from "../model/tree";
import { MARK_NAMES } from "../widgets/palette";

/** `whole`: the weight of the picture. */
export function boxTip(tree: Tree, box: number, { unit }: Facts, whole: number, swapped: boolean): string {
  const change = amounts(tree, box, swapped);
  if (change) return `${changeOf(change.base, change.next, unit)}, ${MARK_NAMES[change.mark]}`;
  const self = tree.self[box] > 0 ? `, self ${percent(tree.self[box], whole)}` : "";
  return `${percent(tree.total[box], whole)} of all${self}`;
}

// Which colour is what, and how much of the time was spent in each kind of code itself.

import type { Frames, Kind } from "../model/decode";
import { MARKS } from "../model/diff";
import { percent } from "../model/format";
import type { Tree } from "../model/tree";
import { el } from "../widgets/dom";
import { changeFill, KIND_NAMES, kindsIn, MARK_NAMES, swatch } from "../widgets/palette";
import type { Theme } from "../widgets/theme";

export function showLegend(host: HTMLElement, frames: Frames, tree: Tree, theme: Theme): void {
  if (tree.sides) {
    showMarks(host, theme);
    return;
  }
  const self = new Map<Kind, number>();
  let cut = 0;
  for (let box = 0; box < tree.size; box++) {
    const kind = frames.kind[tree.frame[box]];
    self.set(kind, (self.get(kind) ?? 0) + tree.self[box]);
    // The marker of a cut stack is its outermost frame: all that is above has lost its callers.
    if (kind === "missing") cut += tree.total[box];
  }
  const items = kindsIn(frames).map((kind) => {
    const colour = el("span", { class: kind === "missing" ? "swatch hatched" : "swatch" });
    colour.style.backgroundColor = swatch(theme, kind);
    const share = percent(kind === "missing" ? cut : (self.get(kind) ?? 0), tree.total[0]);
    const title = kind === "missing" ? "Stacks whose outer frames could not be found" : "Share of time in such code itself";
    return el("li", { title }, colour, KIND_NAMES[kind], " ", el("span", { class: "share" }, share));
  });
  host.replaceChildren(...items);
}

/** Which colour says what of a change. */
function showMarks(host: HTMLElement, theme: Theme): void {
  const items = MARKS.map((mark) => {
    const colour = el("span", { class: "swatch" });
    colour.style.backgroundColor = changeFill(theme, mark);
    return el("li", {}, colour, MARK_NAMES[mark]);
  });
  host.replaceChildren(...items);
}

// Which colour is what, and how much of the time was spent in each kind of code itself.

import type { Frames, Kind } from "../model/decode";
import { MARKS } from "../model/diff";
import { percent } from "../model/format";
import type { Tree } from "../model/tree";
import { el } from "../widgets/dom";
import { changeFill, FILE_COLOURS, fileFill, KIND_NAMES, kindsIn, MARK_NAMES, swatch } from "../widgets/palette";
import type { Theme } from "../widgets/theme";

/** What was spent in each frame itself: one look at each box, whatever is added up afterwards. */
function selfByFrame(frames: Frames, tree: Tree): Float64Array {
  const self = new Float64Array(frames.name.length);
  for (let box = 0; box < tree.size; box++) self[tree.frame[box]] += tree.self[box];
  return self;
}

/** The files with most time in their code itself, as many as have a colour of their own. */
export function heaviestFiles(frames: Frames, tree: Tree): { readonly file: string; readonly self: number }[] {
  const self = new Map<string, number>();
  selfByFrame(frames, tree).forEach((sum, frame) => {
    const file = frames.dso[frame];
    if (file !== "") self.set(file, (self.get(file) ?? 0) + sum);
  });
  const all = [...self].map(([file, self]) => ({ file, self }));
  return all.sort((a, b) => b.self - a.self || (a.file < b.file ? -1 : 1)).slice(0, FILE_COLOURS);
}

function showFiles(host: HTMLElement, frames: Frames, tree: Tree, theme: Theme): void {
  const files = heaviestFiles(frames, tree);
  const shown = files.reduce((sum, { self }) => sum + self, 0);
  const item = (name: string, title: string, rank: number, self: number) => {
    const colour = el("span", { class: "swatch" });
    colour.style.backgroundColor = fileFill(theme, rank);
    return el("li", { title }, colour, name, " ", el("span", { class: "share" }, percent(self, tree.total[0])));
  };
  const items = files.map(({ file, self }, rank) => item(file.split("/").at(-1) || file, file, rank, self));
  const rest = tree.total[0] - shown;
  host.replaceChildren(...items, ...(rest > 0 ? [item("others", "All other files, and code of no file", -1, rest)] : []));
}

export function showLegend(host: HTMLElement, frames: Frames, tree: Tree, theme: Theme, byFile = false): void {
  if (tree.sides) {
    showMarks(host, theme);
    return;
  }
  if (byFile) {
    showFiles(host, frames, tree, theme);
    return;
  }
  const self = new Map<Kind, number>();
  selfByFrame(frames, tree).forEach((sum, frame) => self.set(frames.kind[frame], (self.get(frames.kind[frame]) ?? 0) + sum));
  // The marker of a cut stack is its outermost frame: all that is above has lost its callers.
  const isCut = Uint8Array.from(frames.kind, (kind) => (kind === "missing" ? 1 : 0));
  let cut = 0;
  for (let box = 0; box < tree.size; box++) if (isCut[tree.frame[box]] === 1) cut += tree.total[box];
  const items = kindsIn(frames).map((kind) => {
    const colour = el("span", { class: kind === "missing" ? "swatch hatched" : "swatch" });
    colour.style.backgroundColor = swatch(theme, kind);
    const share = percent(kind === "missing" ? cut : (self.get(kind) ?? 0), tree.total[0]);
    const title = kind === "missing" ? "Stacks whose outer frames could not be found" : "Share of time in such code itself";
    return el("li", { title }, colour, KIND_NAMES[kind], " ", el("span", { class: "share" }, share));
  });
  host.replaceChildren(...items);
}

/** What the width of a box is in a differential picture. */
export function showWidths(host: HTMLElement, all: boolean): void {
  host.textContent = all
    ? "Width: total cost of the function including its callees, on the more expensive side."
    : "Width: size of the change, not the cost: cost added plus cost removed, in the function and its callees. Unchanged code has no width.";
  host.hidden = false;
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

// All that is known of one box: its whole name, where it is, what it costs; and what can be done with it.

import type { Facts, Frames } from "../model/decode";
import { amounts, changeOf } from "../model/diff";
import { count, duration, percent, weight } from "../model/format";
import type { Place, Scene } from "../model/scene";
import { treeOf } from "../model/scene";
import type { Tree } from "../model/tree";
import { button, el, setText } from "../widgets/dom";
import { KIND_NAMES, MARK_NAMES } from "../widgets/palette";

export interface DetailsEvents {
  zoom(place: Place): void;
  calls(place: Place): void;
  copy(text: string): void;
}

export class Details {
  private readonly name = el("div", { class: "name" });
  private readonly where = el("div", { class: "where" });
  private readonly numbers = el("dl", { class: "numbers" });
  private readonly actions = el("div", { class: "actions" });
  private readonly spoken = el("div", { class: "spoken", role: "status", "aria-live": "polite" });
  private place: Place | undefined;
  /** Of a differential picture: whether its sides are exchanged. */
  swapped = false;

  constructor(
    private readonly host: HTMLElement,
    private readonly frames: Frames,
    private readonly facts: Facts,
    /** Weight of the whole picture. */
    private readonly whole: number,
    events: DetailsEvents,
  ) {
    const act = (run: (place: Place) => void) => () => {
      if (this.place) run(this.place);
    };
    this.actions.append(
      button("Zoom", "Zoom to this box (Enter)", act((place) => events.zoom(place))),
      button("All calls", "Put all calls of this function together (C)", act((place) => events.calls(place))),
      button("Copy name", "Copy the function's name", () => events.copy(this.name.textContent ?? "")),
    );
    host.append(el("div", { class: "what" }, this.name, this.where), this.numbers, this.actions, this.spoken);
    this.clear();
  }

  clear(): void {
    this.place = undefined;
    this.host.classList.add("empty");
    setText(this.name, "");
    const touch = matchMedia("(pointer: coarse)").matches;
    this.where.textContent = touch
      ? "Tap a box for its details, tap twice to zoom."
      : "Point at a box for its details, click to zoom, press ? for all keys.";
    this.numbers.replaceChildren();
    this.actions.hidden = true;
  }

  /** `isChosen`: the box was selected rather than passed over, so it is read out and can be acted on. */
  show(scene: Scene, place: Place, isChosen: boolean): void {
    const tree = treeOf(scene, place.callers);
    const { box } = place;
    const frame = tree.frame[box];
    const { name, dso, file, kind } = this.frames;
    this.place = place;
    this.host.classList.remove("empty");
    setText(this.name, name[frame]);
    const line = tree.line[box] > 0 ? `${file[frame]}:${tree.line[box]}` : file[frame];
    setText(this.where, [KIND_NAMES[kind[frame]], dso[frame], line].filter((part) => part !== "").join(" · "));
    const rows = this.changeRows(tree, box) ?? this.rows(scene, tree, box);
    this.numbers.replaceChildren(
      ...rows.map(([label, value]) => el("div", {}, el("dt", {}, label), el("dd", {}, value))),
    );
    this.actions.hidden = !isChosen;
    if (isChosen) {
      const numbers = rows.map(([label, value]) => `${value} ${label}`).join(", ");
      setText(this.spoken, `${name[frame]}, ${KIND_NAMES[kind[frame]]}, ${numbers}`);
    }
  }

  /** What a box of a differential picture cost on each side; undefined in any other. */
  private changeRows(tree: Tree, box: number): [string, string][] | undefined {
    const both = amounts(tree, box, this.swapped);
    const { diff, unit } = this.facts;
    if (!both || !diff) return undefined;
    const { base, next, mark } = both;
    const values = this.swapped ? [diff.values[1], diff.values[0]] : diff.values;
    const share = (part: number, whole: number) => `${weight(part, unit)} (${percent(part, whole)})`;
    return [
      ["base", share(base, values[0])],
      ["new", share(next, values[1])],
      ["change", changeOf(base, next, unit)],
      ["", MARK_NAMES[mark]],
    ];
  }

  private rows(scene: Scene, tree: Tree, box: number): [string, string][] {
    const rows: [string, string][] = [["of all", percent(tree.total[box], this.whole)]];
    const { weighs, unit, recorded } = this.facts;
    if (weighs !== undefined && (weighs !== "samples" || recorded === 0)) rows.unshift([weighs, weight(tree.total[box], unit)]);
    // A store adds samples up.
    if (recorded > 0) rows.unshift([tree.samples[box] === 1 ? "sample" : "samples", count(tree.samples[box])]);
    const zoomed = treeOf(scene, scene.zoom.callers).total[scene.zoom.box];
    if (zoomed !== this.whole) rows.push([scene.zoom.box === 0 ? "of its calls" : "of zoomed", percent(tree.total[box], zoomed)]);
    rows.push(["self", percent(tree.self[box], this.whole)]);
    const { times } = tree;
    if (times) rows.push(["", `${duration(times.from[box])} to ${duration(times.from[box] + times.length[box])}`]);
    return rows;
  }
}

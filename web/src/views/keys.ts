// Keys of the whole page, and the sheet that lists them.

import { button, el } from "../widgets/dom";

export interface KeyEvents {
  view(index: number): void;
  /** Goes to the view before or after. */
  step(by: -1 | 1): void;
  timeline(): void;
  /** Makes what the timeline shows so many times as long. */
  zoom?(factor: number): void;
  undo(): void;
  theme(): void;
}

const FLAME: readonly [string, string][] = [
  ["Click", "zoom to a box; callers stay, dimmed"],
  ["Right click", "all that can be done with a function: callers, only, drop, hide, copy"],
  ["← → ↑ ↓, Enter", "move between boxes, zoom to one"],
  ["Backspace", "zoom out by one caller"],
  ["C", "all calls of the selected function: callers and callees"],
  ["/, N, Shift-N", "search, next match, previous match"],
  ["I", "flame or icicle"],
  ["O", "boxes in the order of their names, weights or times"],
  ["M", "colour by kind of code, or by file"],
  ["R", "merge direct recursion, or not"],
  ["S", "of a comparison: exchange base and new"],
  ["W", "of a comparison: boxes as wide as what changed, or as all that either side spent"],
  ["Esc, 0", "reset zoom and search"],
];

export class Keys {
  private readonly dialog = el("dialog", { class: "help", "aria-label": "Keys" });

  constructor(titles: readonly string[], made: string, events: KeyEvents) {
    const page: readonly [string, string][] = [
      [`1 to ${Math.min(9, titles.length)}`, titles.slice(0, 9).join(", ")],
      ["[ ]", "the view before or after"],
      ["T", "show or fold the timeline"],
      ["U", "undo the last filter"],
      ["D", "dark or light"],
      ["?", "this sheet"],
    ];
    const timeline: readonly [string, string][] = [
      ["Drag", "select an interval; all views then show that interval"],
      ["← →", "move the interval"],
      ["+ −", "narrow or widen it"],
      ["Z, X, wheel, two fingers", "zoom the timeline itself, Z to the selected interval first"],
      ["Shift with ← → or wheel", "scroll the zoomed timeline"],
      ["Esc", "zoom out to the whole recording; press again (or double-click) to select it"],
    ];
    const heat: readonly [string, string][] = [
      ["Drag", "open the flame graph of these seconds and offsets"],
      ["← → ↑ ↓", "move; with Shift widen"],
      ["Enter", "open the flame graph of the selection"],
    ];
    const part = (title: string, keys: readonly [string, string][]) =>
      el("section", {}, el("h2", {}, title), el("dl", {}, ...keys.map(([key, what]) => el("div", {}, el("dt", {}, key), el("dd", {}, what)))));
    const close = button("Close", "Close this sheet", () => this.dialog.close());
    const parts = [part("Page", page), part("Timeline", timeline), part("Heat map", heat), part("Flame graph", FLAME)];
    this.dialog.append(el("div", { class: "sheet" }, ...parts), el("div", { class: "sheet-end" }, el("span", { class: "made" }, made), close));
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    document.body.append(this.dialog);
    addEventListener("keydown", (event) => this.key(event, titles.length, events));
  }

  toggle(): void {
    if (!this.dialog.isConnected) document.body.append(this.dialog);
    if (this.dialog.open) this.dialog.close();
    else {
      this.dialog.showModal();
      // The button at the end has the focus: what is above it is to be read first.
      this.dialog.scrollTop = 0;
    }
  }

  private key(event: KeyboardEvent, views: number, events: KeyEvents): void {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (isTyping || document.querySelector("dialog[open]")) return;
    const number = Number(event.key);
    if (Number.isInteger(number) && number >= 1 && number <= views) events.view(number - 1);
    else if (event.key === "[") events.step(-1);
    else if (event.key === "]") events.step(1);
    else if (event.key === "t") events.timeline();
    else if (event.key === "z" && events.zoom) events.zoom(0.5);
    else if (event.key === "x" && events.zoom) events.zoom(2);
    else if (event.key === "u") events.undo();
    else if (event.key === "d") events.theme();
    else if (event.key === "?") this.toggle();
    else return;
    event.preventDefault();
  }
}

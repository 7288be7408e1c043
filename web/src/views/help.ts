// The dialog that lists keys and gestures.

import { button, el } from "../widgets/dom";

const KEYS: readonly [string, string][] = [
  ["Click", "zoom to a box; its callers stay, dimmed"],
  ["Right click", "all that can be done with a box"],
  ["Tap, tap twice", "details of a box, zoom to it"],
  ["← → ↑ ↓", "move between boxes; outward follows the widest"],
  ["Enter", "zoom to the selected box"],
  ["Backspace", "zoom out by one caller"],
  ["C", "put all calls of the selected function together: callers on one side, callees on the other"],
  ["/", "search by text, or with .* by regular expression"],
  ["N, Shift-N", "next and previous match"],
  ["I", "flame or icicle"],
  ["O", "boxes in the order of their weights, or of their names"],
  ["D", "dark or light"],
  ["Esc, 0", "reset zoom and search"],
  ["?", "this help"],
];

const DIFF_KEYS: readonly [string, string][] = [
  ["S", "exchange base and new"],
  ["W", "boxes as wide as what was added and taken away, or as all that either side spent"],
];

export class Help {
  private readonly dialog = el("dialog", { class: "help", "aria-label": "Help" });

  constructor(recorder: string | undefined, isDiff: boolean) {
    const keys = isDiff ? [...KEYS, ...DIFF_KEYS] : KEYS;
    const list = el("dl", {}, ...keys.map(([key, what]) => el("div", {}, el("dt", {}, key), el("dd", {}, what))));
    const reading = el(
      "p",
      {},
      (isDiff
        ? "Each box is a function, as wide as what one side spent in it, or in what it called, and the other did not; it stands on its " +
          "caller. Coloured is what no chance explains. "
        : "Each box is a function, as wide as its share of the samples; it stands on its caller. ") +
        "Boxes side by side are in " +
        "the order of their names (or weights), not of time. Zoom, search and view are in the page's address: a link shows the same, " +
        "and Back goes back.",
    );
    const close = button("Close", "Close this help", () => this.dialog.close());
    this.dialog.append(el("h2", {}, "Reading and moving"), reading, list, el("p", { class: "made" }, recorder ?? ""), close);
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    document.body.append(this.dialog);
  }

  toggle(): void {
    if (this.dialog.open) this.dialog.close();
    else this.dialog.showModal();
  }
}

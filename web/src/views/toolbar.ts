// Search, and the buttons for what the keys do.

import { percent } from "../model/format";
import type { Query } from "../model/search";
import { button, el, relabel, setText } from "../widgets/dom";

export interface ToolbarEvents {
  /** The search changed; undefined: nothing is searched for. */
  search(query: Query | undefined): void;
  step(forward: boolean): void;
  leave(): void;
  reset(): void;
  invert(): void;
  /** Orders boxes. */
  reorder(order: Order): void;
  /** Chooses what colours say. */
  colour(byFile: boolean): void;
  /** Exchanges the sides of a differential picture. */
  swap(): void;
  /** Shows all code of a differential picture, or what changed. */
  widen(): void;
}

/** What the boxes below one are ordered by. */
export type Order = "name" | "weight" | "time";

/** What the picture can be. */
export interface Abilities {
  /** Whether it is of a difference. */
  readonly isDiff: boolean;
  /** Whether there are samples with times behind it. */
  readonly hasTime: boolean;
  /** Whether frames have files. */
  readonly hasFiles: boolean;
}

/** What a search found, as shares. */
export interface Matched {
  readonly weight: number;
  readonly whole: number;
  /** Whether boxes are left out of the picture, which may match too. */
  readonly isPart: boolean;
  /** The same within the zoomed box, if the picture is zoomed. */
  readonly zoomed?: { readonly weight: number; readonly whole: number };
}

const WAIT_MS = 120;
const WIDEN = "Show all code, or what changed (W)";
const INVERT = "Turn the picture upside down (I)";

export class Toolbar {
  private readonly input = el("input", {
    type: "search",
    placeholder: "Search functions",
    "aria-label": "Search functions",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    enterkeyhint: "search",
  });
  private readonly regex: HTMLButtonElement;
  private readonly resetButton: HTMLButtonElement;
  private readonly invertButton: HTMLButtonElement;
  private readonly orderPicker = el("select", { "aria-label": "Order of boxes" });
  private readonly colourPicker = el("select", { "aria-label": "Colour by" });
  private readonly swapButton: HTMLButtonElement;
  private readonly widthButton: HTMLButtonElement;
  private readonly result = el("output", { class: "matched", "aria-live": "polite" });
  private timer = 0;

  constructor(
    host: HTMLElement,
    private readonly events: ToolbarEvents,
    { isDiff, hasTime, hasFiles }: Abilities,
  ) {
    this.regex = button(".*", "Regular expression", () => this.toggleRegex(), "inset");
    this.regex.setAttribute("aria-pressed", "false");
    this.swapButton = button("Swap", "Exchange base and new (S)", () => events.swap());
    this.swapButton.setAttribute("aria-pressed", "false");
    this.widthButton = button("All code", WIDEN, () => events.widen());
    this.resetButton = button("Reset", "Reset zoom and search (Esc)", () => events.reset());
    this.invertButton = button("Icicle", INVERT, () => events.invert());
    const orders = [["name", "by name"], ["weight", "by weight"], ...(hasTime ? [["time", "by time"]] : [])];
    this.orderPicker.append(...orders.map(([value, text]) => el("option", { value }, text)));
    this.orderPicker.title = "Order boxes by name, weight or time (O)";
    this.orderPicker.addEventListener("change", () => events.reorder(this.orderPicker.value as Order));
    this.colourPicker.append(el("option", { value: "kind" }, "colour by kind"), el("option", { value: "file" }, "colour by file"));
    this.colourPicker.title = "Colour boxes by kind of code, or by file (M)";
    this.colourPicker.addEventListener("change", () => events.colour(this.colourPicker.value === "file"));
    this.input.addEventListener("input", () => this.changed(WAIT_MS));
    this.input.addEventListener("keydown", (event) => this.key(event));
    host.append(
      el("div", { class: "search" }, this.input, this.regex),
      this.result,
      el(
        "div",
        { class: "buttons" },
        ...(isDiff ? [this.swapButton, this.widthButton] : [this.orderPicker, ...(hasFiles ? [this.colourPicker] : [])]),
        this.resetButton,
        this.invertButton,
      ),
    );
  }

  focus(): void {
    this.input.focus();
    this.input.select();
  }

  /** Shows a search that did not come from typing. */
  set(query: Query | undefined): void {
    clearTimeout(this.timer);
    const shown = this.query();
    if (shown?.text !== query?.text) this.input.value = query?.text ?? "";
    if (query) this.regex.setAttribute("aria-pressed", String(query.regex));
  }

  matched(matched: Matched | undefined): void {
    this.input.classList.remove("wrong");
    const parts: string[] = [];
    if (matched) {
      // What is too small for the picture is not searched.
      parts.push(`${matched.isPart ? "at least " : ""}${percent(matched.weight, matched.whole)} matched`);
      if (matched.zoomed) parts.push(`${percent(matched.zoomed.weight, matched.zoomed.whole)} of zoomed`);
    }
    setText(this.result, parts.join(", "));
  }

  wrong(message: string): void {
    this.input.classList.add("wrong");
    setText(this.result, message);
  }

  state(isReset: boolean, isIcicle: boolean): void {
    this.resetButton.disabled = isReset;
    relabel(this.invertButton, isIcicle ? "Flame" : "Icicle", INVERT);
  }

  /** Shows how boxes are ordered and coloured. */
  look(order: Order, byFile: boolean): void {
    this.orderPicker.value = order;
    this.colourPicker.value = byFile ? "file" : "kind";
  }

  /** How a differential picture is looked at. */
  diff(swapped: boolean, all: boolean): void {
    this.swapButton.setAttribute("aria-pressed", String(swapped));
    relabel(this.widthButton, all ? "Changes" : "All code", WIDEN);
  }

  private query(): Query | undefined {
    const text = this.input.value;
    return text === "" ? undefined : { text, regex: this.regex.getAttribute("aria-pressed") === "true" };
  }

  private toggleRegex(): void {
    this.regex.setAttribute("aria-pressed", String(this.regex.getAttribute("aria-pressed") !== "true"));
    this.changed(0);
  }

  private changed(wait: number): void {
    clearTimeout(this.timer);
    this.result.setAttribute("aria-busy", "true");
    this.timer = setTimeout(() => this.search(), wait);
  }

  private search(): void {
    clearTimeout(this.timer);
    this.result.removeAttribute("aria-busy");
    this.events.search(this.query());
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Enter") {
      this.search();
      this.events.step(!event.shiftKey);
    } else if (event.key === "Escape") {
      if (this.input.value === "") this.events.leave();
      this.input.value = "";
      this.changed(0);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}

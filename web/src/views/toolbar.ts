// Search, and the buttons for what the keys do.

import { percent } from "../model/format";
import type { Query } from "../model/search";
import { button, el } from "../widgets/dom";

export interface ToolbarEvents {
  /** The search changed; undefined: nothing is searched for. */
  search(query: Query | undefined): void;
  step(forward: boolean): void;
  leave(): void;
  reset(): void;
  invert(): void;
  /** Orders boxes by weight, or by name again. */
  reorder(): void;
  /** Exchanges the sides of a differential picture. */
  swap(): void;
  /** Shows all code of a differential picture, or what changed. */
  widen(): void;
}

/** What a search found, as shares. */
export interface Matched {
  readonly weight: number;
  readonly whole: number;
  /** The same within the zoomed box, if the picture is zoomed. */
  readonly zoomed?: { readonly weight: number; readonly whole: number };
}

const WAIT_MS = 120;

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
  private readonly orderButton: HTMLButtonElement;
  private readonly swapButton: HTMLButtonElement;
  private readonly widthButton: HTMLButtonElement;
  private readonly result = el("output", { class: "matched", "aria-live": "polite" });
  private timer = 0;

  constructor(
    host: HTMLElement,
    private readonly events: ToolbarEvents,
    isDiff: boolean,
  ) {
    this.regex = button(".*", "Regular expression", () => this.toggleRegex(), "inset");
    this.regex.setAttribute("aria-pressed", "false");
    this.swapButton = button("Swap", "Exchange base and new (S)", () => events.swap());
    this.swapButton.setAttribute("aria-pressed", "false");
    this.widthButton = button("All code", "Show all code, or what changed (W)", () => events.widen());
    this.resetButton = button("Reset", "Reset zoom and search (Esc)", () => events.reset());
    this.invertButton = button("Icicle", "Turn the picture upside down (I)", () => events.invert());
    this.orderButton = button("By weight", "Order boxes by weight, or by name (O)", () => events.reorder());
    this.orderButton.setAttribute("aria-pressed", "false");
    this.input.addEventListener("input", () => this.changed(WAIT_MS));
    this.input.addEventListener("keydown", (event) => this.key(event));
    host.append(
      el("div", { class: "search" }, this.input, this.regex),
      this.result,
      el(
        "div",
        { class: "buttons" },
        ...(isDiff ? [this.swapButton, this.widthButton] : [this.orderButton]),
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
      parts.push(`${percent(matched.weight, matched.whole)} matched`);
      if (matched.zoomed) parts.push(`${percent(matched.zoomed.weight, matched.zoomed.whole)} of zoomed`);
    }
    this.result.textContent = parts.join(", ");
  }

  wrong(message: string): void {
    this.input.classList.add("wrong");
    this.result.textContent = message;
  }

  state(isReset: boolean, isIcicle: boolean): void {
    this.resetButton.disabled = isReset;
    this.invertButton.textContent = isIcicle ? "Flame" : "Icicle";
  }

  /** Whether boxes are ordered by weight. */
  order(heavy: boolean): void {
    this.orderButton.setAttribute("aria-pressed", String(heavy));
  }

  /** How a differential picture is looked at. */
  diff(swapped: boolean, all: boolean): void {
    this.swapButton.setAttribute("aria-pressed", String(swapped));
    this.widthButton.textContent = all ? "Changes" : "All code";
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
    this.timer = setTimeout(() => this.events.search(this.query()), wait);
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Enter") {
      clearTimeout(this.timer);
      this.events.search(this.query());
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

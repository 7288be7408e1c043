// What the page is narrowed to: always in sight, each undone with one click. With several events, which one is shown.

import type { RecordingAbout } from "../api/types";
import { said, type Term } from "../model/selection";
import { button, el } from "../widgets/dom";

export interface ChipEvents {
  remove(index: number): void;
  clear(): void;
  event(name: string): void;
}

export class Chips {
  readonly element = el("div", { class: "chips", role: "group", "aria-label": "Filters" });

  constructor(private readonly events: ChipEvents) {}

  show(terms: readonly Term[], about: RecordingAbout): void {
    const chips: Node[] = [];
    const sampled = about.events.filter((event) => event.samples > 0);
    if (sampled.length > 1) chips.push(this.picker(about, sampled.map((event) => event.name)));
    terms.forEach((term, index) => {
      if (term[0] === "event" && sampled.length > 1) return;
      const text = said(term);
      const remove = button("×", `Remove the filter: ${text}`, () => this.events.remove(index), "remove");
      chips.push(el("span", { class: "chip", title: text }, el("span", { class: "chip-text" }, text), remove));
    });
    const filters = terms.filter(([word]) => word !== "event").length;
    if (filters > 1) chips.push(button("Remove all", "Remove all filters", () => this.events.clear(), "small"));
    this.element.replaceChildren(...chips);
    this.element.hidden = chips.length === 0;
  }

  private picker(about: RecordingAbout, names: readonly string[]): HTMLElement {
    const picker = el("select", { "aria-label": "Event" }, ...names.map((name) => el("option", { value: name }, name)));
    picker.value = about.selected.event ?? names[0];
    picker.addEventListener("change", () => this.events.event(picker.value));
    return el("label", { class: "event" }, "event ", picker);
  }
}

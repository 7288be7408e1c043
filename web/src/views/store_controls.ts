// What is selected of a store: time, type of profile, labels; and the chips that show it, each undone with one click.

import { date } from "../model/format";
import { said } from "../model/selection";
import { matchersOf, PRESETS, queryOf, saidMatcher, shortType, type Matcher, type StoreState } from "../model/store_state";
import { button, el } from "../widgets/dom";

export interface ControlEvents {
  set(changes: Partial<StoreState>): void;
  /** Names of labels, or the values of one. */
  suggest(name: string | undefined, signal: AbortSignal): Promise<readonly string[]>;
  /** Removes a filter on stacks. */
  remove(index: number): void;
  clear(): void;
}

export class StoreControls {
  readonly element = el("div", { class: "store-controls" });
  private readonly row = el("div", { class: "tools" });
  private readonly chips = el("div", { class: "chips", role: "group", "aria-label": "Filters" });
  private readonly form: HTMLElement;
  private readonly names = el("datalist", { id: "label-names" });
  private readonly values = el("datalist", { id: "label-values" });
  private readonly name = el("input", { type: "text", list: "label-names", placeholder: "label", "aria-label": "Label", spellcheck: "false", autocomplete: "off" });
  private readonly op = el("select", { "aria-label": "Comparison" }, ...["=", "!=", "=~", "!~"].map((op) => el("option", { value: op, title: OPS[op] }, op)));
  private readonly value = el("input", { type: "text", list: "label-values", placeholder: "value", "aria-label": "Value", spellcheck: "false", autocomplete: "off" });
  private asked = new AbortController();
  private state: StoreState | undefined;

  constructor(private readonly events: ControlEvents) {
    const add = el("button", { type: "submit" }, "Add");
    const form = el("form", { class: "tools filter-form", "aria-label": "Filter by a label", hidden: true }, this.name, this.op, this.value, add, button("Cancel", "Close this form", () => this.fold()), this.names, this.values);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.add();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.fold();
      event.stopPropagation();
    });
    this.name.addEventListener("change", () => void this.fill(this.values, this.name.value));
    this.form = form;
    this.element.append(this.row, form, this.chips);
  }

  show(state: StoreState, types: readonly string[], type: string): void {
    this.state = state;
    const kinds = el("select", { "aria-label": "Type of profiles" });
    for (const known of types.includes(type) ? types : [type, ...types]) kinds.append(el("option", { value: known, title: known }, shortType(known)));
    kinds.value = type;
    kinds.addEventListener("change", () => this.events.set({ type: kinds.value }));
    const live = button(state.isLive ? "● Live" : "Live", state.isLive ? "● Live: stop asking again every 10 seconds" : "Live: ask again every 10 seconds", () => this.events.set(state.isLive ? { isLive: false } : { isLive: true, range: undefined }));
    live.setAttribute("aria-pressed", String(state.isLive));
    const filter = button("+ Filter", "+ Filter by a label", () => this.unfold());
    // What has the focus keeps it.
    const had = this.row.contains(document.activeElement) ? document.activeElement?.getAttribute("aria-label") : undefined;
    this.row.replaceChildren(lasts(state, this.events), live, kinds, filter);
    if (had) this.row.querySelector<HTMLElement>(`[aria-label="${CSS.escape(had)}"]`)?.focus();
    this.showChips(state);
  }

  private showChips(state: StoreState): void {
    const chip = (text: string, run: () => void) => el("span", { class: "chip", title: text }, el("span", { class: "chip-text" }, text), button("×", `Remove the filter: ${text}`, run, "remove"));
    const { set, remove, clear } = this.events;
    const chips: HTMLElement[] = [];
    if (state.service !== undefined) chips.push(chip(`service ${state.service}`, () => set({ service: undefined })));
    const matchers = matchersOf(state.query);
    if (!matchers) chips.push(chip(state.query, () => set({ query: "" })));
    matchers?.forEach((matcher) => chips.push(chip(saidMatcher(matcher), () => set({ query: queryOf(matchers.filter((one) => one !== matcher)) }))));
    state.terms.forEach((term, index) => chips.push(chip(said(term), () => remove(index))));
    if (chips.length > 1) chips.push(button("Remove all", "Remove all filters", clear, "small"));
    this.chips.replaceChildren(...chips);
    this.chips.hidden = chips.length === 0;
  }

  private unfold(): void {
    this.form.hidden = false;
    void this.fill(this.names, undefined);
    this.name.focus();
  }

  private fold(): void {
    this.form.hidden = true;
    this.row.querySelector<HTMLElement>("button:last-child")?.focus();
  }

  private add(): void {
    const [name, value] = [this.name.value.trim(), this.value.value];
    if (name === "" || !this.state) return this.name.focus();
    const matcher: Matcher = { name, op: this.op.value as Matcher["op"], value };
    this.form.hidden = true;
    this.name.value = this.value.value = "";
    if (name === "service_name" && matcher.op === "=") return this.events.set({ service: value });
    const others = (matchersOf(this.state.query) ?? []).filter((one) => one.name !== name || one.op !== matcher.op);
    this.events.set({ query: queryOf([...others, matcher]) });
  }

  /** What there is to choose from; without an answer it can still be typed. */
  private async fill(list: HTMLElement, name: string | undefined): Promise<void> {
    this.asked.abort();
    this.asked = new AbortController();
    const { signal } = this.asked;
    const found = await this.events.suggest(name, signal).catch(() => []);
    if (!signal.aborted) list.replaceChildren(...found.filter((one) => !one.startsWith("__")).slice(0, 1000).map((one) => el("option", { value: one })));
  }
}

const OPS: Readonly<Record<string, string>> = { "=": "is", "!=": "is not", "=~": "matches the regular expression", "!~": "doesn't match the regular expression" };

function lasts(state: StoreState, { set }: ControlEvents): HTMLElement {
  const picker = el("select", { "aria-label": "Time range" });
  if (state.range) picker.append(el("option", { value: "" }, `${date(state.range.from)} to ${date(state.range.until)}`));
  for (const [id, words] of PRESETS) picker.append(el("option", { value: id }, words));
  picker.value = state.range ? "" : state.last;
  picker.addEventListener("change", () => set({ last: picker.value, range: undefined }));
  return picker;
}

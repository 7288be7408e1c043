// The page of a server that keeps a store: which profiles are looked at, their course over time, and one view below. The views are those of
// recordings, given answers on the selection, with some of a store's own.
//
// All state is in the address, as `model/store_state` has it. What a flame graph is zoomed to stands behind the `#`.

import { MISSING } from "../api/client";
import { SelectionClient, StoreClient, type Finding, type StoredSelection } from "../api/store_client";
import { openBesideStore } from "../api/source";
import type { RecordingAbout, ServerAbout } from "../api/types";
import { count, date, weight } from "../model/format";
import { exactly, withTerm, withoutTerm, type Term } from "../model/selection";
import { matchersOf, PRESETS, queryOf, rangeOf, selectorOf, stateOf, wordsOf, type Matcher, type StoreState } from "../model/store_state";
import * as address from "../widgets/address";
import { button, el, setText } from "../widgets/dom";
import type { Choice } from "../widgets/menu";
import { printable } from "../widgets/printable";
import { Themes } from "../widgets/theme";
import { callTree } from "./call_tree";
import { openDownloads } from "./downloads";
import { flameView } from "./flame_view";
import { functionTable } from "./function_table";
import { kernelTable } from "./kernel_table";
import { Keys } from "./keys";
import { FileOpener } from "./opener";
import { qualityView } from "./quality";
import { sourceView } from "./source_view";
import { StoreControls } from "./store_controls";
import { storeDiff } from "./store_diff";
import { storeMap } from "./store_map";
import { overview } from "./store_overview";
import { StoreStrip } from "./store_strip";
import { verdictView } from "./verdict";
import type { View, ViewContext } from "./view";

const CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/** How long a range that ends now stays as it is while views are opened. */
const PINNED_MS = 30_000;
const LIVE_MS = 10_000;

/** Views with their titles: those of recordings, and `undefined` for a store's own. */
const VIEWS: readonly { readonly id: string; readonly title: string; readonly view?: View }[] = [
  { id: "services", title: "Services" },
  ...[flameView, functionTable, callTree, sourceView, kernelTable].map((view) => ({ id: view.id, title: view.title, view })),
  { id: "diff", title: "Diff" },
  { id: "map", title: "Heat map" },
  ...[verdictView, qualityView].map((view) => ({ id: view.id, title: view.title, view })),
];

export function showStore(about: ServerAbout): void {
  new StoreShell(about);
}

class StoreShell {
  private readonly themes = new Themes();
  private readonly controls: StoreControls;
  private readonly strip: StoreStrip;
  private readonly facts = el("p", { class: "facts-line" });
  private readonly missing = el("p", { class: "notice", role: "status", hidden: true });
  private readonly tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
  private readonly host = el("main", { id: "view", tabindex: "-1", role: "tabpanel" });
  private readonly keys: Keys;
  private readonly opener = new FileOpener(async (file) => {
    location.assign(await openBesideStore(file));
    return "";
  });
  private state: StoreState = stateOf(address.query());
  private now = Date.now();
  private asked = new AbortController();
  private selection: StoredSelection | undefined;
  private timer: number | undefined;

  constructor(about: ServerAbout) {
    this.controls = new StoreControls({
      set: (changes) => this.set(changes),
      suggest: (name, signal) => this.suggest(name, signal),
      remove: (index) => this.set({ terms: withoutTerm(this.state.terms, index) }),
      clear: () => this.set({ terms: [], query: "", service: undefined }),
    });
    this.strip = new StoreStrip((range) => this.set({ range, isLive: false }));
    this.keys = new Keys(VIEWS.map(({ title }) => title), `plumb ${about.plumb}`, {
      view: (index) => this.go(VIEWS[index].id),
      step: (by) => this.step(by),
      timeline: () => this.strip.toggle(),
      undo: () => this.undo(),
      theme: () => this.themes.toggle(),
    });
    this.build();
    addEventListener("popstate", () => this.restore());
    addEventListener(MISSING, (event) => this.showMissing((event as CustomEvent<string>).detail));
    this.restore();
  }

  /** Says that profiles are missing, of which times. */
  private showMissing(spans: string): void {
    const ends = spans.split(/[-,]/).map(Number);
    const times = [Math.min(...ends), Math.max(...ends)].map((ms) => date(ms));
    setText(this.missing, `Profiles between ${times[0]} and ${times[1]} are missing in all numbers: a block of the store is damaged. The server's log says which.`);
    this.missing.hidden = false;
  }

  private build(): void {
    const title = el("h1", {}, el("a", { href: location.pathname }, "plumb store"));
    const opener = button("⤓", "Download the selection", () => {
      const { left, bottom } = opener.getBoundingClientRect();
      if (this.selection) openDownloads(left, bottom + 4, this.client(this.selection), this.state.service ?? "profiles");
    }, "icon");
    const buttons = el("div", { class: "buttons" }, this.opener.button, opener, button("◐", "Dark or light (D)", () => this.themes.toggle(), "icon"), button("?", "Keys and help (?)", () => this.keys.toggle(), "icon"));
    VIEWS.forEach(({ id, title: said }) => {
      const tab = el("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "view" }, said);
      tab.addEventListener("click", () => this.go(id));
      this.tabs.append(tab);
    });
    this.tabs.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (step === 0) return;
      this.step(step);
      this.tabs.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
      event.preventDefault();
    });
    document.body.replaceChildren(el("header", {}, el("div", { class: "title" }, title, buttons), this.facts, this.controls.element, this.missing, this.opener.notice), this.strip.element, this.tabs, this.host);
  }

  // --- state and address ---

  /** The view that is shown: of everything the services, of one its flame graph. */
  private get view(): string {
    return VIEWS.find(({ id }) => id === this.state.view)?.id ?? (this.state.service === undefined ? "services" : "flame");
  }

  private restore(): void {
    const before = rangeOf(this.state, 0);
    this.state = stateOf(address.query());
    const after = rangeOf(this.state, 0);
    if (before.from !== after.from || before.until !== after.until) this.now = Date.now();
    clearInterval(this.timer);
    if (this.state.isLive) this.timer = window.setInterval(() => document.hidden || void this.show(true), LIVE_MS);
    void this.show();
  }

  private set(changes: Partial<StoreState>): void {
    const next = { ...this.state, ...changes };
    // What a view looked at may not be in what is selected now.
    address.push(wordsOf(next));
    this.restore();
  }

  private go(view: string, detail = ""): void {
    if (VIEWS.some(({ id }) => id === view)) this.set({ view, detail });
  }

  /** Goes to the view before or after. */
  private step(by: number): void {
    this.go(VIEWS[(VIEWS.findIndex(({ id }) => id === this.view) + by + VIEWS.length) % VIEWS.length].id);
  }

  private undo(): void {
    const { terms, query, service } = this.state;
    const matchers = matchersOf(query) ?? [];
    if (terms.length > 0) this.set({ terms: withoutTerm(terms, terms.length - 1) });
    else if (query !== "") this.set({ query: queryOf(matchers.slice(0, -1)) });
    else if (service !== undefined) this.set({ service: undefined });
  }

  /** Narrows to a value of a label. */
  private withLabel(name: string, value: string, more: Partial<StoreState> = {}): void {
    if (name === "service_name") return this.set({ service: value, ...more });
    const others = (matchersOf(this.state.query) ?? []).filter((one) => one.name !== name);
    this.set({ query: queryOf([...others, { name, op: "=", value }]), ...more });
  }

  private evidence({ evidence }: Finding): void {
    const matchers = matchersOf(evidence.selector) ?? [];
    const isService = ({ name, op }: Matcher) => name === "service_name" && op === "=";
    const terms: Term[] = evidence.function === null ? [] : [["focus", exactly(evidence.function)]];
    this.set({ service: matchers.find(isService)?.value, query: queryOf(matchers.filter((one) => !isService(one))), type: evidence.type, view: "flame", detail: "", terms });
  }

  private async suggest(name: string | undefined, signal: AbortSignal): Promise<readonly string[]> {
    const client = new StoreClient(signal);
    const range = rangeOf(this.state, this.now);
    return name === undefined ? client.labels("", range) : client.values(name, name === "service_name" ? "" : selectorOf({ ...this.state, query: "" }), range);
  }

  // --- showing ---

  private client(selection: StoredSelection, signal = this.asked.signal): SelectionClient {
    return new SelectionClient(selection, this.state.terms, signal);
  }

  /** `isAgain`: the same once more, with what came since. */
  private async show(isAgain = false): Promise<void> {
    this.asked.abort();
    const asked = new AbortController();
    this.asked = asked;
    const { signal } = asked;
    if (isAgain || Date.now() - this.now > PINNED_MS) this.now = Date.now();
    const range = rangeOf(this.state, this.now);
    if (!isAgain) this.opener.leave();
    this.mark();
    this.host.setAttribute("aria-busy", "true");
    try {
      const client = new StoreClient(signal);
      const types = await client.types(range);
      const type = this.state.type ?? (types.includes(CPU) ? CPU : (types[0] ?? CPU));
      const selection = { type, selector: selectorOf(this.state), range };
      this.selection = selection;
      this.controls.show(this.state, types, type);
      document.title = printable(`${this.state.service ?? "store"} · plumb`);
      const host = el("div", { class: `view view-${this.view}` });
      const isEmpty = !(await this.strip.show(client, selection, signal));
      if (isEmpty) host.append(await this.nothing(client, types));
      else await this.fill(host, client, selection, signal);
      if (signal.aborted) return;
      const top = isAgain ? this.host.scrollTop : 0;
      this.host.replaceChildren(host);
      host.dispatchEvent(new Event("shown"));
      this.host.scrollTop = top;
    } catch (error) {
      if (signal.aborted) return;
      this.fail(error);
    }
    if (!signal.aborted) this.host.removeAttribute("aria-busy");
  }

  private async fill(host: HTMLElement, client: StoreClient, selection: StoredSelection, signal: AbortSignal): Promise<void> {
    const shown = VIEWS.find(({ id }) => id === this.view);
    this.facts.replaceChildren();
    if (this.view === "services") {
      const value = (label: string, name: string) => this.withLabel(label, name, { view: label === "service_name" ? undefined : "flame", detail: "" });
      await overview(host, client, selection, this.state.detail, { label: (name) => this.go("services", name), value, evidence: (finding) => this.evidence(finding) }, signal);
      return;
    }
    if (this.view === "map") {
      const cell = (label: string, value: string, from: number, until: number) => this.withLabel(label, value, { range: { from, until }, view: "flame", detail: "", isLive: false });
      await storeMap(host, client, selection, this.state.detail, { label: (name) => this.go("map", name), value: (label, value) => this.withLabel(label, value, { view: "flame", detail: "" }), cell }, signal);
      return;
    }
    const answers = this.client(selection, signal);
    const about = await answers.about();
    this.say(about);
    if (about.selected.kept_samples === 0) {
      host.append(el("p", { class: "empty" }, "No sample passes the filters above. Remove one of them to see samples again."));
      return;
    }
    const context = this.context(answers, about, signal);
    if (shown?.view) await shown.view.show(host, context);
    else await storeDiff(host, context, { state: this.state, selection, client });
  }

  private context(client: SelectionClient, about: RecordingAbout, signal: AbortSignal): ViewContext {
    const recording = { id: "selection", name: this.state.service ?? "all services", command: [], start_unix_ns: 0, duration_ns: 0, samples: about.selected.samples };
    return {
      client,
      about,
      recording,
      recordings: [recording],
      signal,
      terms: this.state.terms,
      themes: this.themes,
      isFile: false,
      isStore: true,
      detail: this.state.detail,
      select: (term) => this.set({ terms: withTerm(this.state.terms, term) }),
      open: (view, term) => this.set({ terms: withTerm(this.state.terms, term), view, detail: "" }),
      editor: "",
      go: (view, detail) => this.go(view, detail),
      choices: (name) => this.choices(name),
      // The course over time is of profiles, not of samples.
      mark: () => undefined,
    };
  }

  private choices(name: string): readonly Choice[] {
    const only = (term: Term) => () => this.set({ terms: withTerm(this.state.terms, term) });
    return [
      { label: "Callers and callees", run: () => this.go("table", name) },
      { label: "Source lines", run: () => this.go("source", name) },
      { label: "Only stacks with it", run: only(["focus", exactly(name)]) },
      { label: "Drop stacks with it", run: only(["ignore", exactly(name)]) },
      { label: "Hide it; callers get its time", run: only(["hide", exactly(name)]) },
    ];
  }

  private say({ selected, warnings }: RecordingAbout): void {
    const parts: (string | Node)[] = [];
    // Without a unit the weight is the number of samples, or counts something that no unit says.
    if ((selected.unit ?? "") !== "" || selected.kept_weight !== selected.kept_samples) parts.push(weight(selected.kept_weight, selected.unit ?? ""));
    parts.push(selected.kept_samples === selected.samples ? `${count(selected.samples)} samples` : `${count(selected.kept_samples)} of ${count(selected.samples)} samples`);
    if (warnings.length > 0) parts.push(el("b", { class: "bad" }, "warning: see Quality"));
    this.facts.replaceChildren(...parts.flatMap((part, index) => (index === 0 ? [part] : [" · ", part])));
  }

  /** Why there is nothing to see, and what to do. */
  private async nothing(client: StoreClient, types: readonly string[]): Promise<HTMLElement> {
    this.facts.replaceChildren();
    // Where commands send to by themselves.
    const to = location.host === "127.0.0.1:4041" ? "" : ` --to ${location.origin}`;
    const code = (text: string) => el("p", {}, el("code", {}, text));
    if (types.length > 0) return el("p", { class: "empty" }, "No profiles of this selection in this range. Remove a filter, choose another type of profile, or a longer range.");
    const ever = await client.types({ from: 1, until: this.now + 3_600_000 });
    if (ever.length > 0) {
      const [id, said] = PRESETS[PRESETS.length - 1];
      return el("div", { class: "empty" }, el("p", {}, "No profiles in this range; there are some at other times."), button(`Show the ${said}`, `Show the ${said}`, () => this.set({ last: id, range: undefined })));
    }
    return el("div", { class: "empty" }, el("h2", {}, "This store has no profiles yet"), el("p", {}, "Send a recording:"), code(`plumb push profile.plumb --service NAME${to}`), el("p", {}, "or sample this machine for as long as it runs:"), code(`sudo plumb agent${to}`), el("p", {}, "SDKs of Pyroscope and collectors of OpenTelemetry send theirs to this address too."));
  }

  private fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const isFiltered = this.state.terms.length > 0 || this.state.query !== "" || this.state.service !== undefined;
    const again = button("Try again", "Try again", () => void this.show(true));
    const back = button("Remove all filters", "Remove all filters", () => this.set({ terms: [], query: "", service: undefined }));
    this.host.replaceChildren(el("div", { class: "problem", role: "alert" }, el("p", {}, message), again, ...(isFiltered ? [" ", back] : [])));
    this.host.removeAttribute("aria-busy");
  }

  private mark(): void {
    VIEWS.forEach(({ id }, index) => {
      const tab = this.tabs.children[index] as HTMLElement;
      const isShown = id === this.view;
      tab.setAttribute("aria-selected", String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
      if (!isShown) return;
      this.host.setAttribute("aria-labelledby", tab.id);
      tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    });
  }
}

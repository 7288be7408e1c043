// The page of recordings: which recording and what of it is looked at, the timeline above, one view below.
//
// All state is in the address: `?r=0&view=flame&comm=worker&time=1-2`. What a flame graph is zoomed to stands behind the `#`.

import type { RecordingClient } from "../api/client";
import { openBesideStore, type Source } from "../api/source";
import type { RecordingAbout, RecordingEntry } from "../api/types";
import { count, duration } from "../model/format";
import { exactly, termsOf, withTerm, withoutTerm, withoutWord, type Term } from "../model/selection";
import * as address from "../widgets/address";
import { button, el, setText } from "../widgets/dom";
import type { Choice } from "../widgets/menu";
import { printable } from "../widgets/printable";
import { Themes } from "../widgets/theme";
import { callTable } from "./call_table";
import { callTree } from "./call_tree";
import { Chips } from "./chips";
import { flameView } from "./flame_view";
import { functionTable } from "./function_table";
import { diffView } from "./diff_view";
import { openDownloads } from "./downloads";
import { heatMap } from "./heat_map";
import { kernelTable } from "./kernel_table";
import { Keys } from "./keys";
import { FileOpener } from "./opener";
import { processTable } from "./process_table";
import { qualityView } from "./quality";
import { sourceView } from "./source_view";
import { TimelineStrip } from "./timeline_strip";
import { verdictView } from "./verdict";
import type { View, ViewContext } from "./view";
import { waitsView } from "./waits";

const VIEWS: readonly View[] = [
  flameView,
  functionTable,
  callTree,
  sourceView,
  heatMap,
  waitsView,
  processTable,
  kernelTable,
  callTable,
  diffView,
  verdictView,
  qualityView,
];

export class Shell {
  private readonly themes = new Themes();
  private readonly picker = el("select", { "aria-label": "Recording" });
  private readonly facts = el("p", { class: "facts-line" });
  private readonly chips: Chips;
  private readonly timeline: TimelineStrip;
  private readonly tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
  private readonly host = el("main", { id: "view", tabindex: "-1" });
  private readonly keys: Keys;
  private recording: RecordingEntry;
  private view: View;
  /** The view that an address without one means. */
  private readonly first: View;
  private readonly notice = el("p", { class: "notice", role: "status", hidden: true });
  private readonly recordings: RecordingEntry[];
  private readonly opener = new FileOpener((file) => this.openFile(file));
  private terms: Term[] = [];
  private detail = "";
  private asked = new AbortController();
  private loaded: { readonly key: string; readonly about: RecordingAbout } | undefined;

  constructor(private readonly source: Source) {
    this.recordings = [...source.recordings];
    if (this.recordings.length === 0) throw new Error("the server has no recordings; start it with one: plumb open FILE");
    this.recording = this.recordings[0];
    this.first = VIEWS.find(({ id }) => id === source.file?.view) ?? VIEWS[0];
    this.view = this.first;
    this.chips = new Chips({
      remove: (index) => this.choose(withoutTerm(this.terms, index)),
      clear: () => this.choose(this.terms.filter(([word]) => word === "event")),
      event: (name) => this.choose(withTerm(this.terms, ["event", name])),
    });
    this.timeline = new TimelineStrip(this.themes, source.file !== undefined, {
      select: (term) => this.choose(withTerm(this.terms, term)),
      clear: () => this.choose(withoutWord(this.terms, "time")),
    });
    this.keys = new Keys(VIEWS.map((view) => view.title), `plumb ${source.plumb}`, {
      view: (index) => this.go(VIEWS[index].id),
      step: (by) => this.go(VIEWS[(VIEWS.indexOf(this.view) + by + VIEWS.length) % VIEWS.length].id),
      timeline: () => this.timeline.toggle(),
      zoom: (factor) => this.timeline.zoom(factor),
      undo: () => this.choose(withoutTerm(this.terms, this.terms.length - 1)),
      theme: () => this.themes.toggle(),
    });
    this.build();
    addEventListener("popstate", () => this.restore());
    this.restore();
  }

  private build(): void {
    for (const one of this.recordings) this.offer(one);
    this.picker.addEventListener("change", () => {
      const chosen = this.recordings.find(({ id }) => id === this.picker.value);
      if (chosen) this.remember({ recording: chosen, terms: [], detail: "" });
    });
    for (const view of VIEWS) {
      const tab = el("button", { type: "button", role: "tab", id: `tab-${view.id}`, "aria-controls": "view" }, view.title);
      tab.addEventListener("click", () => this.go(view.id));
      this.tabs.append(tab);
    }
    this.tabs.addEventListener("keydown", (event) => this.tabKey(event));
    const buttons = el(
      "div",
      { class: "buttons" },
      ...(this.source.file ? [] : [this.opener.button]),
      this.downloads(),
      button("◐", "Dark or light (D)", () => this.themes.toggle(), "icon"),
      button("?", "Keys and help (?)", () => this.keys.toggle(), "icon"),
    );
    document.body.replaceChildren(
      el("header", {}, el("div", { class: "title" }, this.picker, buttons), this.facts, ...this.note(), this.chips.element, this.notice, this.opener.notice),
      this.timeline.element,
      this.tabs,
      this.host,
    );
  }

  /** Gives a recording a line in the list. */
  private offer({ id, name, command }: RecordingEntry): void {
    const isOnly = this.recordings.length === 1 && this.source.file?.title;
    const said = isOnly || (command.length > 0 ? `${name}: ${command.join(" ")}` : name);
    this.picker.append(el("option", { value: id }, said));
  }

  private note(): HTMLElement[] {
    const { note } = this.source;
    return note === undefined ? [] : [el("p", { class: "notice" }, `${note} · `, el("a", { href: location.pathname }, "Back to the store"))];
  }

  /** Opens a file of this machine and shows it. */
  private async openFile(file: File): Promise<string> {
    const { source } = this;
    if (source.file) throw new Error(`this page is a file, which opens no other; run: plumb open ${file.name}`);
    if (!source.open) {
      location.assign(await openBesideStore(file));
      return "";
    }
    const entry = await source.open(file);
    this.recordings.push(entry);
    this.offer(entry);
    this.remember({ recording: entry, view: this.first, terms: [], detail: "" });
    return `${entry.name} stays open until this plumb ends. Nothing was written to disk.`;
  }

  private downloads(): HTMLElement {
    const opener = button("⤓", "Download the selection", () => {
      const { left, bottom } = opener.getBoundingClientRect();
      if (this.source.file) this.refuse("export", "To have other formats");
      else openDownloads(left, bottom + 4, this.client(this.asked.signal), this.recording.name);
    }, "icon");
    return opener;
  }

  private client(signal: AbortSignal): RecordingClient {
    return this.source.client(this.recording.id, this.terms, signal);
  }

  /** Says how to get what a file can't give. */
  private refuse(command: string, wish: string): void {
    setText(this.notice, `This file holds one selection. ${wish}: plumb ${command} ${this.recording.name}`);
    this.notice.hidden = false;
  }

  // --- state and address ---

  private restore(): void {
    const query = address.query();
    this.recording = this.recordings.find(({ id }) => id === query.get("r")) ?? this.recordings[0];
    // A count of system calls has nothing else to show.
    const first = this.recording.samples === 0 && this.recording.has_calls ? callTable : this.first;
    this.view = VIEWS.find(({ id }) => id === query.get("view")) ?? first;
    this.detail = query.get("detail") ?? "";
    this.terms = termsOf(query);
    void this.show();
  }

  private remember(state: { recording?: RecordingEntry; view?: View; terms?: readonly Term[]; detail?: string }): void {
    const { recording = this.recording, view = this.view, terms = this.terms, detail = this.detail } = state;
    const query = new URLSearchParams((this.source.words ?? []).map(([name, value]) => [name, value]));
    if (recording !== this.recordings[0]) query.set("r", recording.id);
    if (view !== this.first || (recording.samples === 0 && recording.has_calls)) query.set("view", view.id);
    if (detail !== "") query.set("detail", detail);
    for (const [word, text] of terms) query.append(word, text);
    // A zoom is of one view of one selection.
    address.push(query);
    this.restore();
  }

  private choose(terms: readonly Term[]): void {
    if (this.source.file) this.refuse("open", "To select a part of the recording");
    else this.remember({ terms });
  }

  private go(id: string, detail = ""): void {
    const view = VIEWS.find((one) => one.id === id);
    if (view) this.remember({ view, detail });
  }

  // --- showing ---

  private async show(): Promise<void> {
    this.asked.abort();
    const asked = new AbortController();
    this.asked = asked;
    const { signal } = asked;
    this.picker.value = this.recording.id;
    this.mark();
    this.host.setAttribute("aria-busy", "true");
    const client = this.client(signal);
    this.notice.hidden = true;
    this.opener.leave();
    this.timeline.mark(undefined);
    try {
      const about = await this.about(client);
      if (!this.source.file) document.title = printable(`${about.command.join(" ") || about.name} · plumb`);
      this.say(about);
      this.chips.show(this.terms, about);
      void this.timeline.show(client, this.terms, about, this.recording.id).catch((error: unknown) => this.fail(error, signal));
      const host = el("div", { class: `view view-${this.view.id}` });
      if (about.selected.kept_samples === 0 && !(this.view.needsNoSamples && this.recording.has_calls)) host.append(nothing(about, this.recording));
      else await this.view.show(host, this.context(client, about, signal));
      if (signal.aborted) return;
      this.host.replaceChildren(host);
      host.dispatchEvent(new Event("shown"));
    } catch (error) {
      this.fail(error, signal);
    }
    if (!signal.aborted) this.host.removeAttribute("aria-busy");
  }

  private async about(client: RecordingClient): Promise<RecordingAbout> {
    const key = JSON.stringify([this.recording.id, this.terms]);
    if (this.loaded?.key !== key) this.loaded = { key, about: await client.about() };
    return this.loaded.about;
  }

  private context(client: RecordingClient, about: RecordingAbout, signal: AbortSignal): ViewContext {
    return {
      client,
      about,
      recording: this.recording,
      recordings: this.recordings,
      signal,
      terms: this.terms,
      themes: this.themes,
      isFile: this.source.file !== undefined,
      isStore: false,
      detail: this.detail,
      select: (term) => this.choose(withTerm(this.terms, term)),
      open: (id, term) => this.remember({ view: VIEWS.find((one) => one.id === id) ?? this.view, terms: withTerm(this.terms, term), detail: "" }),
      mark: (name) => this.timeline.mark(name),
      editor: this.source.editor,
      go: (view, detail) => this.go(view, detail),
      choices: (name) => this.choices(name),
    };
  }

  private choices(name: string): readonly Choice[] {
    const only = (term: Term) => () => this.choose(withTerm(this.terms, term));
    const more = [
      { label: "Callers and callees", run: () => this.go("table", name) },
      { label: "Source and assembly", run: () => this.go("source", name) },
    ];
    if (this.source.file) return more;
    return [
      ...more,
      { label: "Only stacks with it", run: only(["focus", exactly(name)]) },
      { label: "Drop stacks with it", run: only(["ignore", exactly(name)]) },
      { label: "Hide it; callers get its time", run: only(["hide", exactly(name)]) },
    ];
  }

  private fail(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    const message = error instanceof Error ? error.message : String(error);
    const back = button("Remove all filters", "Remove all filters", () => this.choose([]));
    this.host.replaceChildren(el("div", { class: "problem", role: "alert" }, el("p", {}, message), ...(this.terms.length > 0 ? [back] : [])));
    this.host.removeAttribute("aria-busy");
  }

  private say(about: RecordingAbout): void {
    const parts: (string | Node)[] = [];
    const { selected } = about;
    const part = selected.duration_ns === about.duration_ns ? "" : `${duration(selected.duration_ns)} of `;
    if (about.duration_ns > 0) parts.push(`${part}${duration(about.duration_ns)} recorded`);
    if (about.target_cpu_ns !== null) parts.push(`${duration(about.target_cpu_ns)} CPU time`);
    const samples = count(selected.kept_samples);
    parts.push(selected.kept_samples === selected.samples ? `${samples} samples` : `${samples} of ${count(selected.samples)} samples`);
    if (selected.complete_percent !== null) parts.push(`${selected.complete_percent.toFixed(1)}% complete stacks`);
    if (about.lost_samples > 0) parts.push(el("b", { class: "bad" }, `${count(about.lost_samples)} samples lost`));
    if (about.host !== "") parts.push(about.host);
    if (this.source.file && selected.options !== "") parts.push(`filtered: ${selected.options}`);
    if (about.warnings.length > 0) parts.push(button(`${count(about.warnings.length)} ${about.warnings.length === 1 ? "warning" : "warnings"}`, "See warnings in Quality", () => this.go("quality"), "link bad"));
    this.facts.replaceChildren(...parts.flatMap((part, index) => (index === 0 ? [part] : [" · ", part])));
  }

  private mark(): void {
    VIEWS.forEach((view, index) => {
      const tab = this.tabs.children[index] as HTMLElement;
      const isShown = view === this.view;
      tab.setAttribute("aria-selected", String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
      if (isShown) {
        this.host.setAttribute("aria-labelledby", tab.id);
        tab.scrollIntoView({ block: "nearest", inline: "center" });
      }
    });
    this.host.setAttribute("role", "tabpanel");
  }

  private tabKey(event: KeyboardEvent): void {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const at = (VIEWS.indexOf(this.view) + step + VIEWS.length) % VIEWS.length;
    this.go(VIEWS[at].id);
    (this.tabs.children[at] as HTMLElement).focus();
    event.preventDefault();
  }
}

function nothing(about: RecordingAbout, recording: RecordingEntry): HTMLElement {
  const why = recording.has_calls
    ? "This file counts system calls and has no samples. To have both, open it beside a recording."
    : about.selected.samples === 0 && about.selected.options === ""
      ? "This recording has no samples. Record for longer, or at a higher frequency: plumb record -F 999 -- COMMAND."
      : "No sample passes the filters above. Remove one of them to see samples again.";
  return el("p", { class: "empty" }, why);
}

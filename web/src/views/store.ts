// The page of a server that keeps a store: services with their course over time, and of one service its functions and flame graph.
//
// All state is in the address: `?service=api&type=…&query=…&last=1h`, or `from` and `until` in place of `last`.

import type { ServerAbout } from "../api/types";
import { StoreClient, type Point, type Range, type Series } from "../api/store_client";
import { fromFlamebearer } from "../model/flamebearer";
import { date, percent, weight } from "../model/format";
import { button, el } from "../widgets/dom";
import { bar, table, type Column } from "../widgets/table";
import { chart } from "../widgets/chart";
import { Themes } from "../widgets/theme";
import { appendFlame } from "./flame_parts";
import { functionLabel } from "./labels";

const CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const MINUTE = 60_000;
const PRESETS: readonly [string, string, number][] = [
  ["15m", "last 15 minutes", 15 * MINUTE],
  ["1h", "last hour", 60 * MINUTE],
  ["6h", "last 6 hours", 360 * MINUTE],
  ["24h", "last 24 hours", 1440 * MINUTE],
  ["7d", "last 7 days", 10_080 * MINUTE],
  ["30d", "last 30 days", 43_200 * MINUTE],
];
const BARS = 60;

interface Row {
  readonly name: string;
  readonly points: readonly Point[];
  readonly sum: number;
  /** In as long a time before. */
  readonly before: number;
}

export function showStore(about: ServerAbout): void {
  new StoreShell(about);
}

class StoreShell {
  private readonly themes = new Themes();
  private readonly controls = el("div", { class: "tools" });
  private readonly host = el("main", { id: "view", tabindex: "-1" });
  private asked = new AbortController();

  constructor(about: ServerAbout) {
    const title = el("h1", {}, el("a", { href: location.pathname }, "plumb store"));
    const theme = button("◐", "Dark or light", () => this.themes.toggle(), "icon");
    document.body.replaceChildren(
      el("header", {}, el("div", { class: "title" }, title, el("div", { class: "buttons" }, theme)), el("p", { class: "facts-line" }, `plumb ${about.plumb}`)),
      this.controls,
      this.host,
    );
    addEventListener("popstate", () => void this.show());
    void this.show();
  }

  private set(changes: Readonly<Record<string, string | undefined>>): void {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined || value === "") query.delete(name);
      else query.set(name, value);
    }
    history.pushState(null, "", `${location.pathname}?${query}`);
    void this.show();
  }

  private range(query: URLSearchParams): Range {
    const [from, until] = [Number(query.get("from")), Number(query.get("until"))];
    if (from > 0 && until > from) return { from, until };
    const length = PRESETS.find(([id]) => id === query.get("last"))?.[2] ?? 60 * MINUTE;
    const now = Date.now();
    return { from: now - length, until: now };
  }

  private async show(): Promise<void> {
    this.asked.abort();
    this.asked = new AbortController();
    const { signal } = this.asked;
    const query = new URLSearchParams(location.search);
    const client = new StoreClient(signal);
    const range = this.range(query);
    this.host.setAttribute("aria-busy", "true");
    try {
      const types = await client.types(range);
      const type = query.get("type") ?? (types.includes(CPU) ? CPU : (types[0] ?? CPU));
      this.control(query, types, type);
      const host = el("div", { class: "view" });
      const service = query.get("service");
      const view = { client, range, type, query: query.get("query") ?? "" };
      if (service === null) await this.services(host, view);
      else await this.service(host, view, service);
      if (signal.aborted) return;
      this.host.replaceChildren(host);
      host.dispatchEvent(new Event("shown"));
    } catch (error) {
      if (signal.aborted) return;
      this.host.replaceChildren(el("p", { class: "problem", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
    this.host.removeAttribute("aria-busy");
  }

  /** What is selected of all profiles. */
  private control(query: URLSearchParams, types: readonly string[], type: string): void {
    const kinds = el("select", { "aria-label": "Type of profiles" });
    for (const known of types.includes(type) ? types : [type, ...types]) kinds.append(el("option", { value: known, title: known }, shortType(known)));
    kinds.value = type;
    kinds.addEventListener("change", () => this.set({ type: kinds.value }));
    const lasts = el("select", { "aria-label": "Time range" });
    const from = Number(query.get("from"));
    if (from > 0) lasts.append(el("option", { value: "" }, `${date(from)} to ${date(Number(query.get("until")))}`));
    for (const [id, said] of PRESETS) lasts.append(el("option", { value: id }, said));
    lasts.value = from > 0 ? "" : (query.get("last") ?? "1h");
    lasts.addEventListener("change", () => this.set({ last: lasts.value, from: undefined, until: undefined }));
    const labels = el("input", { type: "search", value: query.get("query") ?? "", placeholder: '{region="eu"}', "aria-label": "Label selector", spellcheck: "false" });
    labels.addEventListener("change", () => this.set({ query: labels.value }));
    this.controls.replaceChildren(lasts, kinds, labels);
  }

  private async services(host: HTMLElement, view: Selected): Promise<void> {
    const { from, until } = view.range;
    const length = until - from;
    const step = Math.max(1, Math.ceil(length / BARS / 1000));
    const before = { from: from - length, until: from };
    const ask = (range: Range) => view.client.series(view.type, view.query, range, step, ["service_name"]);
    const [now, earlier] = await Promise.all([ask(view.range), ask(before)]);
    if (now.length === 0) {
      host.append(el("p", { class: "empty" }, "No profiles in this range. Send one: plumb push profile.plumb; or choose a longer range."));
      return;
    }
    const rows: Row[] = now.map((series) => {
      const name = series.labels["service_name"] ?? "";
      const same = earlier.filter((other) => other.labels["service_name"] === name);
      return { name, points: series.points, sum: sum(series.points), before: sum(same.flatMap((other) => other.points)) };
    });
    const all = rows.reduce((total, row) => total + row.sum, 0);
    const unit = unitOf(view.type);
    const columns: Column<Row>[] = [
      { title: "Share", isNumber: true, value: (row) => row.sum, cell: (row) => bar((100 * row.sum) / (all || 1), percent(row.sum, all)) },
      { title: "Sum", isNumber: true, value: (row) => row.sum, cell: (row) => weight(row.sum, unit) },
      { title: "Change", isNumber: true, value: (row) => row.sum - row.before, cell: (row) => changeOf(row) },
      { title: "Service", value: (row) => row.name, cell: (row) => el("b", {}, row.name) },
      { title: "Over time", isMore: true, cell: (row) => chart(row.points, { from, until, step: step * 1000, label: `${row.name} over time` }) },
    ];
    host.append(
      table(columns, rows, { label: "Services", order: 0, press: (row) => this.set({ service: row.name }) }),
      el("p", { class: "hint" }, "Change: compared with the preceding range of the same length."),
    );
  }

  private async service(host: HTMLElement, view: Selected, service: string): Promise<void> {
    const { client, range, type } = view;
    const query = withService(view.query, service);
    const step = Math.max(1, Math.ceil((range.until - range.from) / (3 * BARS) / 1000));
    const [series, functions, flame] = await Promise.all([
      client.series(type, query, range, step, []),
      client.functions(type, query, range, 500),
      client.flame(type, query, range),
    ]);
    const unit = unitOf(type);
    const back = button("← All services", "Back to all services", () => this.set({ service: undefined }));
    const save = (format: string, ending: string) => el("a", { href: client.export(type, query, range, format), download: `${service}${ending}` }, format);
    host.append(
      el("div", { class: "tools" }, back, el("h2", {}, service), el("span", { class: "hint" }, weight(functions.total, unit)), el("span", { class: "hint" }, "Download: ", save("pprof.gz", ".pb.gz"), " ", save("firefox", ".firefox.json"), " ", save("speedscope", ".speedscope.json"))),
    );
    if (functions.total === 0) {
      host.append(el("p", { class: "empty" }, "This service has no profiles in this range; choose a longer one."));
      return;
    }
    const zoom = (from: number, until: number) => this.set({ from: String(Math.round(from)), until: String(Math.round(until)), last: undefined });
    host.append(chart(merged(series), { ...range, step: step * 1000, label: `${service} over time; drag to select a range`, select: zoom }));
    this.picture(host, flame, unit, service);
    const columns: Column<(typeof functions.rows)[number]>[] = [
      { title: "Self", isNumber: true, value: (row) => row.self, cell: (row) => bar((100 * row.self) / functions.total, percent(row.self, functions.total)) },
      { title: "Total", isNumber: true, value: (row) => row.total, cell: (row) => bar((100 * row.total) / functions.total, percent(row.total, functions.total)) },
      { title: unit === "ns" ? "Self (time)" : "Self", isNumber: true, isMore: true, value: (row) => row.self, cell: (row) => weight(row.self, unit) },
      { title: "Function", value: (row) => row.function, cell: (row) => functionLabel(row.function) },
    ];
    host.append(el("h3", {}, "Functions"), table(columns, functions.rows, { label: "Functions", order: 0 }));
  }

  private picture(host: HTMLElement, flame: Awaited<ReturnType<StoreClient["flame"]>>, unit: string, service: string): void {
    const profile = fromFlamebearer(flame.names, flame.levels.map((level) => level.values), unit, service);
    host.append(el("h3", {}, "Flame graph"));
    appendFlame(host, profile, { themes: this.themes, signal: this.asked.signal, choices: () => [] });
  }
}

interface Selected {
  readonly client: StoreClient;
  readonly range: Range;
  readonly type: string;
  readonly query: string;
}

const sum = (points: readonly Point[]): number => points.reduce((total, point) => total + point.value, 0);

/** Several series as one. */
function merged(series: readonly Series[]): Point[] {
  const sums = new Map<number, number>();
  for (const { time, value } of series.flatMap((one) => one.points)) sums.set(time, (sums.get(time) ?? 0) + value);
  return [...sums].map(([time, value]) => ({ time, value })).sort((a, b) => a.time - b.time);
}

function changeOf(row: Row): string {
  if (row.before === 0) return "new";
  const change = (100 * (row.sum - row.before)) / row.before;
  return `${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(Math.abs(change) < 10 ? 1 : 0)}%`;
}

/** A selector with the service among its conditions. */
function withService(query: string, service: string): string {
  const text = service.replace(/[\\"]/g, "\\$&");
  const inner = query.trim().replace(/^\{|\}$/g, "").trim();
  return `{service_name="${text}"${inner === "" ? "" : `, ${inner}`}}`;
}

/** `cpu (process_cpu)` of `process_cpu:cpu:nanoseconds:cpu:nanoseconds`. */
function shortType(type: string): string {
  const [name, what, , period] = type.split(":");
  return `${what ?? type} (${name}${period !== undefined && period !== what ? `, by ${period}` : ""})`;
}

const unitOf = (type: string): string => (type.split(":")[2] === "nanoseconds" ? "ns" : "");

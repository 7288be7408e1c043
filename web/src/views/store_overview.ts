// The first view of a store: what stands out in the range, each with its evidence a click away, and all services with their course, or all values of
// another label that profiles came with: hosts, versions, programs.

import type { Finding, FindingsAnswer, Point, StoreClient, StoredSelection } from "../api/store_client";
import { duration, percent, weight } from "../model/format";
import { shifted, unitOf } from "../model/store_state";
import { chart } from "../widgets/chart";
import { button, el } from "../widgets/dom";
import { bar, table, type Column } from "../widgets/table";
import { functionLabel, share } from "./labels";

const BARS = 60;

interface Row {
  readonly name: string;
  readonly points: readonly Point[];
  readonly sum: number;
  /** In as long a time before. */
  readonly before: number;
}

/** The label that says which service a profile is of. */
const SERVICE = "service_name";

export interface OverviewEvents {
  /** Puts up a row for each value of another label. */
  label(name: string): void;
  /** Narrows to a value. */
  value(label: string, value: string): void;
  evidence(finding: Finding): void;
}

/** `chosen`: the label that rows are values of, if there are profiles with it; otherwise they are services. */
export async function overview(host: HTMLElement, client: StoreClient, selection: StoredSelection, chosen: string, events: OverviewEvents, signal: AbortSignal): Promise<void> {
  const { from, until } = selection.range;
  const step = Math.max(1, Math.ceil((until - from) / BARS / 1000));
  const known = (await client.labels(selection.selector, selection.range)).filter((name) => !name.startsWith("__"));
  const label = known.includes(chosen) ? chosen : SERVICE;
  const before = { ...selection, range: shifted(selection.range, until - from) };
  const [now, earlier] = await Promise.all([client.series(selection, step, [label]), client.series(before, step, [label])]);
  const rows: Row[] = now.map(({ labels, points }) => {
    const name = labels[label] ?? "";
    const same = earlier.filter((other) => (other.labels[label] ?? "") === name);
    return { name, points, sum: sum(points), before: sum(same.flatMap((other) => other.points)) };
  });
  const all = rows.reduce((total, row) => total + row.sum, 0);
  const unit = unitOf(selection.type);
  const columns: Column<Row>[] = [
    { title: "Share", isNumber: true, value: (row) => row.sum, cell: (row) => bar((100 * row.sum) / (all || 1), percent(row.sum, all)) },
    { title: "Sum", isNumber: true, isMore: true, value: (row) => row.sum, cell: (row) => weight(row.sum, unit) },
    { title: "Change", isNumber: true, value: (row) => row.sum - row.before, cell: (row) => changeOf(row) },
    { title: label === SERVICE ? "Service" : label, value: (row) => row.name, cell: (row) => (row.name === "" ? el("span", { title: `Profiles without ${label}` }, "(none)") : el("b", { title: row.name }, row.name)) },
    { title: "Over time", cell: (row) => chart(row.points, { from, until, step: step * 1000, label: `${row.name} over time` }) },
  ];
  const findings = el("section", { class: "findings", "aria-label": "Findings" }, el("h2", {}, "Findings"), el("p", { class: "hint", "aria-busy": "true" }, "Looking for what stands out…"));
  const isServices = label === SERVICE;
  const title = isServices ? "Services" : `By ${label}`;
  const listing = [
    el("h2", {}, title),
    ...rowPicker(known, label, events),
    table(columns, rows, { label: title, order: 0, press: (row) => events.value(label, row.name) }),
    el("p", { class: "hint" }, "Change: compared with the preceding range of the same length. Press a row to see its code."),
  ];
  // Whoever chose what rows are looks for these.
  host.append(...(isServices ? [findings, ...listing] : [...listing, findings]));
  void client.findings(selection).then(
    (answer) => signal.aborted || findings.replaceChildren(el("h2", {}, "Findings"), ...aged(answer, until), ...listed(answer, events)),
    (error: unknown) => signal.aborted || findings.replaceChildren(el("h2", {}, "Findings"), el("p", { class: "hint" }, error instanceof Error ? error.message : String(error))),
  );
}

/** The choice of labels, where there is one. */
function rowPicker(known: readonly string[], label: string, { label: choose }: OverviewEvents): HTMLElement[] {
  if (known.every((name) => name === SERVICE)) return [];
  const others = known.filter((name) => name !== SERVICE);
  const picker = el("select", { "aria-label": "Rows by" }, el("option", { value: SERVICE }, "service"), ...others.map((name) => el("option", { value: name }, name)));
  picker.value = label;
  picker.addEventListener("change", () => choose(picker.value === SERVICE ? "" : picker.value));
  return [el("div", { class: "tools" }, el("label", {}, "a row for each ", picker))];
}

/** Findings in sight at first. */
const SHOWN = 5;

/** Age of an answer that is said, in milliseconds. */
const OLD_MS = 5000;

/** The age of an answer that the server has kept. */
function aged({ until_ms }: FindingsAnswer, until: number): HTMLElement[] {
  const age = until - until_ms;
  return age < OLD_MS ? [] : [el("p", { class: "hint" }, `As of ${Math.round(age / 1000)} s before the end of the range, when the server last computed them.`)];
}

function listed({ findings, examined, services, truncated, largest, cpu_ns }: FindingsAnswer, events: OverviewEvents): HTMLElement[] {
  const bounds = truncated.map(({ says }) => el("p", { class: "hint" }, says));
  if (findings.length === 0) {
    const names = largest.map(({ service, cpu_ns: own }) => `${service} ${percent(own, cpu_ns)}`).join(", ");
    return [el("p", { class: "empty" }, `Nothing stands out in this range.${names === "" ? "" : ` The largest services: ${names}.`}`), ...bounds];
  }
  const list = el("ol", { class: "finding-list" }, ...findings.slice(0, SHOWN).map((finding) => card(finding, events)));
  const below: HTMLElement[] = [];
  if (findings.length > SHOWN) {
    const more = button(`Show ${findings.length - SHOWN} more`, `Show ${findings.length - SHOWN} more findings`, () => {
      list.append(...findings.slice(SHOWN).map((finding) => card(finding, events)));
      more.remove();
    });
    below.push(more);
  }
  if (examined < services) below.push(el("p", { class: "hint" }, `The ${examined} services with the most time were examined, of ${services}.`));
  return [list, ...below, ...bounds];
}

function card(finding: Finding, events: OverviewEvents): HTMLElement {
  const { title, service, share_percent, of_machine_percent, period_ns, evidence, details, remedy, cpu_ns, owner } = finding;
  const facts = [`${share(share_percent)} of the service's CPU time`, duration(cpu_ns)];
  if (of_machine_percent !== null) facts.push(`${share(of_machine_percent)} of the machines`);
  if (period_ns !== null) facts.push(`each ${duration(period_ns)}`);
  if (owner === "plumb") facts.push("own cost of profiling");
  const show = button("Show", `Show the evidence: ${title}`, () => events.evidence(finding), "primary");
  const body = el("div", { class: "finding-body" }, el("b", {}, title), el("p", { class: "hint" }, el("span", { class: "tag first" }, service), facts.join(" · ")));
  if (evidence.function !== null && !title.includes(evidence.function)) body.append(el("p", {}, "in ", functionLabel(evidence.function)));
  if (details.length > 0) body.append(el("p", {}, details.join(" ")));
  if (remedy !== null && remedy !== "") body.append(el("p", {}, el("b", {}, "To do: "), remedy));
  return el("li", { class: "finding" }, body, show);
}

const sum = (points: readonly Point[]): number => points.reduce((total, point) => total + point.value, 0);

function changeOf(row: Row): HTMLElement {
  if (row.before === 0) return el("span", { title: "Nothing in the preceding range" }, "new");
  const change = (100 * (row.sum - row.before)) / row.before;
  return el("span", {}, `${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(Math.abs(change) < 10 ? 1 : 0)}%`);
}

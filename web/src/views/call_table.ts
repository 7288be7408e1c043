// System calls: what each costs by samples, on the processor and off it; and what was counted of them, where such a file was opened.

import type { CallRow, CallsAnswer, CountedCall, CountedCalls } from "../api/types";
import { count, duration, percent, weight } from "../model/format";
import { el } from "../widgets/dom";
import { bar, table, type Column } from "../widgets/table";
import { functionLabel } from "./labels";
import type { View, ViewContext } from "./view";

const EVENTS: Readonly<Record<string, string>> = { "off-cpu": "Off-CPU time", "run-queue": "Run-queue wait" };
const titleOf = (event: string): string => EVENTS[event] ?? "CPU time";

export const callTable: View = {
  id: "calls",
  title: "System calls",
  needsNoSamples: true,
  async show(host, context) {
    const answer = await context.client.calls();
    if (answer.counted) host.append(...counted(answer.counted));
    if (answer.rows.length > 0) host.append(...sampled(answer, context));
    if (!answer.counted && answer.rows.length === 0) {
      const why = "No sample of the selection is in a system call that can be named.";
      host.append(el("p", { class: "empty" }, why));
    }
    if (!answer.counted) {
      const how = "Samples show time, not counts. To count calls: plumb kernel --latency --json -- COMMAND > calls.json, then plumb open calls.json";
      host.append(el("p", { class: "hint" }, how));
    }
  },
};

function sampled(answer: CallsAnswer, context: ViewContext): Node[] {
  const { events, rows } = answer;
  const all = (row: CallRow) => row.weights.reduce((sum, value) => sum + value, 0);
  const shares = events.map(({ name, weight: whole }, index): Column<CallRow> => {
    const part = (row: CallRow) => (100 * row.weights[index]) / (whole || 1);
    return {
      title: titleOf(name),
      isNumber: true,
      value: (row) => row.weights[index],
      cell: (row) => (row.weights[index] === 0 ? "–" : bar(part(row), weight(row.weights[index], "ns"))),
    };
  });
  const columns: Column<CallRow>[] = [
    ...shares,
    { title: "Share of CPU", isNumber: true, isMore: true, cell: (row) => percent(row.weights[0], events[0].weight) },
    { title: "Samples", isNumber: true, isMore: true, cell: (row) => count(row.samples.reduce((sum, value) => sum + value, 0)) },
    { title: "System call", value: (row) => row.name, cell: (row) => el("span", { class: "function" }, row.name) },
    { title: "Called by", isMore: true, cell: (row) => callers(row, all(row), context) },
  ];
  const isCpu = events[0] && !(events[0].name in EVENTS);
  const shown = isCpu ? columns : columns.filter(({ title }) => title !== "Share of CPU");
  const whole = events.map(({ name, weight: of }, index) => {
    const sum = rows.reduce((sum, row) => sum + row.weights[index], 0);
    return `${percent(sum, of)} of ${titleOf(name)}`;
  });
  return [
    el("p", { class: "lead" }, `System calls take ${whole.join(" and ")}, by samples.`),
    table(shown, rows, { label: "System calls by samples", order: 0 }),
  ];
}

/** The program's functions that made the call. */
function callers(row: CallRow, whole: number, context: ViewContext): Node {
  const host = el("span", { class: "callers" });
  for (const { function: name, weight: part } of row.callers.slice(0, 3)) {
    const open = el("button", { type: "button", class: "link", title: `${name}: ${percent(part, whole)} of it` }, functionLabel(name));
    open.addEventListener("click", () => context.go("table", name));
    host.append(open);
  }
  return host;
}

function counted(document: CountedCalls): Node[] {
  const place = el("div", {});
  const fill = (calls: readonly CountedCall[]) => place.replaceChildren(...countedTable(calls, document));
  fill(document.calls);
  const groups = document.groups ?? [];
  const tools: Node[] = [];
  if (groups.length > 0) {
    const picker = el("select", { "aria-label": "Whose calls" }, el("option", { value: "" }, "all calls"));
    groups.forEach(({ id, name }, index) => picker.append(el("option", { value: String(index) }, id === undefined ? name : `${name} (${id})`)));
    picker.addEventListener("change", () => fill(picker.value === "" ? document.calls : groups[Number(picker.value)].calls));
    tools.push(el("div", { class: "tools" }, el("label", {}, "Calls of ", picker)));
  }
  return [...tools, place];
}

function countedTable(calls: readonly CountedCall[], { duration_ns: length = 0, tax }: CountedCalls): Node[] {
  const sum = (value: (call: CountedCall) => number) => calls.reduce((sum, call) => sum + value(call), 0);
  const [all, errors, wall] = [sum((call) => call.calls), sum((call) => call.errors), sum((call) => call.wall_ns ?? 0)];
  const isTimed = calls.some((call) => call.wall_ns !== undefined);
  const time = (title: string, value: (call: CountedCall) => number | null | undefined, isMore = true): Column<CountedCall> => ({
    title,
    isNumber: true,
    isMore,
    value: (call) => value(call) ?? 0,
    cell: (call) => (value(call) ? duration(value(call) ?? 0) : "–"),
  });
  const timed: Column<CountedCall>[] = [
    { title: "Time", isNumber: true, value: (call) => call.wall_ns ?? 0, cell: (call) => bar((100 * (call.wall_ns ?? 0)) / (wall || 1), duration(call.wall_ns ?? 0)) },
    time("On CPU", (call) => call.on_cpu_ns),
    time("Blocked", (call) => call.blocked_ns),
    time("Run queue", (call) => call.queued_ns),
    time("Mean", (call) => call.mean_ns),
    time("p99", (call) => call.p99_ns, false),
    time("Longest", (call) => call.max_ns),
  ];
  const columns: Column<CountedCall>[] = [
    { title: "Calls", isNumber: true, value: (call) => call.calls, cell: (call) => bar((100 * call.calls) / (all || 1), count(call.calls)) },
    { title: "Per second", isNumber: true, isMore: true, cell: (call) => (length > 0 ? count((call.calls * 1e9) / length) : "–") },
    { title: "Failed", isNumber: true, value: (call) => call.errors, cell: (call) => failed(call) },
    { title: "Bytes", isNumber: true, isMore: true, value: (call) => call.bytes ?? 0, cell: (call) => (call.bytes == null ? "–" : count(call.bytes)) },
    ...(isTimed ? timed : []),
    { title: "System call", value: (call) => call.name, cell: (call) => el("span", { class: "function" }, call.name) },
  ];
  const lead = `${count(all)} calls counted${errors > 0 ? `, ${count(errors)} failed` : ""}${isTimed ? `, ${duration(wall)} in them` : ""}.`;
  const detail = el("div", {});
  const press = isTimed ? { press: (call: CountedCall) => detail.replaceChildren(...lengths(call)) } : {};
  const nodes: Node[] = [el("p", { class: "lead" }, lead), table(columns, calls, { label: "Counted system calls", order: isTimed ? 4 : 0, ...press }), detail];
  if (isTimed) nodes.splice(1, 0, el("p", { class: "hint" }, "Press a row for how long its calls took."));
  if (tax?.each_counted_call_ns) nodes.push(el("p", { class: "hint" }, `Counting added ${duration(tax.each_counted_call_ns)} to each call.`));
  return nodes;
}

function failed(call: CountedCall): Node | string {
  if (call.errors === 0) return "0";
  const names = Object.entries(call.errors_by_name ?? {}).map(([name, number]) => `${name} ${count(number)}`);
  return el("span", { title: names.join(", ") }, count(call.errors));
}

/** Calls by their length. */
function lengths(call: CountedCall): Node[] {
  const rows = (call.histogram ?? []).filter(({ calls }) => calls > 0);
  if (rows.length === 0) return [el("p", { class: "empty" }, `No call of ${call.name} was timed.`)];
  const most = Math.max(...rows.map(({ calls }) => calls));
  type Row = (typeof rows)[number];
  const columns: Column<Row>[] = [
    { title: "Calls", isNumber: true, cell: (row) => bar((100 * row.calls) / most, count(row.calls)) },
    { title: "Length", cell: (row) => `${duration(row.from_ns)} to ${duration(row.to_ns)}` },
  ];
  return [el("h3", {}, `${call.name}: calls by length`), table(columns, rows, { label: `Calls of ${call.name} by length` })];
}

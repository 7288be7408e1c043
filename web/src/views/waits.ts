// What threads waited for: locks, the disk, timers and so on, as shares of all waits that are not idle. Idle threads are apart.

import type { WaitKind, WaitsAnswer } from "../api/types";
import { count, duration } from "../model/format";
import { button, el } from "../widgets/dom";
import { bar, table, type Column } from "../widgets/table";
import { share } from "./labels";
import type { View, ViewContext } from "./view";

/** Names of idle threads that are shown. */
const NAMED = 3;

export const waitsView: View = {
  id: "waits",
  title: "Waits",
  async show(host, context) {
    if (!context.about.events.some(({ name, samples }) => name === "off-cpu" && samples > 0)) {
      host.append(el("p", { class: "empty" }, "This recording has no waits. To record them, as root: ", el("code", {}, "plumb record --off-cpu -- COMMAND")));
      return;
    }
    const answer = await context.client.waits();
    const kinds = answer.waits.filter(({ percent }) => percent !== null);
    const columns: Column<WaitKind>[] = [
      { title: "Share", isNumber: true, value: (row) => row.weight, cell: (row) => bar(row.percent ?? 0, share(row.percent ?? 0)) },
      { title: "Time", isNumber: true, value: (row) => row.weight, cell: (row) => duration(row.weight) },
      { title: "Samples", isNumber: true, isMore: true, value: (row) => row.samples, cell: (row) => count(row.samples) },
      { title: "Waited for", value: (row) => row.title, cell: (row) => row.title },
    ];
    if (kinds.length > 0) {
      host.append(el("p", { class: "lead" }, `Threads waited ${duration(answer.kept_weight)} in all, idle threads not counted.`), table(columns, kinds, { label: "Waits by kind", order: 0 }));
    } else {
      host.append(el("p", { class: "empty" }, "No thread waited for anything but work."));
    }
    host.append(...idle(answer), ...lengths(context));
  },
};

function idle({ waits, idle_threads, idle_names }: WaitsAnswer): Node[] {
  const cost = waits.find(({ kind }) => kind === "idle");
  if (!cost) return [];
  const threads = idle_threads === 1 ? "1 thread that waits" : `${count(idle_threads)} threads that wait`;
  return [el("p", { class: "hint" }, `Idle, not in these shares: ${duration(cost.weight)} of ${threads} for work (${idle_names.slice(0, NAMED).join(", ")}).`)];
}

/** A file holds no map of lengths. */
function lengths(context: ViewContext): Node[] {
  if (context.isFile || context.about.selected.event !== "off-cpu") return [];
  return [el("div", { class: "buttons" }, button("Length of waits over time", "Heat map of how long waits took", () => context.go("heat", "latency")))];
}

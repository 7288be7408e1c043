// Where processor time went, by cause: user code, each system call, page faults, interrupts. The rows add up to the whole.

import type { KernelEntry } from "../api/types";
import { count, duration, percent, weight } from "../model/format";
import { el } from "../widgets/dom";
import { bar, table, type Column } from "../widgets/table";
import { functionLabel, share } from "./labels";
import type { View } from "./view";

export const kernelTable: View = {
  id: "kernel",
  title: "Kernel time",
  async show(host, context) {
    const answer = await context.client.kernel();
    const unit = answer.is_time ? "ns" : (answer.unit ?? "");
    const columns: Column<KernelEntry>[] = [
      { title: "Share", isNumber: true, value: (row) => row.cpu_ns, cell: (row) => bar(row.percent, share(row.percent)) },
      { title: answer.is_time ? "Time" : unit, isNumber: true, value: (row) => row.cpu_ns, cell: (row) => weight(row.cpu_ns, unit) },
      { title: "Samples", isNumber: true, isMore: true, value: (row) => row.samples, cell: (row) => count(row.samples) },
      { title: "Cause", value: (row) => row.name, cell: (row) => el("span", { class: "function" }, row.name) },
      { title: "Where from", isMore: true, cell: (row) => from(row) },
    ];
    host.append(el("p", { class: "lead" }, lead(answer.user_ns, answer.kernel_ns, answer.total_ns, unit)));
    host.append(table(columns, answer.rows, { label: "Time by cause", order: 0 }));
    if (answer.rusage_ns !== null && answer.off_percent !== null) {
      const text = `The kernel accounted ${duration(answer.rusage_ns)}; these rows are ${Math.abs(answer.off_percent).toFixed(1)}% ${answer.off_percent < 0 ? "below" : "above"} it.`;
      host.append(el("p", { class: "hint" }, text));
    }
    if (!answer.kernel_named) host.append(el("p", { class: "hint" }, "Kernel functions have no names here, so that causes can't be told apart; record as root, or set kernel.kptr_restrict=0."));
  },
};

function lead(user: number, kernel: number, total: number, unit: string): string {
  return `${weight(total, unit)} in all: user code ${percent(user, total)}, kernel ${percent(kernel, total)}.`;
}

/** The user function that most samples of a row came from. */
function from(row: KernelEntry): Node | string {
  const frames = row.stacks?.[0]?.leaf_first ?? [];
  const user = frames.find((frame) => !frame.file.startsWith("[") && frame.file !== "");
  return user ? functionLabel(user.function) : "";
}

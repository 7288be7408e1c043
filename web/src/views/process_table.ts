// Which programs ran: how many processes, how long, what they cost. A press narrows the page to one program.

import type { Program } from "../api/types";
import { count, duration, percent, weight } from "../model/format";
import { el } from "../widgets/dom";
import { bar, table, type Column } from "../widgets/table";
import type { View } from "./view";

export const processTable: View = {
  id: "processes",
  title: "Processes",
  async show(host, context) {
    const answer = await context.client.processes();
    const share = (part: number) => percent(part, answer.weight);
    const columns: Column<Program>[] = [
      { title: "Self", isNumber: true, cell: (row) => bar((100 * row.self_weight) / (answer.weight || 1), share(row.self_weight)) },
      { title: "With children", isNumber: true, isMore: true, cell: (row) => share(row.total_weight) },
      { title: answer.unit === "ns" ? "Time" : answer.unit, isNumber: true, cell: (row) => weight(row.self_weight, answer.unit) },
      { title: "User", isNumber: true, isMore: true, cell: (row) => share(row.user_weight) },
      { title: "Kernel", isNumber: true, isMore: true, cell: (row) => share(row.kernel_weight) },
      { title: "Processes", isNumber: true, cell: (row) => count(row.processes) },
      { title: "Mean life", isNumber: true, isMore: true, cell: (row) => (row.mean_life_ns === null ? "–" : duration(row.mean_life_ns)) },
      { title: "Program", cell: (row) => program(row) },
    ];
    const alive = answer.most_alive === null ? "" : `, at most ${count(answer.most_alive)} at once`;
    host.append(
      el("p", { class: "lead" }, `${count(answer.processes)} ${answer.processes === 1 ? "process" : "processes"}${alive}.`),
      table(columns, answer.programs, {
        label: "Programs",
        press: (row) => context.select(row.exe === "" ? ["comm", row.comm] : ["exe", row.exe]),
      }),
    );
    if (!answer.lives_recorded) host.append(el("p", { class: "hint" }, "The recording doesn't say when processes began and ended: these are the sampled ones."));
  },
};

function program(row: Program): HTMLElement {
  const name = row.exe.split("/").at(-1) || row.comm || "[unknown program]";
  const label = el("span", { class: "function", title: row.exe }, name);
  label.style.marginLeft = `${Math.min(row.depth, 20) * 14}px`;
  if (row.comm !== "" && !name.startsWith(row.comm)) label.append(el("span", { class: "tag" }, row.comm));
  if (row.forked) label.append(el("span", { class: "tag", title: "Forked, without an exec" }, "forked"));
  return label;
}

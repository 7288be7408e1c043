// What `plumb explain` says: what is slow, why, what could be gained, whether to go on.

import type { Candidate, CodeCause, ExplainAnswer, HotFunction, ProcessCause, ShareInterval } from "../api/types";
import { duration } from "../model/format";
import { el } from "../widgets/dom";
import { bar, table, type Column } from "../widgets/table";
import { fileLabel, functionLabel, share } from "./labels";
import type { View, ViewContext } from "./view";

export const verdictView: View = {
  id: "verdict",
  title: "Verdict",
  async show(host, context) {
    const answer = await context.client.explain();
    host.append(
      el("section", { class: `verdict ${answer.verdict.verdict.replace(/\W/g, "")}` }, ...failed(answer), el("h2", {}, answer.verdict.headline), ...below(answer)),
      el("h3", {}, "Causes"),
      ...causes(answer),
      el("h3", {}, "Hot functions"),
      functions(answer, context),
    );
  },
};

function failed({ failure }: ExplainAnswer): Node[] {
  return failure ? [el("p", {}, `${failure.charAt(0).toUpperCase()}${failure.slice(1)}.`)] : [];
}

function below({ verdict, time }: ExplainAnswer): Node[] {
  const lines: Node[] = [];
  if (verdict.cause?.gain_text) lines.push(el("p", {}, "gain: ", verdict.cause.gain_text));
  const rest = verdict.above.filter((one) => one.subject !== verdict.cause?.subject);
  if (rest.length > 0) lines.push(el("p", {}, `Also above ${verdict.threshold_percent}% of CPU time:`), el("ul", {}, ...rest.map((one) => el("li", {}, candidate(one)))));
  const facts: string[] = [];
  if (time.elapsed_ns !== null && time.elapsed_ns > 0) facts.push(`${duration(time.elapsed_ns)} elapsed`);
  if (time.cpu_ns !== null) facts.push(`${duration(time.cpu_ns)} CPU time`);
  if (time.processors_used !== null && time.processors > 0) facts.push(`${time.processors_used.toFixed(2)} of ${time.processors} CPUs used`);
  if (time.kernel_percent !== null) facts.push(`${time.kernel_percent.toFixed(1)}% in the kernel`);
  if (time.class !== null) facts.push(`bottleneck class: ${time.class}`);
  lines.push(el("p", { class: "hint" }, facts.join(" · ")));
  return lines;
}

function candidate({ subject, share, gain_text }: Candidate): string {
  return `${subject}: ${interval(share)}${gain_text === null ? "" : `; gain ${gain_text}`}`;
}

const interval = ({ percent, low, high }: ShareInterval): string => `${share(percent)} (${range(low, high)})`;
const range = (low: number, high: number): string => `${low.toFixed(1)}–${high.toFixed(1)}%`;

function causes({ causes: { code, processes } }: ExplainAnswer): Node[] {
  const cards = [
    ...code.map((cause) => card(cause, cause.functions.map((one) => one.function))),
    ...processes.map((cause) => card(cause, [cause.about])),
  ];
  return cards.length > 0 ? cards : [el("p", { class: "empty" }, "No rule on code or processes holds for this selection.")];
}

function card(cause: CodeCause | ProcessCause, names: readonly string[]): HTMLElement {
  const where = names.slice(0, 3).flatMap((name, index) => [...(index > 0 ? [", "] : []), functionLabel(name)]);
  const row = (title: string, ...content: readonly (Node | string)[]) => el("div", {}, el("dt", {}, title), el("dd", {}, ...content));
  return el(
    "article",
    { class: "card" },
    el("h4", {}, `${cause.subject}: ${interval(cause.share)}`),
    el("dl", {}, row("in", ...where), row("seen", cause.pattern), row("do", cause.remedy), row("gain", cause.gain_text === null ? cause.bound : `${cause.gain_text}: ${cause.bound}`), row("source", cause.source)),
  );
}

function functions(answer: ExplainAnswer, context: ViewContext): HTMLElement {
  const columns: Column<HotFunction>[] = [
    { title: "Self", isNumber: true, value: (row) => row.self.percent, cell: (row) => bar(row.self.percent, share(row.self.percent)) },
    { title: "95% interval", isNumber: true, isMore: true, cell: (row) => range(row.self.low, row.self.high) },
    { title: "Total", isNumber: true, value: (row) => row.total.percent, cell: (row) => share(row.total.percent) },
    { title: "Function", cell: (row) => functionLabel(row.function, row.kernel ? "kernel" : "") },
    { title: "Line", isMore: true, cell: (row) => (row.line ? `${row.line.file.split("/").at(-1)}:${row.line.line}` : fileLabel(row.file)) },
  ];
  return table(columns, answer.functions, { label: "Hot functions", order: 0, press: (row) => context.go("table", row.function) });
}

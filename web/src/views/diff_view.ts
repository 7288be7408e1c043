// What changed against another recording, or another interval of this one, and which differences are more than chance.
//
// The view's own word is the base: `ID` of a recording, or `ID:A-B` with an interval.

import type { ChangedRow, DiffAnswer } from "../api/types";
import { decode, type Profile } from "../model/decode";
import { differs } from "../model/diff";
import { count, signed, weight } from "../model/format";
import { button, el } from "../widgets/dom";
import { table, type Column } from "../widgets/table";
import { appendFlame } from "./flame_parts";
import { fileLabel, functionLabel, share } from "./labels";
import type { View, ViewContext } from "./view";

const MARKS: Readonly<Record<ChangedRow["mark"], string>> = {
  more: "▲ costs more",
  less: "▼ costs less",
  new: "+ new",
  eliminated: "− gone",
  noise: "within noise",
};

export const diffView: View = {
  id: "diff",
  title: "Diff",
  async show(host, context) {
    if (!context.isFile) host.append(form(context));
    const [base, time] = baseOf(context);
    if (!context.isFile && base === context.recording.id && time === "") {
      const hint = context.recordings.length > 1 ? "Choose another recording, or an interval of this one." : "Choose an interval of this recording, or open two recordings: plumb open OLD NEW.";
      host.append(el("p", { class: "empty" }, hint));
      return;
    }
    try {
      const [answer, flame] = await Promise.all([context.client.diff(base, time), context.client.diffFlame(base, time)]);
      showChanges(host, context, answer, decode(flame), lead(answer));
      if (answer.evidence === "single") host.append(el("p", { class: "hint" }, "Only one recording per side, so the variation between runs is unknown. To compare several: plumb diff BASE... -- NEW..."));
    } catch (error) {
      if (context.signal.aborted) throw error;
      host.append(el("p", { class: "problem", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
  },
};

/** The recording that is compared with: another one, if there is one. */
function baseOf({ detail, recording, recordings }: ViewContext): [string, string] {
  const [id, time = ""] = detail.split(":");
  if (recordings.some((one) => one.id === id)) return [id, time];
  return [recordings.find((one) => one !== recording)?.id ?? recording.id, time];
}

/** What a row is about: a function, one of its lines, a stack, or a cause of kernel time. */
function subject({ function: name, path, line, file, cause, name: call }: ChangedRow): string {
  if (path !== undefined) return [...path].reverse().join(" < ");
  if (name === undefined) return call || (cause ?? "");
  return line !== undefined && line > 0 ? `${file}:${line} ${name}` : name;
}

function form(context: ViewContext): HTMLElement {
  const [base, time] = baseOf(context);
  const picker = el("select", { "aria-label": "Base recording" });
  for (const { id, name } of context.recordings) picker.append(el("option", { value: id }, id === context.recording.id ? `${name} (this one)` : name));
  picker.value = base;
  const input = el("input", { type: "text", value: time, placeholder: "A-B in seconds", "aria-label": "Interval of the base, in seconds", size: "14" });
  const apply = () => context.go("diff", input.value.trim() === "" ? picker.value : `${picker.value}:${input.value.trim()}`);
  picker.addEventListener("change", apply);
  input.addEventListener("change", apply);
  const tools = el("div", { class: "tools" }, el("label", {}, "Base ", picker), el("label", {}, "interval ", input));
  const selected = context.terms.find(([word]) => word === "time")?.[1];
  if (selected !== undefined && selected !== time) {
    const title = "Take the selected interval as the base; then select another one to compare it with";
    tools.append(button("Take the selected interval", title, () => context.go("diff", `${context.recording.id}:${selected}`)));
  }
  return tools;
}

function lead({ unit: of, rows, all, base, new: next, alpha }: DiffAnswer): string {
  const unit = of ?? "";
  const marked = rows.filter((row) => row.mark !== "noise").length;
  const found = marked === 0 ? "No function differs by more than chance explains" : `${count(marked)} ${marked === 1 ? "function differs" : "functions differ"} by more than chance explains`;
  return `${weight(all.value[0], unit)} in ${base.name}, ${weight(all.value[1], unit)} in ${next.name} (${signed(all.difference, unit)}). ${found} (false discovery rate ${Math.round(100 * alpha)}%).`;
}

/** The rows and the picture of a comparison, below a sentence. */
export function showChanges(host: HTMLElement, context: ViewContext, answer: DiffAnswer, picture: Profile, lead: string): void {
  const unit = answer.unit ?? "";
  const shares = ([base, next]: readonly [number, number]) => `${share(100 * base)} → ${share(100 * next)}`;
  const columns: Column<ChangedRow>[] = [
    { title: "Change", isNumber: true, value: (row) => row.difference, cell: (row) => signed(row.difference, unit) },
    { title: "95% interval", isNumber: true, isMore: true, cell: (row) => `${signed(row.low, unit)} to ${signed(row.high, unit)}` },
    { title: "Share", isNumber: true, isMore: true, value: (row) => row.share[1], cell: (row) => shares(row.share) },
    { title: "Verdict", value: (row) => row.mark, cell: (row) => el("span", { class: `mark mark-${row.mark}` }, MARKS[row.mark]) },
    { title: "Function", value: subject, cell: (row) => functionLabel(subject(row), row.kind) },
    { title: "File", isMore: true, value: (row) => row.dso ?? "", cell: (row) => fileLabel(row.dso ?? "") },
  ];
  const open = (row: ChangedRow) => row.function !== undefined && context.go("table", row.function);
  host.append(el("p", { class: "lead" }, lead));
  if (picture.facts.diff) host.append(el("p", { class: "hint" }, `${picture.facts.diff.per}; ${picture.facts.diff.rule}.`));
  if (differs(picture.tree)) appendFlame(host, picture, context);
  else host.append(el("p", { class: "empty" }, "No flame graph: no box differs by more than chance explains, so its widths would be noise."));
  host.append(table(columns, answer.rows, { label: "Changes by function", press: open }));
  if (answer.rows_left_out > 0) host.append(el("p", { class: "hint" }, `${count(answer.rows_left_out)} rows with less are left out.`));
}

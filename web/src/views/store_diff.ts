// Two ranges, or two values of a label, compared: which differences are more than chance.
//
// The view's own word is what is compared with; see `baseOf`. Behind it, `|total` compares sums in place of shares.

import { SelectionClient, type StoreClient, type StoredSelection } from "../api/store_client";
import type { DiffAnswer } from "../api/types";
import { decode } from "../model/decode";
import { count, date, weight } from "../model/format";
import { baseOf, labelDetail, selectorOf, shifted, type Base, type Range, type StoreState } from "../model/store_state";
import { button, el } from "../widgets/dom";
import { showChanges } from "./diff_view";
import { share } from "./labels";
import type { ViewContext } from "./view";

export interface Compared {
  readonly state: StoreState;
  readonly selection: StoredSelection;
  readonly client: StoreClient;
}

interface Side {
  readonly selector: string;
  readonly range: Range;
  /** For people. */
  readonly said: string;
}

export async function storeDiff(host: HTMLElement, context: ViewContext, compared: Compared): Promise<void> {
  const { selection, state } = compared;
  const [word, isTotal] = parts(context.detail);
  const base = baseOf(word, selection.range);
  const [before, after] = sides(base, state, selection);
  host.append(await form(context, compared, base, isTotal));
  if (base.kind === "label" && base.base === base.next) {
    host.append(el("p", { class: "empty" }, "Choose two different values."));
    return;
  }
  const sums = await Promise.all([before, after].map((side) => compared.client.series({ ...selection, ...side }, 86_400, [])));
  const empty = [before, after].find((_, index) => sums[index].length === 0);
  if (empty) {
    host.append(el("p", { class: "empty" }, `There are no profiles of ${empty.said}: compare with something else.`));
    return;
  }
  const per = isTotal ? "total" : "second";
  const client = new SelectionClient({ ...selection, ...after }, context.terms, context.signal, { ...before, per });
  try {
    const [answer, flame] = await Promise.all([client.diff("selection", ""), client.diffFlame("selection", "")]);
    showChanges(host, context, answer, decode(flame), lead(answer, before, after, isTotal));
  } catch (error) {
    if (context.signal.aborted) throw error;
    host.append(el("p", { class: "problem", role: "alert" }, error instanceof Error ? error.message : String(error)));
  }
}

function parts(detail: string): [string, boolean] {
  const [word, how] = detail.split("|");
  return [word, how === "total"];
}

function sides(base: Base, state: StoreState, { selector, range }: StoredSelection): [Side, Side] {
  const times = ({ from, until }: Range) => `${date(from).replace(" UTC", "")} to ${date(until)}`;
  if (base.kind === "label") {
    const side = (value: string): Side => ({ selector: selectorOf(state, { name: base.name, op: "=", value }), range, said: `${base.name} ${value}` });
    return [side(base.base), side(base.next)];
  }
  const other = base.kind === "ago" ? shifted(range, base.by) : base.range;
  return [{ selector, range: other, said: times(other) }, { selector, range, said: times(range) }];
}

/** What is compared is chosen here. */
async function form(context: ViewContext, { client, selection, state }: Compared, base: Base, isTotal: boolean): Promise<HTMLElement> {
  const { range } = selection;
  const length = range.until - range.from;
  const labels = (await client.labels(selection.selector, range)).filter((name) => !name.startsWith("__") && (name !== "service_name" || state.service === undefined));
  const go = (word: string, total = isTotal) => context.go("diff", total ? `${word}|total` : word);
  const picker = el("select", { "aria-label": "Compare with" });
  const choices: [string, string][] = [
    ["", "the preceding range of the same length"],
    [`ago:${86_400_000}`, "the same range a day ago"],
    [`ago:${7 * 86_400_000}`, "the same range a week ago"],
    ...labels.map((name): [string, string] => [labelDetail(name, "", ""), `two values of ${name}`]),
  ];
  if (base.kind === "range") choices.push([parts(context.detail)[0], `${date(base.range.from)} to ${date(base.range.until)}`]);
  for (const [value, said] of choices) picker.append(el("option", { value }, said));
  picker.value = base.kind === "label" ? labelDetail(base.name, "", "") : base.kind === "ago" && base.by === length ? "" : parts(context.detail)[0];
  picker.addEventListener("change", () => go(picker.value));
  const tools = el("div", { class: "tools" }, el("label", {}, "Compare with ", picker));
  if (base.kind === "label") tools.append(...(await values(base, client, selection, state, go)));
  else tools.append(button("Keep this range as the base", "Keep this range as the base; then select another one to compare it with", () => go(`range:${Math.round(range.from)}-${Math.round(range.until)}`)));
  const how = el("select", { "aria-label": "Compared by" }, el("option", { value: "" }, "shares of the time"), el("option", { value: "total" }, "sums"));
  how.value = isTotal ? "total" : "";
  how.addEventListener("change", () => go(parts(context.detail)[0], how.value === "total"));
  tools.append(el("label", {}, "by ", how));
  return tools;
}

async function values(base: Base & { kind: "label" }, client: StoreClient, { range }: StoredSelection, state: StoreState, go: (word: string) => void): Promise<HTMLElement[]> {
  const service = base.name === "service_name" ? "" : selectorOf({ ...state, query: "" });
  const known = await client.values(base.name, service, range);
  const pick = (label: string, value: string, take: (value: string) => void) => {
    const select = el("select", { "aria-label": label }, ...(known.includes(value) ? [] : [el("option", { value }, value === "" ? "…" : value)]), ...known.map((one) => el("option", { value: one }, one)));
    select.value = value;
    select.addEventListener("change", () => take(select.value));
    return select;
  };
  const [first = "", second = first] = known;
  const [old, next] = [base.base || first, base.next || second];
  if (base.base === "" && old !== next) queueMicrotask(() => go(labelDetail(base.name, old, next)));
  return [
    el("label", {}, "base ", pick("Value of the base", old, (value) => go(labelDetail(base.name, value, next)))),
    el("label", {}, "new ", pick("New value", next, (value) => go(labelDetail(base.name, old, value)))),
  ];
}

function lead(answer: DiffAnswer, before: Side, after: Side, isTotal: boolean): string {
  const unit = answer.unit ?? "";
  const marked = answer.rows.filter((row) => row.mark !== "noise").length;
  const found = marked === 0 ? "No function differs by more than chance explains" : `${count(marked)} ${marked === 1 ? "function differs" : "functions differ"} by more than chance explains`;
  const side = ({ weight: all, samples }: DiffAnswer["base"], { said }: Side) => `${said} (${weight(all, unit)}, ${count(samples)} samples)`;
  const as = isTotal ? "by sums" : `by share of the time: ${share(100)} is all of a side`;
  return `${side(answer.base, before)} → ${side(answer.new, after)}, ${as}. ${found} (false discovery rate ${Math.round(100 * answer.alpha)}%).`;
}

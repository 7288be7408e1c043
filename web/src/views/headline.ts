// What was recorded, and how far it may be trusted: the first thing to read.

import type { Facts } from "../model/decode";
import { changeOf } from "../model/diff";
import { count, date, duration, percent, weight } from "../model/format";
import { el } from "../widgets/dom";

interface Fact {
  readonly label: string;
  readonly value: string;
  readonly isBad?: boolean;
  readonly title?: string;
  /** Left out on a narrow screen. */
  readonly isMore?: boolean;
}

/** `swapped`: the sides of a differential picture are exchanged. */
export function showHeadline(host: HTMLElement, facts: Facts, total: number, swapped = false): void {
  const list = el("dl", { class: "facts" });
  for (const fact of facts.diff ? changeFacts(facts, swapped) : factsOf(facts, total)) {
    const attributes = { class: `fact${fact.isBad ? " bad" : ""}${fact.isMore ? " more" : ""}`, title: fact.title ?? "" };
    list.append(el("div", attributes, el("dt", {}, fact.label), el("dd", {}, fact.value)));
  }
  host.replaceChildren(el("h1", { title: facts.command ?? facts.title }, facts.title), list);
  if (facts.diff) host.append(el("p", { class: "note more" }, `${facts.diff.per}; ${facts.diff.rule}`));
  if (facts.filters) host.append(el("p", { class: "note" }, `Filtered: ${facts.filters}`));
  for (const warning of facts.warnings ?? []) host.append(el("p", { class: "note bad" }, warning));
}

/** Both sides, and what all of it came to. */
function changeFacts(facts: Facts, swapped: boolean): Fact[] {
  const { diff, unit } = facts;
  if (!diff) return [];
  const [base, next] = swapped ? [diff.values[1], diff.values[0]] : diff.values;
  const names = swapped ? [diff.names[1], diff.names[0]] : diff.names;
  return [
    { label: "base", value: weight(base, unit), title: names[0] },
    { label: "new", value: weight(next, unit), title: names[1] },
    { label: "change", value: changeOf(base, next, unit) },
    { label: "samples", value: count(facts.samples), isMore: true },
    { label: "lost", value: count(facts.lost), isBad: facts.lost > 0, isMore: facts.lost === 0 },
  ];
}

function factsOf(facts: Facts, total: number): Fact[] {
  const list: Fact[] = [];
  const some = facts.samples !== facts.recorded;
  list.push({
    label: "samples",
    value: some ? `${count(facts.samples)} of ${count(facts.recorded)}` : count(facts.samples),
  });
  if (facts.complete !== undefined) {
    list.push({
      label: "complete stacks",
      value: percent(facts.complete, facts.samples),
      isBad: facts.samples > 0 && facts.complete < 0.95 * facts.samples,
      title: "Samples whose stack reaches the root; the others say at their root why they don't",
    });
  }
  list.push({
    label: "lost",
    value: count(facts.lost),
    isBad: facts.lost > 0,
    title: "Samples that the kernel dropped",
  });
  if (facts.weighs !== undefined) list.push({ label: facts.weighs, value: weight(total, facts.unit) });
  if (facts.durationNs !== undefined) list.push({ label: "duration", value: duration(facts.durationNs) });
  if (facts.event !== undefined) {
    const value = facts.hz === undefined ? facts.event : `${facts.event}, ${count(facts.hz)} Hz`;
    list.push({ label: "event", value, isMore: true });
  }
  if (facts.startMs !== undefined) list.push({ label: "recorded", value: date(facts.startMs), isMore: true });
  if (facts.host !== undefined) list.push({ label: "host", value: facts.host, isMore: true });
  return list;
}

// What was recorded, and how far it may be trusted: the first thing to read.

import type { Facts } from "../model/decode";
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

export function showHeadline(host: HTMLElement, facts: Facts, total: number): void {
  const list = el("dl", { class: "facts" });
  for (const fact of factsOf(facts, total)) {
    const attributes = { class: `fact${fact.isBad ? " bad" : ""}${fact.isMore ? " more" : ""}`, title: fact.title ?? "" };
    list.append(el("div", attributes, el("dt", {}, fact.label), el("dd", {}, fact.value)));
  }
  host.append(el("h1", { title: facts.command ?? facts.title }, facts.title), list);
  if (facts.filters) host.append(el("p", { class: "note" }, `Filtered: ${facts.filters}`));
  for (const warning of facts.warnings ?? []) host.append(el("p", { class: "note bad" }, warning));
}

function factsOf(facts: Facts, total: number): Fact[] {
  const list: Fact[] = [];
  const some = facts.samples !== facts.recorded;
  list.push({
    label: "samples",
    value: some ? `${count(facts.samples)} of ${count(facts.recorded)}` : count(facts.samples),
  });
  list.push({
    label: "complete stacks",
    value: percent(facts.complete, facts.samples),
    isBad: facts.samples > 0 && facts.complete < 0.95 * facts.samples,
    title: "Samples whose stack reaches the root; the others say at their root why they don't",
  });
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

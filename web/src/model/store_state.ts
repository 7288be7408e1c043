// What of a store is looked at, as it stands in the page's address.
//
// `?service=api&query={region="eu"}&type=…&last=1h&view=table&detail=f&focus=^f$`, or `from` and `until` in place of `last`.

import { termsOf, type Term } from "./selection";

/** A condition on a label. */
export interface Matcher {
  readonly name: string;
  readonly op: "=" | "!=" | "=~" | "!~";
  readonly value: string;
}

/** A time range in milliseconds since 1970. */
export interface Range {
  readonly from: number;
  readonly until: number;
}

export interface StoreState {
  readonly service: string | undefined;
  /** A label selector, maybe with braces; without the service. */
  readonly query: string;
  readonly type: string | undefined;
  /** A range that is fixed; otherwise the last so long. */
  readonly range: Range | undefined;
  readonly last: string;
  readonly view: string | undefined;
  readonly detail: string;
  /** Whether the page asks again by itself. */
  readonly isLive: boolean;
  readonly terms: readonly Term[];
}

const MINUTE = 60_000;

/** Ranges that end now: word, what it is called, length in milliseconds. */
export const PRESETS: readonly (readonly [string, string, number])[] = [
  ["5m", "last 5 minutes", 5 * MINUTE],
  ["15m", "last 15 minutes", 15 * MINUTE],
  ["1h", "last hour", 60 * MINUTE],
  ["6h", "last 6 hours", 360 * MINUTE],
  ["24h", "last 24 hours", 1440 * MINUTE],
  ["7d", "last 7 days", 10_080 * MINUTE],
  ["30d", "last 30 days", 43_200 * MINUTE],
];

const LAST = "1h";

export function stateOf(words: URLSearchParams): StoreState {
  const [from, until] = [Number(words.get("from")), Number(words.get("until"))];
  const last = words.get("last") ?? LAST;
  return {
    service: words.get("service") ?? undefined,
    query: words.get("query") ?? "",
    type: words.get("type") ?? undefined,
    range: from > 0 && until > from ? { from, until } : undefined,
    last: PRESETS.some(([id]) => id === last) ? last : LAST,
    view: words.get("view") ?? undefined,
    detail: words.get("detail") ?? "",
    isLive: words.has("live"),
    terms: termsOf(words),
  };
}

export function wordsOf(state: StoreState): URLSearchParams {
  const words = new URLSearchParams();
  const put = (name: string, text: string | undefined) => text !== undefined && text !== "" && words.set(name, text);
  put("service", state.service);
  put("query", state.query);
  put("type", state.type);
  put("last", state.range || state.last === LAST ? undefined : state.last);
  put("from", state.range && String(Math.round(state.range.from)));
  put("until", state.range && String(Math.round(state.range.until)));
  put("view", state.view);
  put("detail", state.detail);
  put("live", state.isLive ? "1" : undefined);
  for (const [word, text] of state.terms) words.append(word, text);
  return words;
}

export function rangeOf(state: StoreState, now: number): Range {
  const length = PRESETS.find(([id]) => id === state.last)?.[2] ?? 60 * MINUTE;
  return state.range ?? { from: now - length, until: now };
}

/** The conditions of a selector; undefined if it is written in a way that this does not read. */
export function matchersOf(query: string): readonly Matcher[] | undefined {
  let rest = query.trim().replace(/^\{/, "").replace(/\}$/, "").trim();
  const found: Matcher[] = [];
  while (rest !== "") {
    const match = /^([\w.:/-]+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*(?:,\s*|$)/.exec(rest);
    if (!match) return undefined;
    found.push({ name: match[1], op: match[2] as Matcher["op"], value: match[3].replace(/\\(.)/g, "$1") });
    rest = rest.slice(match[0].length);
  }
  return found;
}

const quoted = (text: string): string => `"${text.replace(/[\\"]/g, "\\$&")}"`;

export const queryOf = (matchers: readonly Matcher[]): string =>
  matchers.length === 0 ? "" : `{${matchers.map(({ name, op, value }) => `${name}${op}${quoted(value)}`).join(", ")}}`;

/** The selector of what is looked at: conditions and service; `label` in place of conditions on that label. */
export function selectorOf(state: StoreState, label?: Matcher): string {
  const inner = state.query.trim().replace(/^\{|\}$/g, "").trim();
  const matchers = matchersOf(state.query);
  const others = label && matchers ? queryOf(matchers.filter(({ name }) => name !== label.name)).slice(1, -1) : inner;
  const service = state.service !== undefined && label?.name !== "service_name" ? `service_name=${quoted(state.service)}` : "";
  const one = label ? `${label.name}${label.op}${quoted(label.value)}` : "";
  const parts = [service, others, one].filter((part) => part !== "");
  return parts.length === 0 ? "" : `{${parts.join(", ")}}`;
}

const OPS: Readonly<Record<Matcher["op"], string>> = { "=": "", "!=": "not ", "=~": "matches ", "!~": "doesn’t match " };

/** A condition for people. */
export const saidMatcher = ({ name, op, value }: Matcher): string => `${name} ${OPS[op]}${value}`;

/** What the range before is, of the same length; or the same range so long ago. */
export const shifted = ({ from, until }: Range, by: number): Range => ({ from: from - by, until: until - by });

/** `cpu` of `process_cpu:cpu:nanoseconds:cpu:nanoseconds`, with the kind of profile where that says more. */
export function shortType(type: string): string {
  const [name, what = type, , period = ""] = type.split(":");
  const more = [name === what || name === undefined ? "" : name, period === "" || period === what ? "" : `by ${period}`];
  const said = more.filter((part) => part !== "").join(", ");
  return said === "" ? what : `${what} (${said})`;
}

/** Who takes the time of a type: processors, or threads that are off them. */
export const takersOf = (type: string): string => (/^(off_cpu|run[-_]queue|wall):/.test(type) ? "threads" : "CPUs");

export const unitOf = (type: string): string => {
  const unit = type.split(":")[2] ?? "";
  return unit === "nanoseconds" ? "ns" : unit === "count" ? "" : unit;
};

/** What of the page a selection compares with: `before`, `ago:MS`, `range:A-B`, or `label:NAME:BASE:NEW`. */
export type Base =
  | { readonly kind: "ago"; readonly by: number }
  | { readonly kind: "range"; readonly range: Range }
  | { readonly kind: "label"; readonly name: string; readonly base: string; readonly next: string };

export function baseOf(detail: string, range: Range): Base {
  const [kind, ...rest] = detail.split(":");
  const [a, b] = (rest[0] ?? "").split("-").map(Number);
  if (kind === "ago" && a > 0) return { kind: "ago", by: a };
  if (kind === "range" && a > 0 && b > a) return { kind: "range", range: { from: a, until: b } };
  if (kind === "label" && rest.length === 3) {
    const [name, base, next] = rest.map(decodeURIComponent);
    return { kind: "label", name, base, next };
  }
  return { kind: "ago", by: range.until - range.from };
}

export const labelDetail = (...parts: readonly [name: string, base: string, next: string]): string =>
  `label:${parts.map(encodeURIComponent).join(":")}`;

// What of a recording is looked at, as it stands in the page's address: the words are those of `plumb report`'s filters.

/** Words with a text, and words that stand alone. */
export const WORDS = ["comm", "exe", "dso", "symbol", "tid", "pid", "cpu", "event", "time", "focus", "ignore", "hide"] as const;
export const FLAGS = ["kernel", "user", "no-idle", "no-inline", "native"] as const;
export type Word = (typeof WORDS)[number] | (typeof FLAGS)[number];
export type Term = readonly [Word, string];

const isWord = (name: string): name is Word => [...WORDS, ...FLAGS].includes(name as Word);
const SINGLE: readonly Word[] = ["time", "event", ...FLAGS];

/** The terms of a query, in their order; what is no term is left out. */
export function termsOf(query: URLSearchParams): Term[] {
  return [...query].filter((pair): pair is [Word, string] => isWord(pair[0]));
}

/** With one term more, or in place of the one of its word where there can be only one. */
export function withTerm(terms: readonly Term[], [word, text]: Term): Term[] {
  const isMode = word === "kernel" || word === "user";
  const stays = ([known, value]: Term) =>
    !(SINGLE.includes(word) && known === word) &&
    !(isMode && (known === "kernel" || known === "user")) &&
    !(known === word && value === text);
  return [...terms.filter(stays), [word, text]];
}

export const withoutTerm = (terms: readonly Term[], index: number): Term[] => terms.filter((_, at) => at !== index);

export const withoutWord = (terms: readonly Term[], word: Word): Term[] => terms.filter(([known]) => known !== word);

/** The selected interval in nanoseconds since the start. */
export function intervalOf(terms: readonly Term[], duration: number): { from: number; to: number } | undefined {
  const text = terms.find(([word]) => word === "time")?.[1];
  const match = /^([\d.]*)-([\d.]*)(?:@|$)/.exec(text ?? "");
  if (!match) return undefined;
  const ns = (part: string, missing: number) => (part === "" ? missing : Number(part) * 1e9);
  return { from: ns(match[1], 0), to: Math.min(duration, ns(match[2], duration)) };
}

/** The part of each second that is selected, as fractions of it. */
export function partOf(terms: readonly Term[]): { from: number; to: number } | undefined {
  const match = /@([\d.]*)-([\d.]*)$/.exec(terms.find(([word]) => word === "time")?.[1] ?? "");
  return match ? { from: Number(match[1] || 0), to: Number(match[2] || 1) } : undefined;
}

/** The term of an interval, in seconds with as many digits as it takes. */
export function intervalTerm(from: number, to: number): Term {
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(Math.max(1, to - from) / 1e9)) + 3));
  const seconds = (ns: number) => (ns / 1e9).toFixed(digits);
  return ["time", `${seconds(from)}-${seconds(to)}`];
}

/** A pattern that matches this name and no other. */
export const exactly = (name: string): string => `^${name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")}$`;

const SAID: Readonly<Record<Word, string>> = {
  comm: "thread name",
  exe: "executable",
  dso: "file",
  symbol: "function",
  tid: "thread",
  pid: "process",
  cpu: "CPU",
  event: "event",
  time: "time",
  focus: "only stacks with",
  ignore: "no stacks with",
  hide: "frames hidden",
  kernel: "kernel mode",
  user: "user mode",
  "no-idle": "no idle task",
  "no-inline": "no inlined calls",
  native: "interpreter frames",
};

/** A term for people. */
export function said([word, text]: Term): string {
  const part = word === "time" ? /^(.*)@(.*)$/.exec(text) : null;
  if (part) return `${part[1] === "" ? "" : `time ${part[1]} s, `}${part[2]} s of each second`;
  const plain = /^\^(.*)\$$/.exec(text)?.[1].replace(/\\(.)/g, "$1") ?? text;
  return text === "" ? SAID[word] : `${SAID[word]} ${plain}${word === "time" ? " s" : ""}`;
}

// Asks a server that keeps a store.

import type { Range } from "../model/store_state";
import type { Finding, FindingsAnswer } from "./documents";
import { ask, RecordingClient, type Parameters } from "./client";

export type { Finding, FindingsAnswer };

export interface Point {
  readonly time: number;
  readonly value: number;
}

export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly points: readonly Point[];
}

/** What is empty is left out. */
interface WireSeries {
  readonly labels?: readonly { readonly name: string; readonly value: string }[];
  readonly points?: readonly { readonly value?: number; readonly timestamp: string }[];
}

/** What is selected of all profiles. */
export interface StoredSelection {
  readonly type: string;
  readonly selector: string;
  readonly range: Range;
}

export class StoreClient {
  constructor(private readonly signal: AbortSignal) {}

  private async get<T>(path: string, parameters: Parameters): Promise<T> {
    return (await (await ask(`/api/v1/${path}`, parameters, this.signal)).json()) as T;
  }

  types(range: Range): Promise<readonly string[]> {
    return this.get("types", times(range));
  }

  labels(selector: string, range: Range): Promise<readonly string[]> {
    return this.get("labels", [...times(range), ["query", selector]]);
  }

  values(name: string, selector: string, range: Range): Promise<readonly string[]> {
    return this.get("labels", [...times(range), ["name", name], ["query", selector]]);
  }

  findings({ type, selector, range }: StoredSelection): Promise<FindingsAnswer> {
    return this.get("findings", [...times(range), ["type", type], ["query", selector]]);
  }

  /** Values over time, added up in steps of so many seconds. */
  async series({ type, selector, range }: StoredSelection, step: number, by: readonly string[]): Promise<readonly Series[]> {
    const parameters: [string, string][] = [["type", type], ["query", selector], ["step", String(step)], ...by.map((name): [string, string] => ["by", name])];
    const series = await this.get<readonly WireSeries[]>("series", [...times(range), ...parameters]);
    return series.map(({ labels = [], points = [] }) => ({
      labels: Object.fromEntries(labels.map(({ name, value }) => [name, value])),
      // A step has the time of its end.
      points: points.map(({ value = 0, timestamp }) => ({ time: Number(timestamp) - 1000 * step, value })),
    }));
  }
}

/** Answers on a selection as on a recording, also compared with another one. */
export class SelectionClient extends RecordingClient {
  private readonly words: Parameters;

  constructor({ type, selector, range }: StoredSelection, terms: Parameters, signal: AbortSignal, base?: { readonly selector: string; readonly range: Range; readonly per: string }) {
    const of = base ? [["base-query", base.selector], ...times(base.range, "base-"), ["per", base.per]] as const : [];
    const words: Parameters = [["query", selector], ["type", type], ...times(range), ...of, ...terms];
    super("selection", words, signal, (path, parameters) => ask(`/api/v1${path}`, parameters, signal));
    this.words = words;
  }

  override download(format: string): string {
    return `/api/v1/selection/export?${new URLSearchParams([...this.words.map(([name, value]) => [name, value]), ["format", format]])}`;
  }
}

const times = ({ from, until }: Range, prefix = ""): [string, string][] => [
  [`${prefix}from`, String(Math.floor(from))],
  [`${prefix}until`, String(Math.ceil(until))],
];

// Asks a server that keeps a store.

import { ask, type Parameters } from "./client";

export interface Point {
  readonly time: number;
  readonly value: number;
}

export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly points: readonly Point[];
}

export interface StoredFunction {
  readonly function: string;
  readonly self: number;
  readonly total: number;
}

/** Flame graphs as Pyroscope has them: four numbers a box, as texts. */
export interface Flamebearer {
  readonly names: readonly string[];
  readonly levels: readonly { readonly values: readonly string[] }[];
  readonly total: string;
}

/** A time range in milliseconds since 1970. */
export interface Range {
  readonly from: number;
  readonly until: number;
}

/** What is empty is left out. */
interface WireSeries {
  readonly labels?: readonly { readonly name: string; readonly value: string }[];
  readonly points?: readonly { readonly value?: number; readonly timestamp: string }[];
}

export class StoreClient {
  constructor(private readonly signal: AbortSignal) {}

  private async get<T>(path: string, parameters: Parameters): Promise<T> {
    return (await (await ask(`/api/v1/${path}`, parameters, this.signal)).json()) as T;
  }

  types(range: Range): Promise<readonly string[]> {
    return this.get("types", times(range));
  }

  /** Values over time, added up in steps of so many seconds. */
  async series(type: string, query: string, range: Range, step: number, by: readonly string[]): Promise<readonly Series[]> {
    const parameters: [string, string][] = [["type", type], ["query", query], ["step", String(step)], ...by.map((name): [string, string] => ["by", name])];
    const series = await this.get<readonly WireSeries[]>("series", [...times(range), ...parameters]);
    return series.map(({ labels = [], points = [] }) => ({
      labels: Object.fromEntries(labels.map(({ name, value }) => [name, value])),
      points: points.map(({ value = 0, timestamp }) => ({ time: Number(timestamp), value })),
    }));
  }

  functions(type: string, query: string, range: Range, limit: number): Promise<{ readonly total: number; readonly functions: number; readonly rows: readonly StoredFunction[] }> {
    return this.get("functions", [...times(range), ["type", type], ["query", query], ["limit", String(limit)]]);
  }

  flame(type: string, query: string, range: Range): Promise<Flamebearer> {
    return this.get("flame", [...times(range), ["type", type], ["query", query]]);
  }

  export(type: string, query: string, range: Range, format: string): string {
    return `/api/v1/export?${new URLSearchParams([...times(range), ["type", type], ["query", query], ["format", format]])}`;
  }
}

const times = ({ from, until }: Range): [string, string][] => [
  ["from", String(Math.floor(from))],
  ["until", String(Math.ceil(until))],
];

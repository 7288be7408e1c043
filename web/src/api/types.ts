// What the server answers, as far as the page reads it. The documents are described in docs/json.md and docs/page.md.
// The types of documents.ts are made of the server's own.

import type { ComparedNames, Comparison, Head, KernelTable, NamedCallTree, SampledCalls } from "./documents";

export type * from "./documents";

export interface ServerAbout {
  readonly plumb: string;
  readonly serves: "recordings" | "store";
}

/** The page knows of which function it asked. */
export type CallTree = Omit<NamedCallTree, "function">;

export interface TreesAnswer extends Omit<Head, "version"> {
  readonly trees: readonly CallTree[];
}

export interface KernelAnswer extends KernelTable {
  readonly unit: string | null;
}

export type DiffAnswer = Comparison & ComparedNames;

/** A system call as `plumb kernel --calls` counted it, with `--latency` also timed. */
export interface CountedCall {
  readonly name: string;
  readonly calls: number;
  readonly errors: number;
  readonly errors_by_name?: Readonly<Record<string, number>>;
  readonly bytes?: number | null;
  readonly timed_calls?: number;
  readonly wall_ns?: number;
  readonly on_cpu_ns?: number;
  readonly blocked_ns?: number;
  readonly queued_ns?: number;
  readonly mean_ns?: number | null;
  readonly p50_ns?: number | null;
  readonly p99_ns?: number | null;
  readonly max_ns?: number | null;
  readonly histogram?: readonly { readonly from_ns: number; readonly to_ns: number; readonly calls: number }[];
}

export interface CountedCalls {
  readonly duration_ns?: number;
  readonly calls: readonly CountedCall[];
  readonly groups?: readonly { readonly id?: number | string; readonly name: string; readonly calls: readonly CountedCall[] }[];
  readonly events?: Readonly<Record<string, number>>;
  readonly tax?: { readonly null_call_ns?: number; readonly each_counted_call_ns?: number; readonly floor_ns?: number | null };
}

export interface CallsAnswer extends SampledCalls {
  readonly counted: CountedCalls | null;
}

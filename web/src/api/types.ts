// What the server answers, as far as the page reads it. The documents are described in docs/json.md and docs/page.md.
// The types of documents.ts are made of the server's own.

import type { Comparison, CutCause, Head, KernelTable, Lack, NamedCallTree } from "./documents";

export type * from "./documents";

export interface ServerAbout {
  readonly plumb: string;
  readonly serves: "recordings" | "store";
}

export interface RecordingEntry {
  readonly id: string;
  readonly name: string;
  readonly command: readonly string[];
  readonly start_unix_ns: number;
  readonly duration_ns: number;
  readonly samples: number;
  /** Whether it is, or has, a count of system calls. */
  readonly has_calls?: boolean;
}

export interface EventEntry {
  readonly name: string;
  readonly unit: string;
  readonly samples: number;
  readonly weight: number;
  readonly is_clock: boolean;
}

/** Facts of a recording, and of what is selected of it. */
export interface RecordingAbout {
  readonly name: string;
  readonly command: readonly string[];
  readonly recorder: string;
  readonly host: string;
  readonly kernel: string;
  readonly arch: string;
  readonly cpus: number;
  readonly start_unix_ns: number;
  readonly duration_ns: number;
  readonly target_cpu_ns: number | null;
  readonly recorder_cpu_ns: number | null;
  readonly frequency_hz: number | null;
  readonly lost_samples: number;
  readonly damaged_records: number;
  readonly warnings: readonly string[];
  readonly events: readonly EventEntry[];
  readonly lacks: readonly Lack[];
  readonly selected: {
    readonly event: string | null;
    readonly unit: string | null;
    readonly duration_ns: number;
    readonly samples: number;
    readonly weight: number;
    readonly kept_samples: number;
    readonly kept_weight: number;
    readonly coverage_percent: number | null;
    readonly complete_percent: number | null;
    readonly cut_causes: readonly CutCause[];
    readonly options: string;
  };
}

export interface TimelineEntry {
  readonly comm: string;
  readonly pid: number;
  readonly tid: number;
  readonly exe: string;
  readonly event: string;
  readonly weight: number;
  readonly samples: number;
  readonly bins: readonly number[];
}

export interface TimelineAnswer {
  readonly duration_ns: number;
  /** Begin of the first bin. */
  readonly from_ns: number;
  readonly bin_ns: number;
  readonly aggregated: boolean;
  readonly rows: readonly TimelineEntry[];
  readonly threads_left_out: number;
}

/** The page knows of which function it asked. */
export type CallTree = Omit<NamedCallTree, "function">;

export interface TreesAnswer extends Omit<Head, "version"> {
  readonly trees: readonly CallTree[];
}

export interface KernelAnswer extends KernelTable {
  readonly unit: string | null;
}

export interface ListedInstruction {
  readonly address: string;
  readonly text: string;
  readonly class: string;
  readonly jump_to: number | null;
  readonly target_name: string | null;
  readonly weight: number;
  readonly samples: number;
  readonly percent_of_function: number;
  readonly adjusted_percent_of_function: number;
  readonly called_weight: number;
  readonly doubt: string | null;
  readonly places: readonly { readonly function: string; readonly file: string; readonly line: number }[];
}

export interface ListedLine {
  readonly function: string;
  readonly file: string;
  readonly line: number;
  readonly text: string | null;
  readonly samples: number;
  readonly percent_of_function: number;
  readonly adjusted_percent_of_function: number;
}

export interface ListingAnswer {
  readonly function: string;
  readonly file: string;
  readonly code: string;
  readonly adjusted: boolean;
  readonly samples: number;
  readonly percent_of_all: number;
  readonly instructions: readonly ListedInstruction[];
  readonly lines: readonly ListedLine[];
  readonly notes: readonly string[];
}

interface ComparedSide {
  readonly name: string;
  readonly samples: number;
  readonly weight: number;
}

export interface DiffAnswer extends Comparison {
  readonly base: ComparedSide;
  readonly new: ComparedSide;
  readonly rows_left_out: number;
}

/** Weights by time and by offset within the second, or waits by time and by length. */
export interface HeatmapAnswer {
  readonly event: string | null;
  readonly unit: string;
  readonly column_ns: number;
  /** Begin of the first column, since the start of the recording. */
  readonly first_ns: number;
  readonly columns: readonly (readonly number[])[];
  /** Of offsets: length of a row, and the weight of samples without a time. */
  readonly row_ns?: number;
  readonly untimed?: number;
  /** Of lengths: the shortest of each row. */
  readonly rows_from_ns?: readonly number[];
  /** Whether the event's samples are waits, which have a length. */
  readonly has_latency: boolean;
}

export interface CallRow {
  readonly name: string;
  /** By event. */
  readonly weights: readonly number[];
  readonly samples: readonly number[];
  readonly callers: readonly { readonly function: string; readonly weight: number }[];
}

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

export interface CallsAnswer {
  readonly events: readonly { readonly name: string; readonly weight: number }[];
  readonly rows: readonly CallRow[];
  readonly counted: CountedCalls | null;
}

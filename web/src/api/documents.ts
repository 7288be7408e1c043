// Made of crates/documents by `cargo run -p xtask -- codegen`: do not edit.

export type ProcessesAnswer = { version: number, command: Array<string>, recorder: string, span_ns: number, event: string, unit: string, samples: number, weight: number, processes: number, most_alive: number | null, lives_recorded: boolean, kernel_named: boolean,
/**
 * Rows; parents come first.
 */
programs: Array<Program>, };

export type Program = { parent: number | null, depth: number, exe: string, comm: string, forked: boolean, processes: number, most_alive: number | null, mean_life_ns: number | null, short_processes: number, forks: number, peak_rss_bytes: number | null, accounted_ns: number | null, accounted_processes: number, started_from_by_samples: Array<StartRow>, total_weight: number, self_weight: number, self_samples: number, user_weight: number, kernel_weight: number, parts: { [key in string]: number }, before_exec_weight: number, forking_weight: number, forking_samples: number, };

export type StartRow = { samples: number, weight: number, leaf_first: Array<StackFrame>, };

export type StackFrame = { function: string, file: string, };

export type KernelTable = { version: number, command: Array<string>, recorder: string, duration_ns: number, frequency_hz: number | null, samples: number, lost_samples: number, warnings: Array<string>,
/**
 * Rows, largest first.
 */
rows: Array<KernelEntry>, total_ns: number, user_ns: number, kernel_ns: number, rusage_ns: number | null, off_percent: number | null, is_time: boolean, kernel_named: boolean, };

export type KernelEntry = { name: string, cause: string, cpu_ns: number, samples: number, percent: number, kinds: Array<KernelKind>, stacks?: Array<KernelStack>, };

export type KernelKind = { name: string, cpu_ns: number, samples: number, };

export type KernelStack = { samples: number, cpu_ns: number, leaf_first: Array<StackFrame>, };

export type Costs = { children_percent: number, self_percent: number, children_weight: number, self_weight: number, children_samples: number, self_samples: number, };

export type Place = {
/**
 * Name of the thread.
 */
comm?: string,
/**
 * Process id.
 */
pid?: number,
/**
 * Thread id.
 */
tid?: number,
/**
 * Path of the executable.
 */
exe?: string,
/**
 * File of the code.
 */
dso?: string,
/**
 * Function name.
 */
sym?: string,
/**
 * user, kernel or marker.
 */
kind?: "user" | "kernel" | "marker",
/**
 * Whether all frames are inlined calls.
 */
inlined?: boolean,
/**
 * Start of the function, or the address itself without a function, in the file's own address space.
 */
address?: string,
/**
 * Source file and line.
 */
srcline?: string, };

export type TableRow = { children_percent: number, self_percent: number, children_weight: number, self_weight: number, children_samples: number, self_samples: number,
/**
 * Name of the thread.
 */
comm?: string,
/**
 * Process id.
 */
pid?: number,
/**
 * Thread id.
 */
tid?: number,
/**
 * Path of the executable.
 */
exe?: string,
/**
 * File of the code.
 */
dso?: string,
/**
 * Function name.
 */
sym?: string,
/**
 * user, kernel or marker.
 */
kind?: "user" | "kernel" | "marker",
/**
 * Whether all frames are inlined calls.
 */
inlined?: boolean,
/**
 * Start of the function, or the address itself without a function, in the file's own address space.
 */
address?: string,
/**
 * Source file and line.
 */
srcline?: string, };

export type CallNode = { parent: number | null, cut_branches: number, cut_weight: number, children_percent: number, self_percent: number, children_weight: number, self_weight: number, children_samples: number, self_samples: number,
/**
 * Name of the thread.
 */
comm?: string,
/**
 * Process id.
 */
pid?: number,
/**
 * Thread id.
 */
tid?: number,
/**
 * Path of the executable.
 */
exe?: string,
/**
 * File of the code.
 */
dso?: string,
/**
 * Function name.
 */
sym?: string,
/**
 * user, kernel or marker.
 */
kind?: "user" | "kernel" | "marker",
/**
 * Whether all frames are inlined calls.
 */
inlined?: boolean,
/**
 * Start of the function, or the address itself without a function, in the file's own address space.
 */
address?: string,
/**
 * Source file and line.
 */
srcline?: string, };

export type NamedCallTree = { kind: "top-down" | "bottom-up" | "callers" | "callees", function: string | null,
/**
 * Parents come before their children; `parent` is an index in this list.
 */
nodes: Array<CallNode>, };

export type CutCause = {
/**
 * The reason.
 */
cause: string,
/**
 * The file that caused it.
 */
file: string | null,
/**
 * Number of samples.
 */
samples: number, };

export type Lack = {
/**
 * Description of the missing data.
 */
what: string,
/**
 * Number of samples affected.
 */
samples: number,
/**
 * Advice; empty if there is none.
 */
remedy: string, };

export type Head = { version: number, event: string | null, unit: string | null, samples: number, weight: number, kept_samples: number, kept_weight: number, };

export type FunctionsAnswer = { rows: Array<TableRow>, rows_more: number, version: number, event: string | null, unit: string | null, samples: number, weight: number, kept_samples: number, kept_weight: number, };

export type NamedTreesAnswer = { trees: Array<NamedCallTree>, version: number, event: string | null, unit: string | null, samples: number, weight: number, kept_samples: number, kept_weight: number, };

export type WaitsAnswer = { waits: Array<WaitKind>, idle_threads: number,
/**
 * The one that idles longest first.
 */
idle_names: Array<string>, version: number, event: string | null, unit: string | null, samples: number, weight: number, kept_samples: number, kept_weight: number, };

export type WaitKind = { kind: string, title: string, samples: number, weight: number, percent: number | null, };

export type Comparison = { version: number, event: string | null, unit: string | null, alpha: number, evidence: "single" | "blocked" | "turns", all: Change, rows: Array<ChangedRow>, };

export type ChangedRow = { moved?: MovedFunction, function?: string, dso?: string, source?: string, kind?: "user" | "kernel" | "marker", file?: string, line?: number, path?: Array<string>, cause?: string, name?: string, value: [number, number], share: [number, number], samples: [number, number], difference: number, low: number, high: number, p: number, q: number, q_share: number, detectable: number | null, mark: "more" | "less" | "new" | "eliminated" | "noise", visibility: string, };

export type Change = { value: [number, number], share: [number, number], samples: [number, number], difference: number, low: number, high: number, p: number, q: number, q_share: number, detectable: number | null, mark: "more" | "less" | "new" | "eliminated" | "noise", visibility: string, };

export type MovedFunction = { how: string, caller?: string, };

export type FindingsAnswer = {
/**
 * Version of this structure.
 */
version: number,
/**
 * Start of the range, in milliseconds since 1970.
 */
from_ms: number,
/**
 * End of the range.
 */
until_ms: number,
/**
 * CPU time of all services.
 */
cpu_ns: number,
/**
 * CPU capacity of all machines in that range, if their agents report it.
 */
machine_ns: number | null,
/**
 * Number of services.
 */
services: number,
/**
 * Number of services examined: those with the most CPU time.
 */
examined: number,
/**
 * CPU time of plumb's agents and servers among them.
 */
own_cpu_ns: number,
/**
 * Limits of the answer; empty if everything requested was examined.
 */
truncated: Array<AnswerBound>,
/**
 * The services with the most CPU time, three at most.
 */
largest: Array<LargeService>,
/**
 * The findings, in the order of [`rank()`].
 */
findings: Array<Finding>, };

export type Finding = {
/**
 * The finding as a sentence.
 */
title: string,
/**
 * A name for it without figures, such as the function, that stays the same while the finding lasts. With the service and the kind it identifies
 * the finding.
 */
subject: string,
/**
 * The sort of finding.
 */
kind: FindingKind,
/**
 * The service.
 */
service: string,
/**
 * The owner of the service.
 */
owner: FindingOwner,
/**
 * Share of the service's CPU time.
 */
share_percent: number,
/**
 * CPU time.
 */
cpu_ns: number,
/**
 * CPU time as a share of the machines' capacity, if that is known.
 */
of_machine_percent: number | null,
/**
 * Interval at which the service wakes up, if it does so regularly.
 */
period_ns: number | null,
/**
 * The selection that shows it.
 */
evidence: FindingEvidence,
/**
 * Further details, a sentence each.
 */
details: Array<string>,
/**
 * The remedy, if the cause is known.
 */
remedy: string | null, };

export type FindingKind = "change" | "rhythm" | "wait" | "cause" | "function" | "kernel" | "service";

export type FindingOwner = "service" | "kernel" | "plumb";

export type FindingEvidence = {
/**
 * Label selector.
 */
selector: string,
/**
 * Profile type.
 */
type: string,
/**
 * The function to look for, if any.
 */
function: string | null, };

export type LargeService = {
/**
 * The service.
 */
service: string,
/**
 * CPU time.
 */
cpu_ns: number, };

export type AnswerBound = {
/**
 * The reason.
 */
reason: BoundReason,
/**
 * The service affected; `None` for all.
 */
service: string | null,
/**
 * Number used.
 */
taken: number,
/**
 * Total number.
 */
of: number,
/**
 * The limit as a sentence.
 */
says: string, };

export type BoundReason = "rows" | "stacks" | "samples" | "time" | "memory";

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

export type Costs = {
/**
 * Share of the whole, including callees.
 */
children_percent: number,
/**
 * Own share of the whole.
 */
self_percent: number,
/**
 * Weight including callees.
 */
children_weight: number,
/**
 * Own weight.
 */
self_weight: number,
/**
 * Number of samples including callees.
 */
children_samples: number,
/**
 * Number of own samples.
 */
self_samples: number, };

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

export type TableRow = {
/**
 * Share of the whole, including callees.
 */
children_percent: number,
/**
 * Own share of the whole.
 */
self_percent: number,
/**
 * Weight including callees.
 */
children_weight: number,
/**
 * Own weight.
 */
self_weight: number,
/**
 * Number of samples including callees.
 */
children_samples: number,
/**
 * Number of own samples.
 */
self_samples: number,
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

export type CallNode = {
/**
 * Index of the parent.
 */
parent: number | null,
/**
 * Number of child branches below the limit.
 */
cut_branches: number,
/**
 * Weight of these branches.
 */
cut_weight: number,
/**
 * Share of the whole, including callees.
 */
children_percent: number,
/**
 * Own share of the whole.
 */
self_percent: number,
/**
 * Weight including callees.
 */
children_weight: number,
/**
 * Own weight.
 */
self_weight: number,
/**
 * Number of samples including callees.
 */
children_samples: number,
/**
 * Number of own samples.
 */
self_samples: number,
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

export type NamedCallTree = {
/**
 * Direction.
 */
kind: "top-down" | "bottom-up" | "callers" | "callees",
/**
 * The function whose callers or callees these are.
 */
function: string | null,
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

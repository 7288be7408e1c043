// Made of crates/documents by `cargo run -p xtask -- codegen`: do not edit.

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

export type BusiestThread = { name: string, pid: number, tid: number, lived_ns: number, ran_ns: number, waited_ns: number, unseen_ns: number, held_up_by_others: boolean, };

export type CallCause = { cpu_percent: number, wait_percent: number, gain: GainEstimate | null,
/**
 * The rule's name.
 */
rule: string,
/**
 * The file, call or program.
 */
about: string,
/**
 * The habit that is seen.
 */
pattern: string, threshold: string,
/**
 * The advice.
 */
remedy: string, bound: string, source: string, measured: Array<Measure>, };

export type CallEvent = { name: string, weight: number, };

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

export type CallPath = { callers: Array<string>, whole: boolean, cost: Weight, percent_of_function: number, };

export type CallRow = { name: string, weights: Array<number>, samples: Array<number>, callers: Array<SampledCaller>, };

export type Candidate = { kind: string,
/**
 * Name of the function, the kernel's row or the rule.
 */
name: string,
/**
 * Share of the time.
 */
share: ShareInterval, gain: GainEstimate | null, subject: string, gain_text: string | null, };

export type Causes = { code: Array<CodeCause>,
/**
 * System calls or page faults; none where they were not watched.
 */
calls: Array<CallCause>, processes: Array<ProcessCause>, };

export type Change = { value: [number, number], share: [number, number], samples: [number, number], difference: number, low: number, high: number, p: number, q: number, q_share: number, detectable: number | null, mark: "more" | "less" | "new" | "eliminated" | "noise", visibility: string, };

export type ChangedRow = { moved?: MovedFunction, function?: string, dso?: string, source?: string, kind?: "user" | "kernel" | "marker", file?: string, line?: number, path?: Array<string>, cause?: string, name?: string, value: [number, number], share: [number, number], samples: [number, number], difference: number, low: number, high: number, p: number, q: number, q_share: number, detectable: number | null, mark: "more" | "less" | "new" | "eliminated" | "noise", visibility: string, };

export type CodeCause = { share: ShareInterval, cost: Weight, functions: Array<PlaceCost>, callers: Array<PlaceCost>, loops: unknown[], within: string | null, activity: boolean, gain: GainRange | null,
/**
 * The rule's name.
 */
rule: string,
/**
 * The file, call or program.
 */
about: string,
/**
 * The habit that is seen.
 */
pattern: string, threshold: string,
/**
 * The advice.
 */
remedy: string, bound: string, source: string, measured: Array<Measure>, subject: string, gain_text: string | null, };

export type ComparedNames = {
/**
 * The base.
 */
base: ComparedSide,
/**
 * The new side.
 */
new: ComparedSide,
/**
 * Number of rows that are not shown.
 */
rows_left_out: number, };

export type ComparedSide = {
/**
 * Name of the side.
 */
name: string,
/**
 * Number of compared samples.
 */
samples: number,
/**
 * Weight of the samples.
 */
weight: number, };

export type Comparison = { version: number, event: string | null, unit: string | null, alpha: number, evidence: "single" | "blocked" | "turns", all: Change, rows: Array<ChangedRow>, };

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

export type CutWeight = { reason: string, cost: Weight, };

export type EventEntry = { name: string, unit: string, samples: number, weight: number, is_clock: boolean, };

export type EventWaits = { event: string, total: Weight, rows: Array<WaitCause>, kinds: Array<WaitKind> | null, };

export type ExplainAnswer = { version: number, command: Array<string>, exit_status: number | null,
/**
 * The failure of the command.
 */
failure: string | null, counted: string | null, unit: string, time: RunTime, left_out: LeftOut, split: TimeSplit, functions: Array<HotFunction>, lines: Array<SampledLine>, code: Array<HotCode>, waits: Array<EventWaits>, causes: Causes, quality: RecordingQuality, verdict: Verdict, };

export type FileCost = { file: string, cost: Weight, };

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

export type FindingKind = "change" | "rhythm" | "wait" | "cause" | "function" | "kernel" | "service";

export type FindingOwner = "service" | "kernel" | "plumb";

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

export type FunctionListing = { version: number, function: string, file: string, code: string, start: string, end: string, event: string | null, unit: string | null, adjusted: boolean, weight: number, samples: number, percent_of_all: number, whole_weight: number, outside_weight: number, instructions: Array<ListedInstruction>, lines: Array<ListedLine>, blocks: Array<ListedBlock>,
/**
 * Missing parts, and caveats.
 */
notes: Array<string>, };

export type FunctionsAnswer = { rows: Array<TableRow>, rows_more: number, version: number, event: string | null, unit: string | null, samples: number, weight: number, kept_samples: number, kept_weight: number, };

export type GainBound = { cpu_percent: number, times: number | null, elapsed_percent: number | null, };

export type GainEstimate = { cpu_percent: GainRange, elapsed_percent: GainRange | null, };

export type GainRange = { low: number, high: number, };

export type Head = { version: number, event: string | null, unit: string | null, samples: number, weight: number, kept_samples: number, kept_weight: number, };

export type HeatmapAnswer = { version: number, event: string | null, unit: string, column_ns: number,
/**
 * Begin of the first column, since the start of the recording: times since 1970 exceed the precision of JavaScript's numbers.
 */
first_ns: number, columns: Array<Array<number>>,
/**
 * Begin of the first column of offsets, since 1970.
 */
start_ns?: number,
/**
 * Length of a row of offsets.
 */
row_ns?: number,
/**
 * Weight of the samples without a time, which have no offset.
 */
untimed?: number,
/**
 * The shortest length of each row of lengths.
 */
rows_from_ns?: Array<number>,
/**
 * Whether the event's samples are waits, which have a length.
 */
has_latency: boolean, };

export type HotCode = ReadCode | UnreadCode;

export type HotFunction = { inlined: boolean, self: ShareInterval, self_cost: Weight, total: ShareInterval, total_cost: Weight, line: SourceLine | null, callers: Array<CallPath> | null, function: string, file: string, kernel: boolean, };

export type HotInstruction = { address: number, text: string, class: Array<string>, share: ShareInterval, percent_of_function: number, samples_landed: number, doubt: string | null, line: SourceLine | null, };

export type KernelEntry = { name: string, cause: string, cpu_ns: number, samples: number, percent: number, kinds: Array<KernelKind>, stacks?: Array<KernelStack>, };

export type KernelKind = { name: string, cpu_ns: number, samples: number, };

export type KernelStack = { samples: number, cpu_ns: number, leaf_first: Array<StackFrame>, };

export type KernelTable = { version: number, command: Array<string>, recorder: string, duration_ns: number, frequency_hz: number | null, samples: number, lost_samples: number, warnings: Array<string>,
/**
 * Rows, largest first.
 */
rows: Array<KernelEntry>, total_ns: number, user_ns: number, kernel_ns: number, rusage_ns: number | null, off_percent: number | null, is_time: boolean, kernel_named: boolean, };

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

export type LargeService = {
/**
 * The service.
 */
service: string,
/**
 * CPU time.
 */
cpu_ns: number, };

export type LeftOut = { ignore: Array<string>, percent: number, weight: number, samples: number, };

export type ListedBlock = { first: number, last: number, weight: number, percent_of_function: number, adjusted_percent_of_function: number, after_branch_percent_of_function: number, };

export type ListedInstruction = { address: string, length: number, text: string, class: Array<string>, block: number, target: string | null, target_name: string | null, jump_to: number | null, places: Array<SourcePlace>, weight: number, samples: number, percent_of_function: number, percent_of_all: number, adjusted_weight: number, adjusted_percent_of_function: number, adjusted_percent_of_all: number, behind_percent_of_function: number, doubt: string | null, called_weight: number, called_percent_of_all: number, };

export type ListedLine = { text: string | null, weight: number, samples: number, percent_of_function: number, percent_of_all: number, adjusted_weight: number, adjusted_percent_of_function: number, adjusted_percent_of_all: number, called_weight: number, instructions: Array<number>, function: string, file: string, line: number, };

export type Measure = { what: string, value: number, unit: string, };

export type MovedFunction = { how: string, caller?: string, };

export type NamedCallTree = { kind: "top-down" | "bottom-up" | "callers" | "callees", function: string | null,
/**
 * Parents come before their children; `parent` is an index in this list.
 */
nodes: Array<CallNode>, };

export type NamedTreesAnswer = { trees: Array<NamedCallTree>, version: number, event: string | null, unit: string | null, samples: number, weight: number, kept_samples: number, kept_weight: number, };

export type PlaceCost = { cost: Weight, function: string, file: string, kernel: boolean, };

export type ProcessCause = { share: ShareInterval, cost: Weight, gain_at_most: GainBound,
/**
 * The rule's name.
 */
rule: string,
/**
 * The file, call or program.
 */
about: string,
/**
 * The habit that is seen.
 */
pattern: string, threshold: string,
/**
 * The advice.
 */
remedy: string, bound: string, source: string, measured: Array<Measure>, subject: string, gain_text: string | null, };

export type ProcessesAnswer = { version: number, command: Array<string>, recorder: string, span_ns: number, event: string, unit: string, samples: number, weight: number, processes: number, most_alive: number | null, lives_recorded: boolean, kernel_named: boolean,
/**
 * Rows; parents come first.
 */
programs: Array<Program>, };

export type Program = { parent: number | null, depth: number, exe: string, comm: string, forked: boolean, processes: number, most_alive: number | null, mean_life_ns: number | null, short_processes: number, forks: number, peak_rss_bytes: number | null, accounted_ns: number | null, accounted_processes: number, started_from_by_samples: Array<StartRow>, total_weight: number, self_weight: number, self_samples: number, user_weight: number, kernel_weight: number, parts: { [key in string]: number }, before_exec_weight: number, forking_weight: number, forking_samples: number, };

export type ReadCode = { function: string, file: string, self: ShareInterval, adjusted: boolean, classes: { [key in string]: number }, instructions: Array<HotInstruction>, };

export type RecordingAbout = { name: string, recorder_cpu_ns: number | null, events: Array<EventEntry>, lacks: Array<Lack>, selected: SelectedPart, version: number, command: Array<string>, recorder: string, host: string, kernel: string, arch: string, cpus: number, start_unix_ns: number, duration_ns: number,
/**
 * CPU time of the target.
 */
target_cpu_ns: number | null, frequency_hz: number | null,
/**
 * Occurrences of the event, if there is only one.
 */
occurrences: number | null, scope: string, lost_samples: number, damaged_records: number, warnings: Array<string>, };

export type RecordingEntry = {
/**
 * Name in paths.
 */
id: string, name: string, command: Array<string>, start_unix_ns: number, duration_ns: number, samples: number,
/**
 * Whether it is, or has, a count of system calls. Entries that the page makes itself lack it.
 */
has_calls?: boolean, };

export type RecordingQuality = {
/**
 * Number of samples.
 */
samples: number, lost_samples: number | null, damaged_records: number, frequency_hz: number | null, coverage_percent: number | null, complete_stacks_percent: number | null, cut: Array<CutWeight>, nameless: ShareInterval, nameless_files: Array<FileCost>, without_line_percent: number, ten_percent_is: ShareInterval, recorder_cpu_ns: number | null, warnings: Array<string>, };

export type RunQueueWait = { least_ns: number | null, most_ns: number | null, stolen_ns: number, throttled_ns: number | null, busiest_thread: BusiestThread | null, };

export type RunTime = { elapsed_ns: number | null, cpu_ns: number | null, is_accounted: boolean, processors_used: number | null, processors: number, kernel_percent: number | null, user_only: boolean, waiting_for_processor: RunQueueWait | null, class: string | null, judged_by: string, };

export type SampledCaller = { function: string, weight: number, };

export type SampledCalls = { version: number, events: Array<CallEvent>, rows: Array<CallRow>, };

export type SampledLine = { function: string, share: ShareInterval, percent_of_function: number, adjusted: boolean, cost: Weight, file: string, line: number, };

export type SelectedPart = { event: string | null, unit: string | null, duration_ns: number, samples: number, weight: number, kept_samples: number, kept_weight: number, coverage_percent: number | null, complete_percent: number | null, cut_causes: Array<CutCause>, options: string, };

export type ShareInterval = {
/**
 * The share.
 */
percent: number,
/**
 * Lower end.
 */
low: number,
/**
 * Upper end.
 */
high: number, };

export type SourceLine = { file: string, line: number, };

export type SourcePlace = { function: string, file: string, line: number, };

export type StackFrame = { function: string, file: string, };

export type StartRow = { samples: number, weight: number, leaf_first: Array<StackFrame>, };

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

export type TimeSplit = { total: Weight, accounted_ns: number | null, off_percent: number | null, rows: Array<TimeSplitRow>, user: Array<UserModule>, };

export type TimeSplitRow = { name: string, cause: string, cost: Weight, share: ShareInterval, };

export type TimelineAnswer = { version: number, duration_ns: number,
/**
 * Begin of the first bin.
 */
from_ns: number, bin_ns: number, aggregated: boolean, rows: Array<TimelineEntry>, threads_left_out: number, left_out: Array<TimelineRest>, };

export type TimelineEntry = { comm: string, pid: number, tid: number, exe: string, event: string, weight: number, samples: number, bins: Array<number>, };

export type TimelineRest = { event: string, weight: number, samples: number, };

export type UnreadCode = { function: string, file: string, missing: string, };

export type UnsureCandidate = { samples_needed: number | null, kind: string,
/**
 * Name of the function, the kernel's row or the rule.
 */
name: string,
/**
 * Share of the time.
 */
share: ShareInterval, gain: GainEstimate | null, subject: string, gain_text: string | null, };

export type UserModule = { kind: string, cost: Weight, share: ShareInterval, files: Array<FileCost>, };

export type Verdict = {
/**
 * Smallest CPU share still worth optimizing.
 */
threshold_percent: number,
/**
 * Whether to go on.
 */
verdict: "go on" | "stop" | "waits" | "can't tell",
/**
 * The answer in one sentence, as `plumb explain` prints it.
 */
headline: string,
/**
 * The bottleneck to begin with.
 */
cause: Candidate | null, above: Array<Candidate>, unsure: Array<UnsureCandidate>, obstacle: string | null, nameless: ShareInterval | null,
/**
 * The largest of all.
 */
largest: Candidate | null, };

export type WaitCause = { name: string, cause: string, cost: Weight, stacks: Array<WaitStack>, };

export type WaitKind = { kind: string, title: string, samples: number, weight: number, percent: number | null, };

export type WaitStack = { leaf_first: Array<string>, cost: Weight, };

export type WaitsAnswer = { waits: Array<WaitKind>, idle_threads: number,
/**
 * The one that idles longest first.
 */
idle_names: Array<string>, version: number, event: string | null, unit: string | null, samples: number, weight: number, kept_samples: number, kept_weight: number, };

export type Weight = { weight: number, samples: number, };

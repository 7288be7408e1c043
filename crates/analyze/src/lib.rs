//! Analysis: a profile goes in, a table or a tree comes out.
//!
//! Everything starts from a [`View`]: the samples that a [`Filter`] keeps, over stacks whose inlined calls have
//! become frames of their own. Whatever is computed from a view accounts for every kept sample exactly once, and
//! its order is fixed by weight and then by name, so equal input gives equal output.
//!
//! Not here: I/O, parsing of files, terminals.

#![forbid(unsafe_code)]

mod access;
mod advice;
mod annotate;
mod call_stacks;
mod callees;
mod compare;
mod cost;
mod cost_tree;
mod coverage;
mod delayed;
mod diff;
mod explain;
mod failure;
mod filter;
mod flame;
mod frame;
mod innermost;
mod intervals;
mod isa;
mod keep;
mod kernel;
mod loops;
mod median;
mod names;
#[cfg(test)]
mod numbers;
mod own_code;
mod pattern;
mod percent;
mod precision;
mod procs;
mod pulse;
mod report;
mod rhythm;
mod selected_meta;
mod selection;
mod share;
mod spread;
mod summary;
mod timeline;
mod tree;
mod view;
mod waits;

pub use advice::{
    Advice, Basis, CallAdvice, CallEvent, CodeAdvice, Costs, Extent, FaultEvent, LEAST_PERCENT, Measure,
    Prediction, Rule, ScriptSources, Watched, advise, page_of_rules,
};
pub use annotate::{
    AnnotatedRow, Annotation, Class, Doubt, HotBlock, HotLine, Instruction, InstructionKind, Listing,
    MAX_CODE, MemoryPlace, SampledFunction, SourcePlace, sampled, sampled_files, sampled_scripts,
    sampled_within,
};
pub use call_stacks::CallStacks;
pub use callees::Callees;
pub use compare::{
    CONFIDENCE, CommandComparison, ComparedFigure, Comparison, Conclusion, SMALL_DIFFERENCE, Shift, Verdict,
    enough_runs, holm, mann_whitney, shift,
};
pub use cost::Cost;
pub use coverage::{coverage, is_clock, is_cpu_time, is_off_cpu, is_untold};
pub use diff::{
    By, Change, Diff, DiffBox, DiffFlame, DiffFunction, DiffOptions, DiffRow, Evidence, LEAST_WINDOWS, Mark,
    Moved, Per, Subject, Visibility, WindowChange, WindowSums, dearer, origin,
};
pub use explain::{
    Bottleneck, BoundBy, CallPath, CallingLine, ExplainOptions, Explanation, Gain, HotCode, HotFunction,
    HotInstruction, Module, ModuleKind, Obstacle, Outlook, PredictedGain, Quality, ReadCode, RunSummary,
    SampledLine, Waits, explained_event, worth_reading,
};
pub use failure::command_failure;
pub use filter::{Filter, Mode, SecondPart, ThreadPattern, TimeRange, zero_unix_ns};
pub use flame::{BoxKind, Flame, FlameBox, FlameChart, Grouping, Label};
pub use frame::{FrameIndex, Kind, SymbolId, ViewFrame};
pub use innermost::innermost;
pub use kernel::{Cause, KernelRow, KernelTime};
pub use loops::{AccessPattern, CacheSizes, LoopCause, LoopFinding};
pub use median::Median;
pub use names::{collapse_templates, cut_middle, shorten, without_parameters};
pub use own_code::KernelCallers;
pub use pattern::{BadPattern, Pattern};
pub use percent::rounded_shares;
pub use precision::{Precision, part_of};
pub use procs::{Part, Procs, Program, ShortProcesses, Start};
pub use pulse::{Pulse, Rates, Tick};
pub use report::{BadKey, Key, Report, ReportOptions, Rest, Row, RowKey};
pub use rhythm::{Burst, Rhythm, bursts, rhythm};
pub use selection::{BadSelection, Selection, SelectionWord};
pub use share::{Sampling, Share};
pub use spread::{Spread, slope};
pub use summary::{CutCause, Summary};
pub use timeline::{Timeline, TimelineRow, is_aggregated};
pub use tree::{Call, Tree, TreeNode, TreeOptions};
pub use view::{NodeId, View, ViewNode, ViewSample};
pub use waits::{WaitKind, WaitKinds, WaitSums, lock_taken_at};

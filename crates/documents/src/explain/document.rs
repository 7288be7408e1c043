//! The report for programs: one object, whose member names are stable. What isn't known is null.

use std::collections::BTreeMap;

use plumb_analyze::{
    BoundBy, Cost, Doubt, Explanation, HotCode, HotInstruction, KernelRow, Module, NodeId, RunSummary,
    SampledFunction, SampledLine, View, Waits, command_failure,
};
use plumb_profile::{Queued, QueuedThread};
use plumb_symbolize::NoCode;

use super::HotFunctions;
use super::causes::CausesJson;
use super::quality::QualityJson;
use super::shares::{HotFunctionJson, LineJson, ShareJson, WeightJson};
use super::verdict::VerdictJson;
use crate::code::Annotated;
use crate::findings::AnswerBound;
use crate::waits::WaitRow;

/// Stacks of each reason to wait.
const STACKS: usize = 5;

document! {
    /// The report. `ignore`: patterns of what was left out.
    pub struct ExplainDocument as "ExplainAnswer" of (report: &Explanation<'_>, code: &HotFunctions, ignore: &[String]) {
        version: u32 = crate::JSON_VERSION,
        command: Vec<String> = report.view.profile().meta.command.clone(),
        exit_status: Option<u8> = report.view.profile().meta.exit_status,
        /// The failure of the command.
        failure: Option<String> = command_failure(&report.view.profile().meta),
        counted: Option<String> = report.untold.map(str::to_owned),
        unit: &'static str = if report.time.is_time { "ns" } else { "" },
        time: TimeJson = TimeJson::new(&report.pace, report.view.part().samples > 0),
        left_out: LeftOutJson = LeftOutJson::new(report, ignore),
        split: SplitJson = SplitJson::new(report),
        functions: Vec<HotFunctionJson> = functions(report),
        lines: Vec<SampledLineJson> = report.lines.iter().map(SampledLineJson::new).collect(),
        code: Vec<HotCodeJson> = hot_code(report, code),
        waits: Vec<WaitsJson> = report.waits.iter().map(WaitsJson::new).collect(),
        causes: CausesJson = CausesJson::new(report),
        quality: QualityJson = QualityJson::new(report),
        verdict: VerdictJson = VerdictJson::new(report),
        /// Commands that reproduce it, from a command.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(skip))]
        pub again: Option<Vec<String>> = None,
        /// Limits of the selection, from a server with a store.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(skip))]
        pub truncated: Option<Vec<AnswerBound>> = None,
    }
}

document! {
    struct TimeJson as "RunTime" of (pace: &RunSummary, has_samples: bool) {
        elapsed_ns: Option<u64> = pace.elapsed_ns,
        cpu_ns: Option<u64> = pace.cpu_ns,
        is_accounted: bool = pace.is_accounted,
        processors_used: Option<f64> = pace.cores(),
        processors: u32 = pace.cpus,
        kernel_percent: Option<f64> = Some(pace.kernel_percent).filter(|_| !pace.user_only && has_samples),
        user_only: bool = pace.user_only,
        waiting_for_processor: Option<QueuedJson> = pace.queued.as_ref().map(|known| QueuedJson::new(pace, known)),
        class: Option<&'static str> = pace.class().map(BoundBy::name),
        judged_by: String = pace.rule(),
    }
}

document! {
    /// Bounds of the threads' run-queue wait, and where the busiest thread spent its time.
    struct QueuedJson as "RunQueueWait" of (pace: &RunSummary, known: &Queued) {
        least_ns: Option<u64> = pace.waited_ns().map(|(least, _)| least),
        most_ns: Option<u64> = pace.waited_ns().map(|(_, most)| most),
        stolen_ns: u64 = known.stolen_ns,
        throttled_ns: Option<u64> = known.throttled_ns,
        busiest_thread: Option<ThreadJson> = known.busiest.as_ref().map(|thread| ThreadJson::new(pace, thread)),
    }
}

document! {
    struct ThreadJson as "BusiestThread" of (pace: &RunSummary, thread: &QueuedThread) {
        name: String = thread.comm.clone(),
        pid: u32 = thread.pid,
        tid: u32 = thread.tid,
        lived_ns: u64 = thread.lived_ns,
        ran_ns: u64 = thread.ran_ns,
        waited_ns: u64 = thread.waited_ns,
        unseen_ns: u64 = thread.unseen_ns,
        held_up_by_others: bool = pace.is_held_up_by_others(),
    }
}

document! {
    struct LeftOutJson as "LeftOut" of (report: &Explanation<'_>, ignore: &[String]) {
        ignore: Vec<String> = ignore.to_vec(),
        #[serde(flatten)]
        cost: WeightJson = WeightJson::new(report.left_out),
        percent: f64 = report.left_out.percent_of(report.view.recorded()),
    }
}

document! {
    struct SplitJson as "TimeSplit" of (report: &Explanation<'_>) {
        total: WeightJson = WeightJson::new(report.time.whole),
        accounted_ns: Option<u64> = report.time.accounted_ns,
        off_percent: Option<f64> = report.time.off_percent(),
        rows: Vec<SplitRow> = report.time.rows.iter().map(|row| SplitRow::new(report, row)).collect(),
        user: Vec<ModuleJson> = report.modules.iter().map(|module| ModuleJson::new(report, module)).collect(),
    }
}

document! {
    struct SplitRow as "TimeSplitRow" of (report: &Explanation<'_>, row: &KernelRow) {
        name: String = row.name.clone(),
        cause: &'static str = row.cause.name(),
        cost: WeightJson = WeightJson::new(row.cost),
        share: ShareJson = ShareJson::new(report.sampling.share(row.cost)),
    }
}

document! {
    struct ModuleJson as "UserModule" of (report: &Explanation<'_>, module: &Module<'_>) {
        kind: &'static str = module.kind.name(),
        cost: WeightJson = WeightJson::new(module.cost),
        share: ShareJson = ShareJson::new(report.sampling.share(module.cost)),
        files: Vec<FileCost> = module.files.iter().map(FileCost::new).collect(),
    }
}

document! {
    pub(super) struct FileCost as "FileCost" of (part: &(&str, Cost)) {
        file: String = part.0.to_owned(),
        cost: WeightJson = WeightJson::new(part.1),
    }
}

document! {
    struct SampledLineJson as "SampledLine" of (one: &SampledLine) {
        #[serde(flatten)]
        line: LineJson = LineJson::new(&one.file, one.line),
        function: String = one.function.clone(),
        share: ShareJson = ShareJson::new(one.share),
        percent_of_function: f64 = one.of_function,
        adjusted: bool = one.is_adjusted,
        cost: WeightJson = WeightJson::new(one.own),
    }
}

/// A hot function's instructions, or the reason why they are missing.
#[derive(serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "HotCode"))]
#[serde(untagged)]
enum HotCodeJson {
    Read(ReadCodeJson),
    Unread(UnreadCodeJson),
}

document! {
    struct ReadCodeJson as "ReadCode" of (hot: &HotCode, function: &SampledFunction, annotated: &Annotated) {
        function: String = function.name.clone(),
        file: String = function.path.clone(),
        #[serde(rename = "self")]
        own: ShareJson = ShareJson::new(hot.share),
        adjusted: bool = annotated.annotation.is_adjusted,
        classes: BTreeMap<&'static str, f64> = hot.classes.iter().copied().collect(),
        instructions: Vec<InstructionJson> =
            hot.instructions.iter().map(|one| InstructionJson::new(annotated, one)).collect(),
    }
}

document! {
    struct UnreadCodeJson as "UnreadCode" of (function: &SampledFunction, why: &NoCode) {
        function: String = function.name.clone(),
        file: String = function.path.clone(),
        missing: String = why.to_string(),
    }
}

document! {
    struct InstructionJson as "HotInstruction" of (annotated: &Annotated, one: &HotInstruction) {
        address: u64 = annotated.annotation.listing.instructions()[one.index].address.0,
        text: String = annotated.texts[one.index].trim().to_owned(),
        class: Vec<&'static str> = annotated.annotation.listing.instructions()[one.index].class.words(),
        share: ShareJson = ShareJson::new(one.share),
        percent_of_function: f64 = one.of_function,
        samples_landed: u64 = annotated.annotation.rows[one.index].own.samples,
        doubt: Option<&'static str> = one.doubt.map(Doubt::name),
        line: Option<LineJson> = annotated.annotation.rows[one.index]
            .places
            .first()
            .filter(|place| place.line > 0)
            .map(|place| LineJson::new(&place.file, place.line)),
    }
}

document! {
    struct WaitsJson as "EventWaits" of (waits: &Waits<'_>) {
        event: String = waits.event.to_owned(),
        total: WeightJson = WeightJson::new(waits.time.whole),
        rows: Vec<WaitCauseJson> = waits.time.rows.iter().map(|row| WaitCauseJson::new(&waits.view, row)).collect(),
        kinds: Option<Vec<WaitRow>> = waits.sums.as_ref().map(crate::waits::document),
    }
}

document! {
    struct WaitCauseJson as "WaitCause" of (view: &View<'_>, row: &KernelRow) {
        name: String = row.name.clone(),
        cause: &'static str = row.cause.name(),
        cost: WeightJson = WeightJson::new(row.cost),
        stacks: Vec<WaitStackJson> =
            row.stacks.iter().take(STACKS).map(|stack| WaitStackJson::new(view, stack)).collect(),
    }
}

document! {
    struct WaitStackJson as "WaitStack" of (view: &View<'_>, stack: &(NodeId, Cost)) {
        leaf_first: Vec<String> = view.stack(stack.0).map(|frame| frame.name.to_string()).collect(),
        cost: WeightJson = WeightJson::new(stack.1),
    }
}

fn functions(report: &Explanation<'_>) -> Vec<HotFunctionJson> {
    let paths = report.paths.iter().map(Some).chain(std::iter::repeat(None));
    let functions = report.functions.iter().zip(paths);
    functions.map(|(one, paths)| HotFunctionJson::new(&report.view, one, paths)).collect()
}

fn hot_code(report: &Explanation<'_>, code: &HotFunctions) -> Vec<HotCodeJson> {
    let known = report.code.iter().zip(&code.known);
    let known = known.map(|(hot, (function, annotated))| ReadCodeJson::new(hot, function, annotated));
    let unknown = code.unknown.iter().map(|(function, why)| UnreadCodeJson::new(function, why));
    known.map(HotCodeJson::Read).chain(unknown.map(HotCodeJson::Unread)).collect()
}

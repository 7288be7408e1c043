//! The report for programs: one JSON object, whose field names are stable. What isn't known is null.

use plumb_analyze::{
    Bottleneck, BoundBy, CallPath, Cost, Doubt, Explanation, FrameIndex, Gain, HotFunction, HotInstruction,
    KernelRow, Obstacle, PredictedGain, RunSummary, SampledLine, Share, View, Waits, command_failure,
};
use plumb_profile::{Queued, QueuedThread};
use serde_json::{Map, Value, json};

use super::{HotFunctions, headline, loops};
use crate::code::Annotated;
use crate::rule;

/// Stacks of each reason to wait.
const STACKS: usize = 5;

/// The report as one object. `ignore`: patterns of what was left out.
pub fn document(report: &Explanation<'_>, code: &HotFunctions, ignore: &[String]) -> Value {
    let profile = report.view.profile();
    let meta = &profile.meta;
    let paths = report.paths.iter().map(Some).chain(std::iter::repeat(None));
    let functions = report.functions.iter().zip(paths).map(|(one, paths)| function(report, one, paths));
    json!({
        "version": crate::JSON_VERSION,
        "command": meta.command,
        "exit_status": meta.exit_status,
        "failure": command_failure(meta),
        "counted": report.untold,
        "unit": if report.time.is_time { "ns" } else { "" },
        "time": pace(report),
        "left_out": {
            "ignore": ignore,
            "weight": report.left_out.weight,
            "samples": report.left_out.samples,
            "percent": report.left_out.percent_of(report.view.recorded()),
        },
        "split": split(report),
        "functions": functions.collect::<Vec<_>>(),
        "lines": report.lines.iter().map(line).collect::<Vec<_>>(),
        "code": instructions(report, code),
        "waits": report.waits.iter().map(waits).collect::<Vec<_>>(),
        "causes": {
            "code": (0..report.causes.len()).map(|index| cause(report, index)).collect::<Vec<_>>(),
            "calls": (0..report.calls.len()).map(|index| calls(report, index)).collect::<Vec<_>>(),
            "processes": (0..report.processes.len()).map(|index| processes(report, index)).collect::<Vec<_>>(),
        },
        "quality": quality(report),
        "verdict": verdict(report),
    })
}

fn pace(report: &Explanation<'_>) -> Value {
    let pace = &report.pace;
    json!({
        "elapsed_ns": pace.elapsed_ns,
        "cpu_ns": pace.cpu_ns,
        "is_accounted": pace.is_accounted,
        "processors_used": pace.cores(),
        "processors": pace.cpus,
        "kernel_percent": Some(pace.kernel_percent).filter(|_| !pace.user_only && report.view.part().samples > 0),
        "user_only": pace.user_only,
        "waiting_for_processor": pace.queued.as_ref().map(|known| queued(pace, known)),
        "class": pace.class().map(BoundBy::name),
        "judged_by": pace.rule(),
    })
}

/// Returns the bounds of the threads' run-queue wait, and where the busiest thread spent its time.
fn queued(pace: &RunSummary, known: &Queued) -> Value {
    let thread = |thread: &QueuedThread| {
        json!({
            "name": thread.comm,
            "pid": thread.pid,
            "tid": thread.tid,
            "lived_ns": thread.lived_ns,
            "ran_ns": thread.ran_ns,
            "waited_ns": thread.waited_ns,
            "unseen_ns": thread.unseen_ns,
            "held_up_by_others": pace.is_held_up_by_others(),
        })
    };
    json!({
        "least_ns": pace.waited_ns().map(|(least, _)| least),
        "most_ns": pace.waited_ns().map(|(_, most)| most),
        "stolen_ns": known.stolen_ns,
        "throttled_ns": known.throttled_ns,
        "busiest_thread": known.busiest.as_ref().map(thread),
    })
}

fn split(report: &Explanation<'_>) -> Value {
    let row = |row: &KernelRow| json!({"name": row.name, "cause": row.cause.name(), "cost": cost(row.cost), "share": share(report.sampling.share(row.cost))});
    let module = |module: &plumb_analyze::Module<'_>| {
        let files: Vec<Value> =
            module.files.iter().map(|&(path, part)| json!({"file": path, "cost": cost(part)})).collect();
        json!({"kind": module.kind.name(), "cost": cost(module.cost), "share": share(report.sampling.share(module.cost)), "files": files})
    };
    json!({
        "total": cost(report.time.whole),
        "accounted_ns": report.time.accounted_ns,
        "off_percent": report.time.off_percent(),
        "rows": report.time.rows.iter().map(row).collect::<Vec<_>>(),
        "user": report.modules.iter().map(module).collect::<Vec<_>>(),
    })
}

fn function(report: &Explanation<'_>, one: &HotFunction, paths: Option<&Vec<CallPath>>) -> Value {
    let path = |path: &CallPath| {
        let names: Vec<&str> = path.callers.iter().map(|&frame| &*report.view.frame(frame).name).collect();
        json!({"callers": names, "whole": path.is_whole, "cost": cost(path.cost), "percent_of_function": path.cost.percent_of(one.own)})
    };
    let mut value = place(&report.view, one.frame);
    value["inlined"] = one.inlined.into();
    value["self"] = share(one.own_share);
    value["self_cost"] = cost(one.own);
    value["total"] = share(one.total_share);
    value["total_cost"] = cost(one.total);
    value["line"] = one.line.as_ref().map(|(file, line)| json!({"file": file, "line": line})).into();
    value["callers"] = paths.map(|paths| paths.iter().map(path).collect::<Vec<_>>()).into();
    value
}

fn line(one: &SampledLine) -> Value {
    json!({
        "file": one.file,
        "line": one.line,
        "function": one.function,
        "share": share(one.share),
        "percent_of_function": one.of_function,
        "adjusted": one.is_adjusted,
        "cost": cost(one.own),
    })
}

fn instructions(report: &Explanation<'_>, code: &HotFunctions) -> Vec<Value> {
    let known = report.code.iter().zip(&code.known).map(|(hot, (function, annotated))| {
        let classes: Map<String, Value> =
            hot.classes.iter().map(|&(word, share)| (word.to_owned(), share.into())).collect();
        json!({
            "function": function.name,
            "file": function.path,
            "self": share(hot.share),
            "adjusted": annotated.annotation.is_adjusted,
            "classes": classes,
            "instructions": hot.instructions.iter().map(|one| instruction(annotated, one)).collect::<Vec<_>>(),
        })
    });
    let unknown = code.unknown.iter().map(
        |(function, why)| json!({"function": function.name, "file": function.path, "missing": why.to_string()}),
    );
    known.chain(unknown).collect()
}

fn instruction(annotated: &Annotated, one: &HotInstruction) -> Value {
    let annotation = &annotated.annotation;
    let (instruction, row) = (&annotation.listing.instructions()[one.index], &annotation.rows[one.index]);
    let place = row.places.first().filter(|place| place.line > 0);
    json!({
        "address": instruction.address.0,
        "text": annotated.texts[one.index].trim(),
        "class": instruction.class.words(),
        "share": share(one.share),
        "percent_of_function": one.of_function,
        "samples_landed": row.own.samples,
        "doubt": one.doubt.map(Doubt::name),
        "line": place.map(|place| json!({"file": place.file, "line": place.line})),
    })
}

fn waits(waits: &Waits<'_>) -> Value {
    let stack = |&(node, part): &(plumb_analyze::NodeId, Cost)| {
        let names: Vec<&str> = waits.view.stack(node).map(|frame| &*frame.name).collect();
        json!({"leaf_first": names, "cost": cost(part)})
    };
    let row = |row: &KernelRow| {
        let stacks: Vec<Value> = row.stacks.iter().take(STACKS).map(stack).collect();
        json!({"name": row.name, "cause": row.cause.name(), "cost": cost(row.cost), "stacks": stacks})
    };
    let rows: Vec<Value> = waits.time.rows.iter().map(row).collect();
    let kinds = waits.sums.as_ref().map(crate::waits::document);
    json!({"event": waits.event, "total": cost(waits.time.whole), "rows": rows, "kinds": kinds})
}

fn cause(report: &Explanation<'_>, index: usize) -> Value {
    let advice = &report.causes[index];
    let list = |costs: &[(FrameIndex, Cost)]| -> Vec<Value> {
        let one = |&(frame, part): &(FrameIndex, Cost)| {
            let mut value = place(&report.view, frame);
            value["cost"] = cost(part);
            value
        };
        costs.iter().map(one).collect()
    };
    let mut fields = rule::fields("", advice.rule, &[]);
    fields.insert("share".into(), share(advice.share));
    fields.insert("cost".into(), cost(advice.cost));
    fields.insert("functions".into(), list(&advice.functions).into());
    fields.insert("callers".into(), list(&advice.callers).into());
    fields.insert("loops".into(), advice.loops.iter().map(loops::json).collect::<Vec<_>>().into());
    fields.insert("within".into(), advice.within.into());
    fields.insert("activity".into(), advice.is_activity.into());
    fields.insert("gain".into(), advice.gain.map(|gain| json!({"low": gain.low, "high": gain.high})).into());
    in_words(report, Bottleneck::Code(index), &mut fields);
    fields.into()
}

/// A cause in system calls or page faults; none where they were not watched.
fn calls(report: &Explanation<'_>, index: usize) -> Value {
    let advice = &report.calls[index];
    let mut fields = rule::fields(&advice.about, advice.rule, &advice.measured);
    fields.insert("cpu_percent".into(), advice.cpu_percent.into());
    fields.insert("wait_percent".into(), advice.wall_percent.into());
    fields.insert("gain".into(), json!(report.gain_of(Bottleneck::Calls(index)).map(predicted)));
    fields.into()
}

fn processes(report: &Explanation<'_>, index: usize) -> Value {
    let advice = &report.processes[index];
    let about = report.procs.programs[advice.program].name();
    let bound = report.sampling.share(advice.bound);
    let mut fields = rule::fields(about, advice.rule, &advice.measured);
    fields.insert("share".into(), share(bound));
    fields.insert("cost".into(), cost(advice.bound));
    fields.insert("gain_at_most".into(), gain(report.pace.gain(bound)));
    in_words(report, Bottleneck::Processes(index), &mut fields);
    fields.into()
}

fn quality(report: &Explanation<'_>) -> Value {
    let (quality, meta) = (&report.quality, &report.view.profile().meta);
    let nameless: Vec<Value> =
        quality.nameless.iter().map(|&(path, part)| json!({"file": path, "cost": cost(part)})).collect();
    let cuts: Vec<Value> = quality
        .stacks
        .causes
        .iter()
        .map(|cause| json!({"reason": cause.cut.name(), "cost": cost(cause.cost)}))
        .collect();
    json!({
        "samples": report.view.part().samples,
        "lost_samples": Some(meta.lost_samples).filter(|&lost| lost > 0 || report.untold.is_none()),
        "damaged_records": meta.damaged_records,
        "frequency_hz": meta.frequency_hz,
        "coverage_percent": quality.coverage,
        "complete_stacks_percent": quality.stacks.complete_percent(),
        "cut": cuts,
        "nameless": share(quality.nameless_share),
        "nameless_files": nameless,
        "without_line_percent": quality.without_line,
        "ten_percent_is": share(quality.tenth),
        "recorder_cpu_ns": meta.recorder_cpu_ns,
        "warnings": report.view.warnings(),
    })
}

fn verdict(report: &Explanation<'_>) -> Value {
    let outlook = &report.outlook;
    let one = |what: Bottleneck, part: Share| {
        let (kind, name) = match what {
            Bottleneck::Function(frame) => ("function", report.view.frame(frame).name.to_string()),
            Bottleneck::Kernel(row) => ("kernel", report.time.rows[row].name.clone()),
            Bottleneck::Code(cause) => {
                let cause = &report.causes[cause];
                (if cause.is_activity { "activity" } else { "code" }, cause.rule.name.to_owned())
            }
            Bottleneck::Line(line) => {
                ("line", report.view.frame(report.outlook.lines[line].frame).name.to_string())
            }
            Bottleneck::Calls(index) => ("calls", report.calls[index].rule.name.to_owned()),
            Bottleneck::Processes(index) => ("processes", report.processes[index].rule.name.to_owned()),
        };
        let gain = report.gain_of(what).map(predicted);
        let mut fields = Map::new();
        fields.insert("kind".into(), kind.into());
        fields.insert("name".into(), name.into());
        fields.insert("share".into(), share(part));
        fields.insert("gain".into(), gain.into());
        in_words(report, what, &mut fields);
        Value::from(fields)
    };
    let unsure = outlook.unsure.iter().map(|&(what, part, needed)| {
        let mut value = one(what, part);
        value["samples_needed"] = needed.into();
        value
    });
    let word = match outlook.above.is_empty() {
        _ if report.saved_at_most().is_some() => "waits",
        false => "go on",
        true if outlook.is_done() => "stop",
        true => "can't tell",
    };
    json!({
        "threshold_percent": outlook.threshold,
        "verdict": word,
        "headline": headline::headline(report).plain(),
        "cause": waiting(report).or(report.first()).map(|(what, part)| one(what, part)),
        "above": outlook.above.iter().map(|&(what, part)| one(what, part)).collect::<Vec<_>>(),
        "unsure": unsure.collect::<Vec<_>>(),
        "obstacle": outlook.obstacle().map(|obstacle| match obstacle {
            Obstacle::Names(_) => "names",
            Obstacle::Samples => "samples",
        }),
        "nameless": outlook.hidden.map(share),
        "largest": outlook.largest.map(|(what, part)| one(what, part)),
    })
}

/// Adds the terminal's texts: the subject with its function and line, and the gain of its remedy; null where no remedy is known.
fn in_words(report: &Explanation<'_>, what: Bottleneck, fields: &mut Map<String, Value>) {
    fields.insert("subject".into(), headline::subject(report, what).plain().into());
    let remedied = headline::remedied(report, what);
    let gain = remedied.map(|remedied| headline::gain(report, remedied).plain());
    fields.insert("gain_text".into(), gain.into());
}

/// Returns the wait, if waiting takes most of the time.
fn waiting(report: &Explanation<'_>) -> Option<(Bottleneck, Share)> {
    let index = report.waiting_rule()?;
    let percent = report.calls[index].cpu_percent;
    Some((Bottleneck::Calls(index), Share { percent, low: percent, high: percent }))
}

fn predicted(gain: PredictedGain) -> Value {
    let interval = |(low, high): (f64, f64)| json!({"low": low, "high": high});
    json!({"cpu_percent": interval(gain.cpu), "elapsed_percent": gain.elapsed.map(interval)})
}

fn place(view: &View<'_>, frame: FrameIndex) -> Value {
    let shown = view.frame(frame);
    json!({"function": shown.name, "file": shown.dso_path, "kernel": shown.kind == plumb_analyze::Kind::Kernel})
}

fn cost(cost: Cost) -> Value {
    json!({"weight": cost.weight, "samples": cost.samples})
}

fn share(share: Share) -> Value {
    json!({"percent": share.percent, "low": share.low, "high": share.high})
}

/// JSON has no infinity: what is everything is null times as fast.
fn gain(gain: Gain) -> Value {
    let times = Some(gain.times).filter(|times| times.is_finite());
    json!({"cpu_percent": gain.cpu_percent, "times": times, "elapsed_percent": gain.clock_percent})
}

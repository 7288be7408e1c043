//! The report for programs: JSON and CSV. Field names are stable; weights are in the event's unit.

use std::io::Write;

use anyhow::Result;
use plumb_analyze::{Call, Cost, KernelRow, Key, Kind, RowKey, Summary, Tree, TreeNode, View};
use plumb_formats::csv::field;
use serde::Serialize;

use super::shown::{Body, Shown, TreeKind};
use super::{Args, header};
use crate::kernel_time;
use crate::terminal::Output;

/// Writes one JSON object with a report for each event.
pub fn json(shown: &[Shown<'_>], args: &Args, out: &mut Output<'_>) -> Result<()> {
    let reports: Vec<_> = shown.iter().map(|shown| ReportJson::new(shown, args)).collect();
    let Some(profile) = shown.first().map(|shown| shown.view.profile()) else { return Ok(()) };
    let meta = &profile.meta;
    let document = serde_json::json!({
        "version": crate::render::JSON_VERSION,
        "command": meta.command,
        "recorder": meta.recorder,
        "host": meta.host,
        "kernel": meta.kernel,
        "arch": meta.arch,
        "cpus": meta.cpus,
        "start_unix_ns": meta.start_unix_ns,
        "duration_ns": meta.duration_ns,
        "target_cpu_ns": meta.target_cpu_ns,
        "frequency_hz": meta.frequency_hz,
        "occurrences": match meta.occurrences[..] {
            [only] => only,
            _ => None,
        },
        "scope": meta.scope.name(),
        "lost_samples": meta.lost_samples,
        "damaged_records": meta.damaged_records,
        "warnings": meta.warnings,
        "reports": reports,
    });
    plumb_formats::json::write(&mut *out, &document)?;
    writeln!(out)?;
    Ok(())
}

#[derive(Serialize)]
struct ReportJson {
    event: String,
    unit: String,
    samples: u64,
    weight: u64,
    kept_samples: u64,
    kept_weight: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    occurrences: Option<u64>,
    coverage_percent: Option<f64>,
    idle_percent: Option<f64>,
    complete_percent: Option<f64>,
    cut_causes: Vec<CauseJson>,
    /// What processor time went into, if samples tell of the kernel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    went_into: Vec<WentIntoJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<RowJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_left_out: Option<RestJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trees: Vec<TreeJson>,
}

#[derive(Serialize)]
struct CauseJson {
    cause: &'static str,
    file: Option<String>,
    samples: u64,
}

#[derive(Serialize)]
struct WentIntoJson {
    name: String,
    samples: u64,
    weight: u64,
}

#[derive(Serialize)]
struct RestJson {
    rows: usize,
    self_percent: f64,
    self_weight: u64,
}

#[derive(Serialize)]
struct RowJson {
    #[serde(flatten)]
    cost: CostJson,
    #[serde(flatten)]
    place: PlaceJson,
}

#[derive(Serialize)]
struct CostJson {
    children_percent: f64,
    self_percent: f64,
    children_weight: u64,
    self_weight: u64,
    children_samples: u64,
    self_samples: u64,
}

/// What a row is about, as far as its report's keys go.
#[derive(Serialize, Default)]
struct PlaceJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    comm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exe: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dso: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sym: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inlined: Option<bool>,
    /// Where the function starts, or the address itself without a function, in the file's own address space.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    srcline: Option<String>,
}

#[derive(Serialize)]
struct TreeJson {
    kind: &'static str,
    function: Option<String>,
    /// Parents come before their children; `parent` is an index in this list.
    nodes: Vec<NodeJson>,
}

#[derive(Serialize)]
struct NodeJson {
    parent: Option<usize>,
    /// Branches from here that were below the limit.
    cut_branches: usize,
    cut_weight: u64,
    #[serde(flatten)]
    cost: CostJson,
    #[serde(flatten)]
    place: PlaceJson,
}

impl ReportJson {
    fn new(shown: &Shown<'_>, args: &Args) -> Self {
        let view = &shown.view;
        let summary = Summary::new(view);
        let (event, unit) = header::event_name(shown);
        let (whole, part) = (view.recorded(), view.part());
        let mut json = ReportJson {
            event: event.into(),
            unit: unit.into(),
            samples: whole.samples,
            weight: whole.weight,
            kept_samples: part.samples,
            kept_weight: part.weight,
            occurrences: header::event(shown).and_then(|event| view.profile().meta.occurrences_of(event)),
            coverage_percent: plumb_analyze::coverage(view.profile(), shown.filter.event),
            idle_percent: view.profile().meta.idle_share().map(|share| share * 100.0),
            complete_percent: summary.complete_percent(),
            cut_causes: causes(view, &summary),
            went_into: went_into(shown),
            rows: None,
            rows_left_out: None,
            trees: Vec::new(),
        };
        match &shown.body {
            Body::Rows(report) => {
                let row = |row: &plumb_analyze::Row| RowJson {
                    cost: CostJson::new(view, row.own, row.total),
                    place: place(view, row.key, row.inlined, &args.sort),
                };
                json.rows = Some(report.rows.iter().map(row).collect());
                let (below, unnamed) = (report.below, report.unnamed);
                let own = [below.own, unnamed.own].into_iter().sum::<Cost>();
                json.rows_left_out = Some(RestJson {
                    rows: below.rows + unnamed.rows,
                    self_percent: own.percent_of(view.whole()),
                    self_weight: own.weight,
                });
            }
            Body::Trees(trees) => {
                json.trees = trees.iter().map(|(kind, tree)| TreeJson::new(view, kind, tree)).collect();
            }
        }
        json
    }
}

/// What processor time went into.
fn went_into(shown: &Shown<'_>) -> Vec<WentIntoJson> {
    let rows = kernel_time::section(&shown.view, &shown.filter).map_or(Vec::new(), |time| time.rows);
    let json =
        |row: KernelRow| WentIntoJson { name: row.name, samples: row.cost.samples, weight: row.cost.weight };
    rows.into_iter().map(json).collect()
}

impl CostJson {
    fn new(view: &View<'_>, own: Cost, total: Cost) -> Self {
        CostJson {
            children_percent: total.percent_of(view.whole()),
            self_percent: own.percent_of(view.whole()),
            children_weight: total.weight,
            self_weight: own.weight,
            children_samples: total.samples,
            self_samples: own.samples,
        }
    }
}

impl TreeJson {
    fn new(view: &View<'_>, kind: &TreeKind, tree: &Tree) -> Self {
        let (kind, function) = match kind {
            TreeKind::TopDown => ("top-down", None),
            TreeKind::BottomUp => ("bottom-up", None),
            TreeKind::Callers(function) => ("callers", Some(function.clone())),
            TreeKind::Callees(function) => ("callees", Some(function.clone())),
        };
        let mut nodes: Vec<NodeJson> = tree
            .nodes
            .iter()
            .map(|node| NodeJson {
                parent: None,
                cut_branches: node.below.rows,
                cut_weight: node.below.own.weight,
                cost: CostJson::new(view, node.own, node.total),
                place: call(view, node),
            })
            .collect();
        for (parent, node) in tree.nodes.iter().enumerate() {
            for &child in &node.children {
                nodes[child].parent = Some(parent);
            }
        }
        TreeJson { kind, function, nodes }
    }
}

fn call(view: &View<'_>, node: &TreeNode) -> PlaceJson {
    match node.call {
        Call::Comm(thread) => {
            let profile = view.profile();
            let comm = profile.strings.get(profile.threads[thread].comm);
            PlaceJson { comm: Some(comm.into()), ..Default::default() }
        }
        Call::Frame { frame, inlined } => frame_place(view, frame, inlined),
    }
}

fn frame_place(view: &View<'_>, frame: plumb_analyze::FrameIndex, inlined: bool) -> PlaceJson {
    let frame = view.frame(frame);
    let start = frame.function.and_then(|id| view.profile().symbols.functions[id].start);
    let address = if frame.named { start } else { Some(frame.address) };
    PlaceJson {
        dso: Some(frame.dso_path.into()),
        sym: Some(frame.name.to_string()),
        kind: Some(match frame.kind {
            Kind::User => "user",
            Kind::Kernel => "kernel",
            Kind::Marker => "marker",
        }),
        inlined: Some(inlined),
        address: address.filter(|_| frame.kind != Kind::Marker).map(|address| format!("{:#x}", address.0)),
        ..Default::default()
    }
}

fn place(view: &View<'_>, key: RowKey, inlined: bool, keys: &[Key]) -> PlaceJson {
    let profile = view.profile();
    let thread = &profile.threads[key.thread];
    let has = |wanted| keys.contains(&wanted);
    let text = |wanted| has(wanted).then(|| key.text(view, wanted).into_owned());
    let symbol = if has(Key::Symbol) { frame_place(view, key.frame, inlined) } else { PlaceJson::default() };
    PlaceJson {
        comm: text(Key::Comm),
        pid: has(Key::Pid).then(|| profile.processes[thread.process].pid),
        tid: has(Key::Tid).then_some(thread.tid),
        exe: text(Key::Exe),
        dso: text(Key::Dso).or(symbol.dso),
        srcline: text(Key::SrcLine),
        ..symbol
    }
}

fn causes(view: &View<'_>, summary: &Summary) -> Vec<CauseJson> {
    let profile = view.profile();
    let file = |dso| profile.strings.get(profile.dsos[dso].path).to_owned();
    let mut causes: Vec<_> = summary
        .causes
        .iter()
        .map(|cause| CauseJson {
            cause: cause.cut.name(),
            file: cause.dso.map(file),
            samples: cause.cost.samples,
        })
        .collect();
    if summary.without_stack > 0 {
        causes.push(CauseJson { cause: "no-stack", file: None, samples: summary.without_stack });
    }
    causes
}

/// Writes rows as CSV; of trees a line a node, with its parent's line number (the first after the head is 0).
pub fn csv(shown: &[Shown<'_>], args: &Args, out: &mut Output<'_>) -> Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    let is_tree = shown.iter().any(|shown| matches!(shown.body, Body::Trees(_)));
    let costs = [
        "children_percent",
        "self_percent",
        "children_weight",
        "self_weight",
        "children_samples",
        "self_samples",
    ];
    let mut head = vec!["event"];
    if is_tree {
        head.extend(["tree", "node", "parent"]);
    }
    head.extend(costs);
    match is_tree {
        true => head.extend(["comm", "dso", "sym"]),
        false => head.extend(args.sort.iter().map(|key| key.name())),
    }
    csv.write_record(&head)?;
    for shown in shown {
        match &shown.body {
            Body::Rows(report) => {
                for row in &report.rows {
                    let mut record = vec![field(header::event_name(shown).0).into_owned()];
                    record.extend(cost_cells(&CostJson::new(&shown.view, row.own, row.total)));
                    record.extend(
                        args.sort.iter().map(|&key| field(&row.key.text(&shown.view, key)).into_owned()),
                    );
                    csv.write_record(&record)?;
                }
            }
            Body::Trees(trees) => {
                for (kind, tree) in trees {
                    let tree = TreeJson::new(&shown.view, kind, tree);
                    csv_tree(&mut csv, header::event_name(shown).0, &tree)?;
                }
            }
        }
    }
    csv.flush()?;
    Ok(())
}

fn csv_tree<W: Write>(csv: &mut csv::Writer<W>, event: &str, tree: &TreeJson) -> Result<()> {
    for (index, node) in tree.nodes.iter().enumerate() {
        let parent = node.parent.map_or(String::new(), |parent| parent.to_string());
        let mut record = vec![field(event).into_owned(), tree.kind.to_owned(), index.to_string(), parent];
        record.extend(cost_cells(&node.cost));
        let place = &node.place;
        record.extend(
            [&place.comm, &place.dso, &place.sym]
                .map(|cell| field(cell.as_deref().unwrap_or_default()).into_owned()),
        );
        csv.write_record(&record)?;
    }
    Ok(())
}

fn cost_cells(cost: &CostJson) -> [String; 6] {
    [
        format!("{:.4}", cost.children_percent),
        format!("{:.4}", cost.self_percent),
        cost.children_weight.to_string(),
        cost.self_weight.to_string(),
        cost.children_samples.to_string(),
        cost.self_samples.to_string(),
    ]
}

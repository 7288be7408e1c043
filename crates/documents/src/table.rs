//! Tables and trees of a report: a row per function (or other key), a node per call.
//!
//! Elsewhere: the selection of rows (`analyze`), the report that has them (`report`).

use plumb_analyze::{Call, Cost, FrameIndex, Key, Kind, Row, RowKey, Summary, Tree, TreeNode, View};
use serde::Serialize;

document! {
    /// A row of a report with these keys.
    pub struct RowJson as "TableRow" of (view: &View<'_>, row: &Row, keys: &[Key]) {
        #[serde(flatten)]
        pub(crate) cost: CostJson = CostJson::new(view, row.own, row.total),
        #[serde(flatten)]
        pub(crate) place: PlaceJson = place(view, row.key, row.inlined, keys),
    }
}

document! {
    /// Own cost, and cost including callees (`children`), with their shares of a view's total.
    pub struct CostJson as "Costs" of (view: &View<'_>, own: Cost, total: Cost) {
        pub(crate) children_percent: f64 = total.percent_of(view.whole()),
        pub(crate) self_percent: f64 = own.percent_of(view.whole()),
        pub(crate) children_weight: u64 = total.weight,
        pub(crate) self_weight: u64 = own.weight,
        pub(crate) children_samples: u64 = total.samples,
        pub(crate) self_samples: u64 = own.samples,
    }
}

/// The subject of a row, as far as the report's keys show it.
#[derive(Serialize, Default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Place", optional_fields))]
pub struct PlaceJson {
    /// Name of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
    /// Process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Thread id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Path of the executable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exe: Option<String>,
    /// File of the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dso: Option<String>,
    /// Function name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sym: Option<String>,
    /// user, kernel or marker.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "\"user\" | \"kernel\" | \"marker\""))]
    pub kind: Option<&'static str>,
    /// Whether all frames are inlined calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inlined: Option<bool>,
    /// Start of the function, or the address itself without a function, in the file's own address space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Source file and line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub srcline: Option<String>,
}

document! {
    /// A tree. `function`: that whose callers or callees these are.
    pub struct TreeJson as "NamedCallTree" of (view: &View<'_>, kind: &'static str, function: Option<String>, tree: &Tree) {
        #[cfg_attr(test, ts(type = "\"top-down\" | \"bottom-up\" | \"callers\" | \"callees\""))]
        pub(crate) kind: &'static str = kind,
        function: Option<String> = function,
        /// Parents come before their children; `parent` is an index in this list.
        pub(crate) nodes: Vec<NodeJson> = nodes(view, tree),
    }
}

document! {
    /// A call; what is cut are its branches below the limit.
    pub struct NodeJson as "CallNode" of (view: &View<'_>, node: &TreeNode) {
        pub(crate) parent: Option<usize> = None,
        cut_branches: usize = node.below.rows,
        cut_weight: u64 = node.below.own.weight,
        #[serde(flatten)]
        pub(crate) cost: CostJson = CostJson::new(view, node.own, node.total),
        #[serde(flatten)]
        pub(crate) place: PlaceJson = call(view, node),
    }
}

fn nodes(view: &View<'_>, tree: &Tree) -> Vec<NodeJson> {
    let mut nodes: Vec<NodeJson> = tree.nodes.iter().map(|node| NodeJson::new(view, node)).collect();
    for (parent, node) in tree.nodes.iter().enumerate() {
        for &child in &node.children {
            nodes[child].parent = Some(parent);
        }
    }
    nodes
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

fn frame_place(view: &View<'_>, frame: FrameIndex, inlined: bool) -> PlaceJson {
    let frame = view.frame(frame);
    let symbols = &view.profile().symbols;
    let address = match frame.function {
        Some(function) => symbols.functions[function].start,
        None => Some(frame.frame.and_then(|id| symbols.nameless_start(id)).unwrap_or(frame.address)),
    };
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

/// A reason why stacks are truncated.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "CutCause"))]
pub struct CauseJson {
    /// The reason.
    pub cause: &'static str,
    /// The file that caused it.
    pub file: Option<String>,
    /// Number of samples.
    pub samples: u64,
}

/// Returns the reasons why stacks of a view are truncated.
pub fn causes(view: &View<'_>, summary: &Summary) -> Vec<CauseJson> {
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

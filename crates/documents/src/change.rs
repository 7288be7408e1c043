//! A comparison of recordings: what changed, by how much, and how certain that is.

pub mod words;

use plumb_analyze::{Change, Diff, DiffRow, Evidence, Kind, Mark, Moved, Per, Subject, Visibility};
use serde::Serialize;

document! {
    /// The change of the total, the method, and the rows that the caller shows. `sides` describes the base and the new side to whom asked.
    pub struct DiffDocument<'d> as "Comparison" of (
        diff: &'d Diff<'_, '_>,
        event: Option<&'d str>,
        unit: Option<&'d str>,
        sides: ComparedSides<'d>,
        rows: Vec<ChangedRow<'d>>,
    ) {
        version: u32 = crate::JSON_VERSION,
        event: Option<&'d str> = event,
        unit: Option<&'d str> = unit,
        alpha: f64 = diff.options.alpha,
        #[cfg_attr(test, ts(type = "\"single\" | \"blocked\" | \"turns\""))]
        evidence: &'static str = match diff.evidence {
            Evidence::Single => "single",
            Evidence::Blocked => "blocked",
            Evidence::Turns => "turns",
        },
        all: ChangeDocument = ChangeDocument::new(&diff.whole, diff.options.alpha),
        rows: Vec<ChangedRow<'d>> = rows,
        #[serde(flatten)]
        #[cfg_attr(test, ts(skip))]
        sides: ComparedSides<'d> = sides,
    }
}

/// The base and the new side, with what only a command or only the page shows.
#[derive(Serialize)]
#[serde(untagged)]
pub enum ComparedSides<'d> {
    /// To a command.
    Files(ComparedFiles<'d>),
    /// To the page.
    Names(ComparedNames<'d>),
}

/// The recordings of the two sides, and how they were compared.
#[derive(Serialize)]
pub struct ComparedFiles<'d> {
    /// Recordings of the base.
    pub base: Vec<ComparedFile<'d>>,
    /// Recordings of the new side.
    pub new: Vec<ComparedFile<'d>>,
    /// Unit of comparison.
    pub per: PerDocument,
    /// Ratio of the speeds of the new side and of the base.
    pub speed: SpeedRatio,
    /// The rows that are not shown.
    pub rest: RestOfRows,
    /// The limits of a regression that were exceeded.
    pub exceeded: Vec<String>,
}

/// A recording of one side.
#[derive(Serialize)]
pub struct ComparedFile<'d> {
    /// File of the recording.
    pub file: String,
    /// The recorded command.
    pub command: &'d [String],
    /// Number of compared samples.
    pub samples: u64,
    /// Weight of the samples.
    pub weight: u64,
    /// Number of lost samples.
    pub lost: u64,
}

/// Unit of comparison: a recording, a second of CPU time, or an iteration, with the number of them on each side.
#[derive(Serialize)]
pub enum PerDocument {
    /// A recording.
    #[serde(rename = "total")]
    Total,
    /// A second of CPU time.
    #[serde(rename = "cpu-s")]
    Second,
    /// An iteration.
    #[serde(rename = "iterations")]
    Iteration([f64; 2]),
}

impl From<Per> for PerDocument {
    fn from(per: Per) -> Self {
        match per {
            Per::Total => PerDocument::Total,
            Per::Second => PerDocument::Second,
            Per::Iteration(counts) => PerDocument::Iteration(counts),
        }
    }
}

document! {
    /// A ratio with its confidence interval.
    pub struct SpeedRatio as "SpeedRatio" of (speed: [f64; 3]) {
        ratio: f64 = speed[0],
        low: f64 = speed[1],
        high: f64 = speed[2],
    }
}

/// Rows that are not shown.
#[derive(Serialize)]
pub struct RestOfRows {
    /// Number of rows.
    pub rows: usize,
    /// Share of these rows on each side.
    pub share: [f64; 2],
}

/// The two sides by their names.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ComparedNames<'d> {
    /// The base.
    pub base: ComparedSide<'d>,
    /// The new side.
    pub new: ComparedSide<'d>,
    /// Number of rows that are not shown.
    pub rows_left_out: usize,
}

/// One side.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ComparedSide<'d> {
    /// Name of the side.
    pub name: &'d str,
    /// Number of compared samples.
    pub samples: u64,
    /// Weight of the samples.
    pub weight: u64,
}

document! {
    /// A row.
    pub struct ChangedRow<'d> as "ChangedRow" of (row: &'d DiffRow, diff: &'d Diff<'_, '_>) {
        #[serde(flatten)]
        subject: ChangedSubject<'d> = ChangedSubject::new(&row.subject, diff),
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        moved: Option<MovedFunction<'d>> = row.moved.map(|moved| MovedFunction::new(moved, diff)),
        #[serde(flatten)]
        change: ChangeDocument = ChangeDocument::new(&row.change, diff.options.alpha),
    }
}

/// A function, a line of it, a stack's functions from the root, or a cause of kernel time.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
struct ChangedSubject<'d> {
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dso: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "\"user\" | \"kernel\" | \"marker\""))]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<Vec<&'d str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'d str>,
}

impl<'d> ChangedSubject<'d> {
    fn new(subject: &'d Subject, diff: &'d Diff<'_, '_>) -> Self {
        let name_of = |number: u32| &*diff.functions()[number as usize].name;
        let none = Self::default();
        match subject {
            Subject::Function(number) => Self::of_function(*number, diff),
            Subject::Line(number, file, line) => {
                Self { file: Some(file), line: Some(*line), ..Self::of_function(*number, diff) }
            }
            Subject::Path(path) => Self { path: Some(path.iter().copied().map(name_of).collect()), ..none },
            Subject::Cause(cause, name) => Self { cause: Some(cause.name()), name: Some(name), ..none },
        }
    }

    fn of_function(number: u32, diff: &'d Diff<'_, '_>) -> Self {
        let function = &diff.functions()[number as usize];
        let kind = match function.kind {
            Kind::User => "user",
            Kind::Kernel => "kernel",
            Kind::Marker => "marker",
        };
        let (dso, source) = (Some(&*function.dso), Some(&*function.source));
        Self { function: Some(&function.name), dso, source, kind: Some(kind), ..Self::default() }
    }
}

document! {
    /// Whether a function's cost may be in another row now. `caller`: the function that it was inlined into.
    pub(crate) struct MovedFunction<'d> as "MovedFunction" of (moved: Moved, diff: &'d Diff<'_, '_>) {
        how: &'static str = match moved {
            Moved::Inlined => "inlined",
            Moved::Outlined => "outlined",
            Moved::IntoCaller(_) => "into-caller",
            Moved::OutOfCaller(_) => "out-of-caller",
        },
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        caller: Option<&'d str> = match moved {
            Moved::IntoCaller(caller) | Moved::OutOfCaller(caller) => Some(&*diff.functions()[caller as usize].name),
            Moved::Inlined | Moved::Outlined => None,
        },
    }
}

document! {
    /// A change and its conclusion.
    pub struct ChangeDocument as "Change" of (change: &Change, alpha: f64) {
        value: [f64; 2] = change.value,
        share: [f64; 2] = change.share,
        samples: [u64; 2] = change.samples,
        difference: f64 = change.difference(),
        low: f64 = change.low,
        high: f64 = change.high,
        p: f64 = change.p,
        q: f64 = change.q,
        q_share: f64 = change.q_share,
        detectable: Option<f64> = Some(change.detectable).filter(|least| least.is_finite()),
        #[cfg_attr(test, ts(type = "\"more\" | \"less\" | \"new\" | \"eliminated\" | \"noise\""))]
        mark: &'static str = match change.mark(alpha) {
            Mark::More => "more",
            Mark::Less => "less",
            Mark::New => "new",
            Mark::Vanished => "eliminated",
            Mark::Noise => "noise",
        },
        visibility: &'static str = match change.visibility(alpha) {
            Visibility::Newly => "newly",
            Visibility::More => "more",
            Visibility::Less => "less",
            Visibility::Same => "same",
        },
    }
}

/// Returns what a value refers to.
pub fn per(diff: &Diff<'_, '_>, event: &str, unit: &str) -> String {
    let what = if unit == "ns" { "time" } else { "times" };
    let of = match diff.options.per {
        Per::Total => "a recording".to_owned(),
        Per::Second => "a second of all".to_owned(),
        Per::Iteration([base, new]) => format!("an iteration ({base} before, {new} now)"),
    };
    format!("{event}, {what} of {of}")
}

/// Returns the rule by which rows are marked.
pub fn rule(diff: &Diff<'_, '_>) -> &'static str {
    match (diff.evidence, diff.options.per) {
        (Evidence::Turns, _) => {
            "marked: differs by more than the recordings of one side do (recorded in turns)"
        }
        (Evidence::Blocked, _) => {
            "marked: differs by more than the recordings of one side do, with a margin as they took no turns (A B B A)"
        }
        (Evidence::Single, Per::Second) => "marked: the share differs by more than chance explains",
        (Evidence::Single, _) => "marked: out of line with the other functions by more than chance explains",
    }
}

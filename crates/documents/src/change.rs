//! A comparison of recordings: what changed, by how much, and how certain that is.

pub mod words;

use plumb_analyze::{Change, Diff, DiffRow, Evidence, Kind, Mark, Moved, Per, Subject, Visibility};
use serde::Serialize;
use serde_json::{Map, Value};

document! {
    /// The change of the total, the method, and the rows that the caller shows. `sides` describes the base and the new side.
    pub struct DiffDocument<'d> as "Comparison" of (
        diff: &'d Diff<'_, '_>,
        event: Option<&'d str>,
        unit: Option<&'d str>,
        sides: [Value; 2],
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
        /// The sides, and members that only a command or only the page has.
        #[serde(flatten)]
        #[cfg_attr(test, ts(skip))]
        pub more: Map<String, Value> = Map::from_iter(["base".to_owned(), "new".to_owned()].into_iter().zip(sides)),
    }
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

//! A comparison of recordings as JSON: what changed, by how much, and how certain that is. Field names are stable.

use plumb_analyze::{Change, Diff, DiffRow, Evidence, Kind, Mark, Moved, Per, Subject, Visibility};
use serde_json::{Map, Value, json};

/// Returns everything except the rows: the change of the total, and the method. `sides` describes the base and the new side.
pub fn document(diff: &Diff<'_, '_>, event: Option<&str>, unit: Option<&str>, sides: [Value; 2]) -> Value {
    let [base, new] = sides;
    json!({
        "version": crate::JSON_VERSION,
        "event": event,
        "unit": unit,
        "alpha": diff.options.alpha,
        "evidence": match diff.evidence {
            Evidence::Single => "single",
            Evidence::Blocked => "blocked",
            Evidence::Turns => "turns",
        },
        "base": base,
        "new": new,
        "all": change(&diff.whole, diff.options.alpha),
    })
}

/// Returns a row.
pub fn row(row: &DiffRow, diff: &Diff<'_, '_>) -> Value {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    let function = |number: u32| &diff.functions()[number as usize];
    match &row.subject {
        Subject::Function(number) | Subject::Line(number, ..) => {
            let function = function(*number);
            set("function", json!(function.name));
            set("dso", json!(function.dso));
            set("source", json!(function.source));
            set(
                "kind",
                json!(match function.kind {
                    Kind::User => "user",
                    Kind::Kernel => "kernel",
                    Kind::Marker => "marker",
                }),
            );
            if let Subject::Line(_, file, line) = &row.subject {
                set("file", json!(file));
                set("line", json!(line));
            }
        }
        Subject::Path(path) => {
            let names: Vec<&str> = path.iter().map(|&number| function(number).name.as_str()).collect();
            set("path", json!(names));
        }
        Subject::Cause(cause, name) => {
            set("cause", json!(cause.name()));
            set("name", json!(name));
        }
    }
    if let Some(moved) = row.moved {
        set(
            "moved",
            match moved {
                Moved::Inlined => json!({"how": "inlined"}),
                Moved::Outlined => json!({"how": "outlined"}),
                Moved::IntoCaller(caller) => json!({"how": "into-caller", "caller": function(caller).name}),
                Moved::OutOfCaller(caller) => {
                    json!({"how": "out-of-caller", "caller": function(caller).name})
                }
            },
        );
    }
    if let Value::Object(of_change) = change(&row.change, diff.options.alpha) {
        fields.extend(of_change);
    }
    Value::Object(fields)
}

/// Returns a change and its conclusion.
pub fn change(change: &Change, alpha: f64) -> Value {
    json!({
        "value": change.value,
        "share": change.share,
        "samples": change.samples,
        "difference": change.difference(),
        "low": change.low,
        "high": change.high,
        "p": change.p,
        "q": change.q,
        "q_share": change.q_share,
        "detectable": change.detectable.is_finite().then_some(change.detectable),
        "mark": match change.mark(alpha) {
            Mark::More => "more",
            Mark::Less => "less",
            Mark::New => "new",
            Mark::Vanished => "eliminated",
            Mark::Noise => "noise",
        },
        "visibility": match change.visibility(alpha) {
            Visibility::Newly => "newly",
            Visibility::More => "more",
            Visibility::Less => "less",
            Visibility::Same => "same",
        },
    })
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

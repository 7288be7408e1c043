//! Rows of a comparison of recordings for programs: what changed, by how much, and how sure that is. Field names are stable.

use plumb_analyze::{Change, Diff, DiffRow, Kind, Mark, Moved, Subject, Visibility};
use serde_json::{Map, Value, json};

/// A row.
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

/// A change, and what may be said of it.
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

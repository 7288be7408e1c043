//! The table as JSON. Names of fields are stable.

use std::io::Write;

use anyhow::Result;
use plumb_analyze::{Change, Diff, DiffRow, Evidence, Kind, Mark, Moved, Per, Subject, Visibility};
use serde_json::{Map, Value, json};

use super::Shown;
use crate::terminal::Output;

/// Writes JSON.
pub(super) fn json(shown: &Shown<'_, '_>, out: &mut Output<'_>) -> Result<()> {
    let diff = shown.diff;
    let side = |side: usize| -> Vec<Value> {
        let pairs = shown.sides[side].iter().zip(shown.views[side]);
        pairs
            .map(|(one, view)| {
                let part = view.part();
                json!({
                    "file": one.path.display().to_string(),
                    "command": one.profile.meta.command,
                    "samples": part.samples,
                    "weight": part.weight,
                    "lost": one.profile.meta.lost_samples,
                })
            })
            .collect()
    };
    let rows: Vec<Value> = shown.rows().map(|row| row_of(row, diff)).collect();
    let (rest, shares) = shown.rest();
    let speed = diff.speed();
    let document = json!({
        "event": shown.event,
        "unit": shown.unit,
        "per": per(diff.options.per),
        "alpha": diff.options.alpha,
        "evidence": match diff.evidence {
            Evidence::Single => "single",
            Evidence::Blocked => "blocked",
            Evidence::Turns => "turns",
        },
        "base": side(0),
        "new": side(1),
        "speed": json!({"ratio": speed[0], "low": speed[1], "high": speed[2]}),
        "all": change_of(&diff.whole, diff.options.alpha),
        "rows": rows,
        "rest": {"rows": rest, "share": shares},
        "exceeded": shown.args.fail_on.iter().filter(|limit| limit.is_exceeded(diff)).map(ToString::to_string).collect::<Vec<_>>(),
    });
    plumb_formats::json::write_pretty(&mut *out, &document)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

fn per(per: Per) -> Value {
    match per {
        Per::Total => json!("total"),
        Per::Second => json!("cpu-s"),
        Per::Iteration(counts) => json!({"iterations": counts}),
    }
}

/// A row.
pub(in crate::cmd) fn row_of(row: &DiffRow, diff: &Diff<'_, '_>) -> Value {
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
    if let Value::Object(change) = change_of(&row.change, diff.options.alpha) {
        fields.extend(change);
    }
    Value::Object(fields)
}

/// A change, and what may be said of it.
pub(in crate::cmd) fn change_of(change: &Change, alpha: f64) -> Value {
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

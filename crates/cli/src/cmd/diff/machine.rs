//! The table as JSON. Names of fields are stable.

use std::io::Write;

use anyhow::Result;
use plumb_analyze::Per;
use serde_json::{Value, json};

use super::Shown;
use crate::terminal::Output;
use plumb_documents::change as change_json;

/// Writes JSON.
pub(super) fn json(shown: &Shown<'_, '_>, out: &mut Output<'_>) -> Result<()> {
    let diff = shown.diff;
    let side = |side: usize| -> Value {
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
            .collect::<Vec<_>>()
            .into()
    };
    let rows: Vec<Value> = shown.rows().map(|row| change_json::row(row, diff)).collect();
    let (rest, shares) = shown.rest();
    let speed = diff.speed();
    let mut document = change_json::document(diff, Some(&shown.event), Some(&shown.unit), [side(0), side(1)]);
    document["per"] = per(diff.options.per);
    document["speed"] = json!({"ratio": speed[0], "low": speed[1], "high": speed[2]});
    document["rows"] = rows.into();
    document["rest"] = json!({"rows": rest, "share": shares});
    let exceeded = shown.args.fail_on.iter().filter(|limit| limit.is_exceeded(diff)).map(ToString::to_string);
    document["exceeded"] = exceeded.collect::<Vec<_>>().into();
    plumb_documents::json::write_pretty(&document, &mut *out)?;
    Ok(out.flush()?)
}

fn per(per: Per) -> Value {
    match per {
        Per::Total => json!("total"),
        Per::Second => json!("cpu-s"),
        Per::Iteration(counts) => json!({"iterations": counts}),
    }
}

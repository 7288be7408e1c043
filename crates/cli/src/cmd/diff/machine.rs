//! The table as JSON. Names of fields are stable.

use std::io::Write;

use anyhow::Result;
use plumb_analyze::Per;
use serde_json::{Value, json};

use super::Shown;
use crate::terminal::Output;

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
    let (rest, shares) = shown.rest();
    let speed = diff.speed();
    let mut document = shown.document([side(0), side(1)]);
    let exceeded = shown.args.fail_on.iter().filter(|limit| limit.is_exceeded(diff)).map(ToString::to_string);
    let more = [
        ("per", per(diff.options.per)),
        ("speed", json!({"ratio": speed[0], "low": speed[1], "high": speed[2]})),
        ("rest", json!({"rows": rest, "share": shares})),
        ("exceeded", exceeded.collect::<Vec<_>>().into()),
    ];
    document.more.extend(more.map(|(name, value)| (name.to_owned(), value)));
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

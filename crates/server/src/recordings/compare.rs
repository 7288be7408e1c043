//! What changed from one recording, or one part of it, to another, and which differences are more than chance.

use plumb_analyze::{Diff, DiffOptions, Evidence, Mark, View, is_clock};
use plumb_report::{change, kernel_time};
use serde_json::{Value, json as value};

use super::answers::{Answer, Question, event_name, json, unit};
use super::selected::Selected;
use crate::error::{ApiError, ErrorCode};

/// Rows without a significant difference below this share of both sides are left out.
const LEAST: f64 = 0.001;

/// Functions of the recording compared with those of `base`, another recording or the same; `base-WORD` selects there instead of WORD.
pub(super) fn diff(asked: &Question<'_>) -> Result<Answer, ApiError> {
    let selected = Selected::new(asked.parameters, &["base"])?;
    let base = match selected.text("base") {
        None => asked.recording,
        Some(id) => asked.recordings.get(id).ok_or_else(|| {
            ApiError::new(ErrorCode::NotFound, format!("no recording {id:?}; /api/v1/recordings lists them"))
        })?,
    };
    let of_base = selected.base();
    if std::ptr::eq(base, asked.recording) && of_base.is_none() {
        return Err(ApiError::invalid(
            "a recording does not differ from itself: name another by `base`, or another part of it, such as `base-time`",
        ));
    }
    let (new_view, filter) = selected.view(&asked.recording.profile)?;
    let (base_view, base_filter) = of_base.as_ref().unwrap_or(&selected).view(&base.profile)?;
    let events = [event_name(&base.profile, &base_filter), event_name(&asked.recording.profile, &filter)]
        .map(Option::unwrap_or_default);
    check(events, [&base_view, &new_view])?;
    let views = ([base_view], [new_view]);
    let options = DiffOptions::default();
    let call_name = kernel_time::call_names(&base.profile);
    let diff = Diff::new(&views.0, &views.1, options, &call_name);
    let is_shown = |row: &&plumb_analyze::DiffRow| {
        row.change.mark(options.alpha) != Mark::Noise || row.change.share.iter().any(|&share| share >= LEAST)
    };
    let rows: Vec<Value> = diff.rows.iter().filter(is_shown).map(|row| change::row(row, &diff)).collect();
    json(&value!({
        "version": plumb_report::JSON_VERSION,
        "event": event_name(&asked.recording.profile, &filter),
        "unit": unit(&asked.recording.profile, &filter),
        "alpha": options.alpha,
        "evidence": match diff.evidence {
            Evidence::Single => "single",
            Evidence::Blocked => "blocked",
            Evidence::Turns => "turns",
        },
        "base": side(&base.name, &views.0[0]),
        "new": side(&asked.recording.name, &views.1[0]),
        "all": change::change(&diff.whole, options.alpha),
        "rows": rows,
        "rows_left_out": diff.rows.len() - rows.len(),
    }))
}

fn check(events: [&str; 2], views: [&View<'_>; 2]) -> Result<(), ApiError> {
    let plain = events.map(|event| event.split(':').next().unwrap_or_default());
    if plain[0] != plain[1] && !(is_clock(plain[0]) && is_clock(plain[1])) {
        let message = format!(
            "samples of {} can't be compared with samples of {}; select the same event for both",
            events[0], events[1]
        );
        return Err(ApiError::invalid(message));
    }
    for (name, view) in ["base", "new"].into_iter().zip(views) {
        if view.part().samples == 0 {
            return Err(ApiError::invalid(format!("the {name} side has no samples: select more of it")));
        }
    }
    Ok(())
}

fn side(name: &str, view: &View<'_>) -> Value {
    value!({"name": name, "samples": view.part().samples, "weight": view.part().weight})
}

//! Differences between two recordings, or parts of them, and which are statistically significant.

use plumb_analyze::{Diff, DiffOptions, DiffRow, Filter, Mark, Per, View, is_clock};

use super::paths::{event_name, unit};
use super::selected::Selected;
use super::{Answer, AnswerError, LoadedRecording, Question, body, recording};
use crate::change::{ChangedRow, ComparedNames, ComparedSide, ComparedSides, DiffDocument};
use crate::flame::{Facts, difference};
use crate::kernel_time;

/// Rows without a significant difference below this share of both sides are left out.
const LEAST: f64 = 0.001;

/// A recording and the part of it that is compared.
struct Side<'a> {
    recording: &'a LoadedRecording,
    view: View<'a>,
    filter: Filter,
}

impl<'a> Side<'a> {
    fn new(recording: &'a LoadedRecording, selected: &Selected<'_>) -> Result<Self, AnswerError> {
        let (view, filter) = selected.view(&recording.profile)?;
        Ok(Self { recording, view, filter })
    }

    fn named(&self) -> ComparedSide<'a> {
        let part = self.view.part();
        ComparedSide { name: &self.recording.name, samples: part.samples, weight: part.weight }
    }
}

/// Answers with the functions of the recording compared with those of `base`, another recording or the same; `base-WORD` selects there instead
/// of WORD.
pub(super) fn diff(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    compared(asked, |diff, [base, new]| {
        let is_shown = |row: &&DiffRow| {
            row.change.mark(diff.options.alpha) != Mark::Noise
                || row.change.share.iter().any(|&share| share >= LEAST)
        };
        let shown = diff.rows.iter().filter(is_shown);
        let rows: Vec<ChangedRow<'_>> = shown.map(|row| ChangedRow::new(row, diff)).collect();
        let left_out = diff.rows.len() - rows.len();
        let profile = &new.recording.profile;
        let (event, unit) = (event_name(profile, &new.filter), unit(profile, &new.filter));
        let sides = ComparedNames { base: base.named(), new: new.named(), rows_left_out: left_out };
        body(&DiffDocument::new(diff, event, unit, ComparedSides::Names(sides), rows))
    })
}

/// Answers with this comparison as a flame graph.
pub(super) fn diff_flame(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    compared(asked, |diff, [base, new]| {
        let names = [base, new].map(|side| side.recording.name.clone());
        let facts = [base, new].map(|side| Facts::new(&side.view, &side.filter, ""));
        let facts = Facts {
            title: names.join(" → "),
            samples: facts[0].samples + facts[1].samples,
            recorded: facts[0].recorded + facts[1].recorded,
            lost: facts[0].lost + facts[1].lost,
            complete: None,
            command: None,
            duration_ns: None,
            ..facts[1].clone()
        };
        Ok(("application/octet-stream", difference::encode(diff, &facts, &names)?))
    })
}

fn compared<F>(asked: &Question<'_>, then: F) -> Result<Answer, AnswerError>
where
    F: FnOnce(&Diff<'_, '_>, [&Side<'_>; 2]) -> Result<Answer, AnswerError>,
{
    let selected = Selected::new(asked.parameters, &["base", "per"])?;
    let options = DiffOptions { per: per(&selected)?, ..DiffOptions::default() };
    let base = match selected.text("base") {
        None => asked.recording,
        Some(id) => recording(asked.recordings, id).ok_or_else(|| {
            AnswerError::NotFound(format!("no recording {id:?}; /api/v1/recordings lists them"))
        })?,
    };
    let of_base = selected.base();
    if std::ptr::eq(base, asked.recording) && of_base.is_none() {
        return Err(AnswerError::Invalid(
            "a recording does not differ from itself: name another by `base`, or another part of it, such as `base-time`".into(),
        ));
    }
    let new = Side::new(asked.recording, &selected)?;
    let base = Side::new(base, of_base.as_ref().unwrap_or(&selected))?;
    check([&base, &new])?;
    let views = [&base, &new].map(|side| std::slice::from_ref(&side.view));
    let call_name = kernel_time::call_names(&base.recording.profile);
    then(&Diff::new(views[0], views[1], options, &call_name), [&base, &new])
}

/// Returns the normalization of the two sides.
fn per(selected: &Selected<'_>) -> Result<Per, AnswerError> {
    match selected.text("per") {
        None | Some("total") => Ok(Per::Total),
        Some("second") => Ok(Per::Second),
        Some(other) => Err(AnswerError::Invalid(format!("per={other}: values are per total or per second"))),
    }
}

fn check(sides: [&Side<'_>; 2]) -> Result<(), AnswerError> {
    for (name, side) in ["base", "new"].into_iter().zip(sides) {
        if side.view.part().samples == 0 {
            return Err(AnswerError::Invalid(format!("the {name} side has no samples: select more of it")));
        }
    }
    let events = sides.map(|side| event_name(&side.recording.profile, &side.filter).unwrap_or_default());
    let plain = events.map(|event| event.split(':').next().unwrap_or_default());
    if plain[0] != plain[1] && !(is_clock(plain[0]) && is_clock(plain[1])) {
        let message = format!(
            "samples of {} can't be compared with samples of {}; select the same event for both",
            events[0], events[1]
        );
        return Err(AnswerError::Invalid(message));
    }
    Ok(())
}

//! Exports the selection, in plumb's own format and those of other tools.

use std::io::Cursor;

use plumb_analyze::{Flame, View};
use plumb_documents::answers::{Answer, AnswerError, Question, Selected};
use plumb_documents::flame::{Facts, default_grouping, svg};
use plumb_documents::{folded, page_file};
use plumb_formats::folded::FoldedOptions;
use plumb_formats::{callgrind, chrome, firefox, native, otlp, pprof, speedscope};

/// The formats by name.
const FORMATS: &str = "plumb, pprof, speedscope, firefox, trace, callgrind, otlp, folded, html, svg";

/// The selected samples, of all events unless one is selected.
pub(super) fn export(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let selected = Selected::new(asked.parameters, &["format"])?;
    let format = selected.required("format")?;
    let profile = &*asked.recording.profile;
    if let "html" | "svg" | "folded" = format {
        return of_one_event(asked, &selected, format);
    }
    let kept = View::new(profile, &selected.all_events(profile)?).to_profile();
    let mut body = Vec::new();
    let failed =
        |error: &dyn std::fmt::Display| AnswerError::Invalid(format!("cannot write {format}: {error}"));
    let written = match format {
        "plumb" => {
            let mut file = Cursor::new(Vec::new());
            native::write(&kept, &mut file).map_err(|error| failed(&error))?;
            return Ok(("application/zip", file.into_inner()));
        }
        "pprof" => pprof::write(&kept, &mut body),
        "speedscope" => speedscope::write(&kept, &mut body),
        "firefox" => firefox::write(&kept, &mut body),
        "trace" => chrome::write(&kept, &mut body),
        "callgrind" => callgrind::write(&kept, &mut body),
        "otlp" => otlp::write(&kept, &mut body),
        other => {
            return Err(AnswerError::Invalid(format!("unknown format {other:?}; use one of {FORMATS}")));
        }
    };
    written.map_err(|error| failed(&error))?;
    let kind = match format {
        "speedscope" | "firefox" | "trace" => "application/json",
        "pprof" => "application/gzip",
        _ => "application/octet-stream",
    };
    Ok((kind, body))
}

/// The output of `plumb flame` and `plumb fold`: weights of different events can't be added up.
fn of_one_event(asked: &Question<'_>, selected: &Selected<'_>, format: &str) -> Result<Answer, AnswerError> {
    let failed = |error: std::io::Error| AnswerError::Internal(format!("cannot write {format}: {error}"));
    let profile = &*asked.recording.profile;
    let (view, filter) = selected.view(profile)?;
    if format == "folded" {
        let mut body = Vec::new();
        let options = (&FoldedOptions::default(), false);
        folded::write(&view, &filter, options, &mut body).map_err(failed)?;
        return Ok(("text/plain; charset=utf-8", body));
    }
    let flame = Flame::new(&view, default_grouping(profile));
    if flame.total().samples == 0 {
        return Err(AnswerError::Invalid("nothing to draw: no sample passes the filters".into()));
    }
    let facts = Facts {
        filters: Some(selected.typed()).filter(|typed| !typed.is_empty()),
        ..Facts::new(&view, &filter, &asked.recording.name)
    };
    if format == "svg" {
        return Ok(("image/svg+xml", svg::picture(&flame, &facts).map_err(failed)?));
    }
    let selection = asked.parameters.without("format");
    let page = page_file::of_flame(asked.recording, (&flame, &facts), &selection, asked.named_files)?;
    Ok(("text/html; charset=utf-8", page))
}

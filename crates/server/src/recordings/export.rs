//! What is selected, in plumb's own format and in those of other tools.

use std::io::Cursor;

use plumb_analyze::View;
use plumb_formats::{callgrind, chrome, firefox, native, otlp, pprof, speedscope};
use plumb_report::answers::{Answer, AnswerError, Question, Selected};

/// The formats by name.
const FORMATS: &str = "plumb, pprof, speedscope, firefox, trace, callgrind, otlp";

/// The samples that are selected, of all events unless one is.
pub(super) fn export(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let selected = Selected::new(asked.parameters, &["format"])?;
    let format = selected.required("format")?;
    let profile = &*asked.recording.profile;
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

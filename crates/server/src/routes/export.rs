//! `/api/v1/export`: all selected samples in the format of another tool.

use std::io::{self, Cursor, Write};

use plumb_formats::folded::{self, FoldedOptions};
use plumb_formats::{callgrind, chrome, csv, firefox, foreign, native, otlp, pprof, speedscope};
use plumb_store::Cancellation;
use prost::Message;

use super::api::{Answer, selected};
use crate::app::Context;
use crate::error::{ApiError, ErrorCode};
use crate::parameters::Parameters;
use crate::query;

/// The error for an empty selection.
pub(super) fn nothing() -> ApiError {
    ApiError::new(
        ErrorCode::NotFound,
        "no profiles match; /api/v1/services lists the services that have some",
    )
}

/// The selected samples as a pprof message.
fn message(context: &Context, parameters: &Parameters) -> Result<Vec<u8>, ApiError> {
    let request = selected(context, parameters, ["query", "from", "until"])?;
    let mut message = query::counted_profile(context, &request)?;
    if message.sample.is_empty() {
        return Err(nothing());
    }
    // The profile may combine profiles with different periods.
    message.period = 0;
    let message = message.encode_to_vec();
    context.check()?;
    Ok(message)
}

pub(super) fn export(context: &Context, parameters: &Parameters) -> Result<Answer, ApiError> {
    let message = message(context, parameters)?;
    let format = parameters.get("format").unwrap_or("pprof");
    if format == "pprof" {
        return Ok(("application/octet-stream", message));
    }
    let profile = foreign::read(&message)?;
    let mut body = Vec::new();
    let out = &mut Cancellable { out: &mut body, cancellation: &context.cancellation };
    let written = match format {
        "pprof.gz" => pprof::write(&profile, out),
        "speedscope" => speedscope::write(&profile, out),
        "firefox" => firefox::write(&profile, out),
        "callgrind" => callgrind::write(&profile, out),
        "folded" => folded::write(&profile, &FoldedOptions::default(), out),
        "csv" => csv::write(&profile, out),
        "trace" => chrome::write(&profile, out),
        "plumb" => {
            let mut file = Cursor::new(Vec::new());
            let written = native::write(&profile, &mut file).map_err(io::Error::other);
            body = file.into_inner();
            written
        }
        "otlp" => otlp::write(&profile, out),
        other => {
            let known = "pprof, pprof.gz, speedscope, firefox, trace, callgrind, folded, otlp, csv, plumb";
            return Err(ApiError::invalid(format!("unknown format {other:?}; use one of {known}")));
        }
    };
    context.check()?;
    written.map_err(|error| ApiError::new(ErrorCode::Internal, format!("cannot convert: {error}")))?;
    let kind = match format {
        "speedscope" | "firefox" | "trace" => "application/json",
        "folded" | "csv" | "callgrind" => "text/plain; charset=utf-8",
        "pprof.gz" => "application/gzip",
        "plumb" => "application/zip",
        _ => "application/octet-stream",
    };
    Ok((kind, body))
}

/// A writer that fails once nobody waits for the answer any more.
struct Cancellable<'o, 'c> {
    out: &'o mut Vec<u8>,
    cancellation: &'c Cancellation,
}

impl Write for Cancellable<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.cancellation.check().map_err(io::Error::other)?;
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

//! `/ingest`: profiles of older agents, and of clients that only have text. The parameters give the format.

use std::collections::HashMap;

use axum::Router;
use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use futures_core::Stream;
use plumb_formats::pprof::message::Profile;
use plumb_formats::{foreign, pprof};
use plumb_store::{Batch, Labels, Millis, ProfileType, SERVICE};
use serde::Deserialize;
use tokio::runtime::Handle;

use crate::app::App;
use crate::connect;
use crate::error::{ApiError, ErrorCode};
use crate::ingest::{
    Application, JfrUpload, PprofReader, StackBuilder, StackFormat, Target, add_jfr, add_stacks, begin_time,
    check_json, series_labels,
};
use crate::moment;
use crate::options::IngestLimits;
use crate::parameters::Parameters;

pub(super) fn routes() -> Router<App> {
    Router::new().route("/ingest", post(ingest)).route("/pyroscope/ingest", post(ingest))
}

/// Format of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Stacks(StackFormat),
    Pprof,
    Speedscope,
    Jfr,
}

/// The parsed parameters.
struct Said {
    application: Application,
    format: Format,
    /// Milliseconds since 1970.
    from: i64,
    sample_rate: u32,
    spy: String,
}

async fn ingest(State(app): State<App>, RawQuery(query): RawQuery, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let stored = async {
        let tenant = app.tenant(&parts.headers)?;
        let said = said(&Parameters::parse(query.as_deref()), &parts.headers)?;
        let body = connect::read_body(&app, &tenant, &parts.headers, body).await?;
        let boundary = boundary(&parts.headers);
        let work = move |limits: &IngestLimits| {
            let bytes = body.unpacked(limits.unpacked)?;
            let sent = match &boundary {
                // All of it is here: nothing is waited for.
                Some(boundary) => Handle::current().block_on(of_form(bytes, boundary, said.format))?,
                None => Sent { profile: bytes, labels: None, types: None },
            };
            batch(&said, &sent, limits)
        };
        app.ingest(tenant, work).await
    };
    stored.await.map_or_else(IntoResponse::into_response, |()| StatusCode::OK.into_response())
}

fn said(parameters: &Parameters, headers: &HeaderMap) -> Result<Said, ApiError> {
    let application = Application::parse(parameters.get("name").unwrap_or_default())?;
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|one| one.to_str().ok()).unwrap_or_default();
    let format = match parameters.get("format").unwrap_or_default() {
        "pprof" => Format::Pprof,
        "speedscope" => Format::Speedscope,
        "lines" => Format::Stacks(StackFormat::Lines),
        "trie" => Format::Stacks(StackFormat::Trie),
        "tree" => Format::Stacks(StackFormat::Tree),
        "jfr" => Format::Jfr,
        "" | "groups" | "folded" => match content_type {
            "binary/octet-stream+trie" => Format::Stacks(StackFormat::Trie),
            "binary/octet-stream+tree" => Format::Stacks(StackFormat::Tree),
            form if form.contains("multipart/form-data") => Format::Pprof,
            _ => Format::Stacks(StackFormat::Groups),
        },
        other => {
            let known = "groups, lines, trie, tree, pprof, speedscope, jfr";
            return Err(ApiError::invalid(format!("unknown format {other:?}; use one of {known}")));
        }
    };
    let now = moment::now();
    let from = match parameters.get("from").filter(|from| !from.is_empty()) {
        None => now,
        Some(from) => moment::parse(from, now).ok_or_else(|| {
            ApiError::invalid(format!("from is no time: {from:?}; write seconds since 1970, or now-10s"))
        })?,
    };
    let rate = parameters.get("sampleRate").filter(|rate| !rate.is_empty());
    let sample_rate = rate.map_or(Ok(100), |rate| {
        let wrong = |_| ApiError::invalid(format!("sampleRate is no number of samples a second: {rate:?}"));
        rate.parse().map_err(wrong)
    })?;
    let spy = parameters.get("spyName").filter(|spy| !spy.is_empty()).unwrap_or("unknown").to_owned();
    Ok(Said { application, format, from, sample_rate, spy })
}

fn batch(said: &Said, sent: &Sent, limits: &IngestLimits) -> Result<Batch, ApiError> {
    let mut batch = Batch::default();
    let bytes = &sent.profile[..];
    let reader = PprofReader::new(limits);
    let labels = |kind: &str, service: &str| {
        let pairs = said.application.pairs(kind, service, &said.spy);
        series_labels(pairs.iter().map(|(name, value)| (&**name, &**value)), limits)
    };
    let begin = || {
        let labels = Labels::new([(SERVICE, said.application.name.as_str())]);
        begin_time(said.from, &labels, limits)
    };
    let mut profile = match said.format {
        Format::Stacks(format) => {
            let (service, kind, factor) = said.application.kind(said.sample_rate)?;
            let labels = labels(&kind.name, &service)?;
            let unpacked;
            let bytes = match bytes.starts_with(b"\x1f\x8b") {
                true => {
                    unpacked = connect::inflate(bytes, limits.unpacked)?;
                    &unpacked
                }
                false => bytes,
            };
            let mut target = target(&mut batch, (&labels, &kind, factor), begin()?, limits);
            add_stacks(format, bytes, &mut target)?;
            return Ok(batch);
        }
        Format::Jfr => {
            let upload = JfrUpload {
                file: bytes,
                labels: sent.labels.as_deref(),
                time: begin()?,
                sample_rate: said.sample_rate,
            };
            let labels = |kind: &str| labels(kind, &said.application.name);
            add_jfr(&mut batch, &upload, labels, limits)?;
            return Ok(batch);
        }
        Format::Pprof => reader.decode(bytes)?,
        Format::Speedscope => {
            check_json(bytes, limits.memory.decoded)?;
            let mut converted = Vec::new();
            let written = pprof::write(&foreign::read(bytes)?, &mut converted);
            written
                .map_err(|error| ApiError::new(ErrorCode::Internal, format!("cannot convert: {error}")))?;
            // The writer gzips.
            reader.decode_owned(connect::inflate(&converted, limits.unpacked)?)?
        }
    };
    // Older agents wrote microseconds.
    if profile.tables.time_nanos < 365 * 86_400 * 1_000_000_000 {
        profile.tables.time_nanos = said.from.saturating_mul(1_000_000);
    }
    let labels = labels(kind_of(&profile.tables, sent.types.as_ref()), &said.application.name)?;
    reader.add(&mut batch, &labels, &profile)?;
    Ok(batch)
}

/// The destination of stacks of a kind, each of whose counts is worth `factor`.
fn target<'b>(
    batch: &'b mut Batch,
    (labels, kind, factor): (&Labels, &ProfileType, i64),
    time: Millis,
    limits: &'b IngestLimits,
) -> Target<'b> {
    let mut of_kind = |kind: &ProfileType| {
        let mut labels = labels.clone();
        kind.label(&mut labels);
        batch.series(labels)
    };
    let series = of_kind(kind);
    let counts = kind.sample_count().filter(|_| factor > 1);
    let counts = counts.as_ref().map(of_kind);
    Target { batch, series, counts, time, factor, stacks: StackBuilder::new(limits), limits }
}

/// Sample types of a profile as an agent describes them, by name. Other fields are for servers that no longer exist.
type SampleTypes = HashMap<String, SampleType>;

#[derive(Default, Deserialize)]
struct SampleType {
    #[serde(rename = "display-name", default)]
    display_name: String,
}

/// Names under which Go's sample types are known if an agent says nothing: those of mutex and block profiles are the same.
const DISPLAY_NAMES: [(&str, &str); 4] = [
    ("samples", "cpu"),
    ("goroutine", "goroutines"),
    ("contentions", "mutex_count"),
    ("delay", "mutex_duration"),
];

/// The kind of profile, from a profile's types, as Pyroscope names it.
fn kind_of<'p>(profile: &'p Profile, said: Option<&'p SampleTypes>) -> &'p str {
    let text = |index: i64| usize::try_from(index).ok().and_then(|index| profile.string_table.get(index));
    let types = || profile.sample_type.iter().filter_map(|one| text(one.kind)).map(String::as_str);
    if types().any(|one| one == "wall") {
        return "wall";
    }
    let shown = |one: &'p str| -> &'p str {
        let shown = match said {
            Some(said) => said.get(one).map(|of| &*of.display_name).filter(|shown| !shown.is_empty()),
            None => DISPLAY_NAMES.iter().find(|(name, _)| *name == one).map(|&(_, shown)| shown),
        };
        shown.unwrap_or(one)
    };
    let known = |one: &str| match one {
        one if one.contains("cpu") => Some("process_cpu"),
        one if one.contains("alloc_") || one.contains("inuse_") => Some("memory"),
        "space" | "objects" => Some("memory"),
        one if one.contains("mutex_") => Some("mutex"),
        one if one.contains("block_") => Some("block"),
        one if one.contains("goroutine") => Some("goroutines"),
        _ => None,
    };
    let last = types().next_back().map_or("samples", shown);
    types().map(shown).find_map(known).unwrap_or(if last == "samples" { "process_cpu" } else { last })
}

fn boundary(headers: &HeaderMap) -> Option<String> {
    multer::parse_boundary(headers.get(header::CONTENT_TYPE)?.to_str().ok()?).ok()
}

/// The content of a request.
struct Sent {
    profile: Bytes,
    /// Labels of contexts, which come with a JFR file.
    labels: Option<Bytes>,
    /// Facts about sample types, which come with a pprof profile.
    types: Option<SampleTypes>,
}

/// Reads a form. A form with the previous profile, which old agents also send, is refused: it is not subtracted any more.
async fn of_form(bytes: Bytes, boundary: &str, format: Format) -> Result<Sent, ApiError> {
    let wrong = |error: multer::Error| ApiError::invalid(format!("malformed form: {error}"));
    let wanted = if format == Format::Jfr { "jfr" } else { "profile" };
    let mut form = multer::Multipart::new(Once(Some(bytes)), boundary);
    let (mut profile, mut labels, mut types) = (None, None, None);
    while let Some(field) = form.next_field().await.map_err(wrong)? {
        match field.name() {
            Some(name) if name == wanted => profile = Some(field.bytes().await.map_err(wrong)?),
            Some("labels") => labels = Some(field.bytes().await.map_err(wrong)?),
            Some("sample_type_config") => {
                let config = field.bytes().await.map_err(wrong)?;
                let wrong =
                    |error| ApiError::invalid(format!("sample_type_config is no map of types: {error}"));
                types = serde_json::from_slice::<Option<SampleTypes>>(&config).map_err(wrong)?;
            }
            Some("prev_profile") => {
                let message = "prev_profile is not supported: update the agent, so that it sends differences";
                return Err(ApiError::new(ErrorCode::Unimplemented, message));
            }
            _ => {}
        }
    }
    let missing = || ApiError::invalid(format!("the form has no field {wanted}"));
    let labels = labels.filter(|labels| !labels.is_empty());
    Ok(Sent { profile: profile.ok_or_else(missing)?, labels, types })
}

/// A body that is already in memory.
struct Once(Option<Bytes>);

impl Stream for Once {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.take().map(Ok))
    }
}

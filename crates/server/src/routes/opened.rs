//! Files dropped on the page: receives them, and answers on them like on recordings.
//!
//! Invariant: a page of another site can't open a file here. For a body of `application/octet-stream`, a browser asks for permission first
//! (CORS), and gets no answer.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use plumb_documents::answers::{AnswerFn, NamedFiles, Question, RecordingEntry};
use serde::Serialize;
use tokio::time::timeout;

use super::page::guarded;
use crate::app::App;
use crate::connect;
use crate::error::{ApiError, ErrorCode};
use crate::opened::read_alone;
use crate::options::BodyLimits;
use crate::parameters::Parameters;
use crate::recordings;

/// Magic bytes of gzip (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Time limit for receiving a file.
const TIME: Duration = Duration::from_secs(300);

/// Routes of a server with a store.
pub(super) fn routes() -> Router<App> {
    let mut router = Router::new().route("/api/v1/opened", post(open));
    for (path, work) in recordings::paths() {
        let answer = move |State(app): State<App>,
                           Path(id): Path<String>,
                           RawQuery(query): RawQuery,
                           headers: HeaderMap| async move {
            answered(app, work, &id, query, &headers).await.unwrap_or_else(IntoResponse::into_response)
        };
        router = router.route(&format!("/api/v1/opened/{{id}}{path}"), get(answer));
    }
    router
}

async fn open(State(app): State<App>, RawQuery(query): RawQuery, request: Request) -> Response {
    opened(app, query, request).await.unwrap_or_else(IntoResponse::into_response)
}

async fn opened(app: App, query: Option<String>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let name = name_of(&parts.headers, query.as_deref())?;
    let tenant = app.tenant(&parts.headers)?;
    let limits = &app.options.ingest;
    let limits = BodyLimits { sent: limits.body, unpacked: limits.unpacked, time: TIME };
    let bytes = connect::read_body_within(&app, &parts.headers, body, &limits).await?;
    let bytes = match bytes.starts_with(&GZIP) {
        true => connect::inflate(&bytes, limits.unpacked)?,
        false => bytes.to_vec(),
    };
    let size = bytes.len();
    let permit = app.large().await;
    let read = tokio::task::spawn_blocking(move || {
        let _room = permit;
        read_alone(&name, bytes)
    });
    let recording = read.await.map_err(|_| ended())??;
    let mut entry = RecordingEntry::new(&recording, String::new());
    entry.id = app.opened.add(tenant, recording, size)?;
    Ok(created(&entry))
}

/// The name sent with a file.
pub(super) fn name_of(headers: &HeaderMap, query: Option<&str>) -> Result<String, ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or("?"));
    if kind != Some("application/octet-stream") {
        return Err(ApiError::invalid("send the file as Content-Type: application/octet-stream"));
    }
    Ok(Parameters::parse(query).get("name").unwrap_or_default().to_owned())
}

/// Reads a body of at most `most` bytes.
pub(super) async fn bytes_of(body: Body, most: usize) -> Result<Vec<u8>, ApiError> {
    let read = timeout(TIME, connect::collect(None, body, most)).await;
    let late = || ApiError::new(ErrorCode::DeadlineExceeded, "the file did not arrive within 5 minutes");
    Ok(read.map_err(|_| late())??.to_vec())
}

pub(super) fn created(entry: &impl Serialize) -> Response {
    let mut response = guarded("application/json", json_of(entry));
    *response.status_mut() = StatusCode::CREATED;
    response
}

/// A document in one line, with its names in alphabetical order.
pub(super) fn json_of(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_value(document).map_or_else(|_| Vec::new(), |value| value.to_string().into_bytes())
}

pub(super) fn ended() -> ApiError {
    ApiError::new(ErrorCode::Internal, "reading the file ended unexpectedly")
}

async fn answered(
    app: App,
    work: AnswerFn,
    id: &str,
    query: Option<String>,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let tenant = app.tenant(headers)?;
    let parameters = Parameters::parse(query.as_deref());
    let recording = app.opened.get(&tenant, id).ok_or_else(|| {
        ApiError::new(ErrorCode::NotFound, "this file is not open any more; drop it on the page again")
    })?;
    let answer = app.query(tenant, move |_| {
        let recordings = [Arc::unwrap_or_clone(recording)];
        let named_files = NamedFiles::Ignore;
        Ok(work(&Question {
            recordings: &recordings,
            recording: &recordings[0],
            parameters: &parameters,
            named_files,
        })?)
    });
    let (kind, body) = answer.await?;
    Ok(guarded(kind, body))
}

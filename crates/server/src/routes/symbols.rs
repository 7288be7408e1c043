//! Files with symbols, by build ID: the list of wanted files, and uploads.

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use serde::Serialize;

use crate::app::App;
use crate::connect::read_file;
use crate::error::{ApiError, ErrorCode};
use crate::symbols::build_id;

/// Paths of files with symbols; each is described in `openapi.json`.
pub(super) const PATHS: [&str; 2] = ["/api/v1/symbols/missing", "/api/v1/symbols/{build_id}"];

pub(super) fn routes() -> Router<App> {
    let [wanted, file] = PATHS;
    Router::new().route(wanted, get(missing)).route(file, put(upload).get(has))
}

/// The wanted files.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MissingSymbols {
    version: u32,
    build_ids: Vec<String>,
}

async fn missing(State(app): State<App>, headers: HeaderMap) -> Result<Response, ApiError> {
    let build_ids = app.store.missing_symbols(&app.tenant(&headers)?);
    let body = serde_json::to_vec(&MissingSymbols { version: 1, build_ids });
    let body = body
        .map_err(|error| ApiError::new(ErrorCode::Internal, format!("cannot write the answer: {error}")))?;
    Ok(([("content-type", "application/json")], body).into_response())
}

async fn has(
    State(app): State<App>,
    Path(build_id): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let tenant = app.tenant(&headers)?;
    match app.store.has_symbols(&tenant, &build_id) {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ApiError::new(ErrorCode::NotFound, "there are no symbols of a file with this build id")),
    }
}

async fn upload(
    State(app): State<App>,
    Path(wanted): Path<String>,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let (parts, body) = request.into_parts();
    let tenant = app.tenant(&parts.headers)?;
    let limits = app.options.ingest.symbols;
    let folder = app.store.temporary_directory();
    let file = read_file(&app, &parts.headers, body, &limits, &folder).await?;
    // Reading debug information takes much memory.
    let one = app.large().await;
    let stored = tokio::task::spawn_blocking(move || {
        let _one = one;
        match build_id(file.path()) {
            Some(found) if found.eq_ignore_ascii_case(&wanted) => {}
            Some(found) => {
                return Err(ApiError::invalid(format!(
                    "the file has the build id {found}, not {wanted:.200}"
                )));
            }
            None => {
                return Err(ApiError::invalid(
                    "it is no ELF file with a build id: send the program, the library, or its debug file",
                ));
            }
        }
        Ok(app.store.put_symbols(&tenant, &wanted, file.path())?)
    });
    let ended = |_| ApiError::new(ErrorCode::Internal, "reading the file ended unexpectedly");
    // A stored file with more names, such as an unstripped one, is kept.
    Ok(if stored.await.map_err(ended)?? { StatusCode::CREATED } else { StatusCode::OK })
}

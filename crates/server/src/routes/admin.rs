//! Requests of an administrator, a script or another server of the bucket: write blocks now, compact them now, list profiles in no block.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::post;

use crate::app::App;
use crate::error::ApiError;
use crate::parameters::Parameters;
use crate::pyroscope::unwritten::UnwrittenRequest;

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/api/v1/admin/flush", post(flush))
        .route("/api/v1/admin/compact", post(compact))
        .route(UnwrittenRequest::PATH, post(unwritten))
}

async fn flush(State(app): State<App>) -> Result<&'static str, ApiError> {
    app.store.flush().await?;
    Ok("blocks are written\n")
}

/// With `due=true`, only the blocks that are due.
async fn compact(State(app): State<App>, RawQuery(query): RawQuery) -> Result<&'static str, ApiError> {
    match Parameters::parse(query.as_deref()).get("due") {
        Some("true") => app.store.compact_due().await?,
        _ => app.store.compact().await?,
    }
    Ok("blocks are compacted\n")
}

async fn unwritten(State(app): State<App>, headers: HeaderMap, body: Bytes) -> Response {
    let answered = async {
        let tenant = app.tenant(&headers)?;
        let request: UnwrittenRequest = serde_json::from_slice(&body)
            .map_err(|error| ApiError::invalid(format!("malformed request: {error}")))?;
        let selection = request.selection()?;
        app.query(tenant, move |context| {
            let cancellation = context.cancellation.clone();
            Ok(context.store.unwritten(&context.tenant, selection, cancellation)?)
        })
        .await
    };
    match answered.await {
        Ok(bytes) => bytes.into_response(),
        Err(error) => error.into_response(),
    }
}

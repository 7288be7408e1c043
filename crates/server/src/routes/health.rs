//! Whether the server works, and what it counts.

use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::{ApiError, ErrorCode};

/// Tells who balances load whether profiles can be sent.
pub(super) async fn ready(State(app): State<App>) -> Result<&'static str, ApiError> {
    let store = app.store.clone();
    let status = tokio::task::spawn_blocking(move || store.status()).await;
    match status.map(|status| status.failure) {
        Ok(None) => Ok("ready\n"),
        Ok(Some(failure)) => Err(ApiError::new(ErrorCode::Unavailable, failure)),
        Err(_) => Err(ApiError::new(ErrorCode::Internal, "the store's status is not available")),
    }
}

/// Content type of Prometheus' own format, of which OpenMetrics is an extension that only its readers ask for.
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counts for Prometheus.
pub(super) async fn metrics(State(app): State<App>, headers: HeaderMap) -> Response {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let is_open = accepted.into_iter().any(|text| text.contains("application/openmetrics-text"));
    let store = app.store.clone();
    let status = tokio::task::spawn_blocking(move || store.status()).await.unwrap_or_default();
    match app.metrics.text(&status) {
        Ok(text) => {
            let kind = if is_open { OPEN_METRICS } else { PLAIN };
            ([("Content-Type", HeaderValue::from_static(kind))], text).into_response()
        }
        Err(error) => ApiError::new(ErrorCode::Internal, error.to_string()).into_response(),
    }
}

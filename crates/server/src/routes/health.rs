//! Whether the server works, and what it counts.

use axum::extract::State;
use axum::http::HeaderValue;
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

/// Counts for Prometheus.
pub(super) async fn metrics(State(app): State<App>) -> Response {
    let store = app.store.clone();
    let status = tokio::task::spawn_blocking(move || store.status()).await.unwrap_or_default();
    match app.metrics.text(&status) {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([("Content-Type", HeaderValue::from_static(kind))], text).into_response()
        }
        Err(error) => ApiError::new(ErrorCode::Internal, error.to_string()).into_response(),
    }
}

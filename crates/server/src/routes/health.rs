//! Whether the server works, and what it counts.

use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};

use super::guard::TENANT;
use crate::app::App;
use crate::error::{ApiError, ErrorCode};
use crate::watch::HOUR;

/// Tells who balances load whether queries are answered. They are when profiles can't be stored, as when the disk is full: that is said.
pub(super) async fn ready(State(app): State<App>) -> Result<String, ApiError> {
    Ok(match failure(&app).await? {
        None => "ready\n".to_owned(),
        Some(failure) => format!("ready for queries; profiles can't be stored: {failure}\n"),
    })
}

/// Tells who balances load whether profiles can be sent.
pub(super) async fn ready_for_push(State(app): State<App>) -> Result<&'static str, ApiError> {
    match failure(&app).await? {
        None => Ok("ready\n"),
        Some(failure) => Err(ApiError::new(ErrorCode::Unavailable, failure)),
    }
}

/// Why profiles can't be stored.
async fn failure(app: &App) -> Result<Option<String>, ApiError> {
    let store = app.store.clone();
    let status = tokio::task::spawn_blocking(move || store.status()).await;
    let gone = |_| ApiError::new(ErrorCode::Internal, "the store's status is not available");
    Ok(status.map_err(gone)?.failure)
}

/// Content type of Prometheus' own format. OpenMetrics extends it, and only readers of OpenMetrics ask for that.
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counts for Prometheus. Findings have names of a tenant's services and functions: a token of one tenant, or a request for one, gets those of that
/// tenant alone. So it is with the other metrics by tenant.
pub(super) async fn metrics(State(app): State<App>, headers: HeaderMap) -> Response {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let is_open = accepted.into_iter().any(|text| text.contains("application/openmetrics-text"));
    let tenant = match headers.contains_key(TENANT).then(|| app.tenant(&headers)).transpose() {
        Ok(tenant) => tenant,
        Err(error) => return error.into_response(),
    };
    let store = app.store.clone();
    let status = tokio::task::spawn_blocking(move || store.status()).await.unwrap_or_default();
    let findings = app.kept_findings.current(HOUR, tenant.as_ref());
    match app.metrics.text(&status, &findings, &app.rates, tenant.as_ref()) {
        Ok(text) => {
            let kind = if is_open { OPEN_METRICS } else { PLAIN };
            ([("Content-Type", HeaderValue::from_static(kind))], text).into_response()
        }
        Err(error) => ApiError::new(ErrorCode::Internal, error.to_string()).into_response(),
    }
}

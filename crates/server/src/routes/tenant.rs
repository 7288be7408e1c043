//! The data of a tenant as a whole.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::delete;

use super::guard::TENANT;
use crate::app::App;
use crate::error::ApiError;

/// The path, which `openapi.json` describes.
pub(super) const PATH: &str = "/api/v1/tenant";

pub(super) fn routes() -> Router<App> {
    Router::new().route(PATH, delete(remove))
}

/// Deletes all data of a tenant. The tenant has to be named: a forgotten header must not delete the default one.
async fn remove(State(app): State<App>, headers: HeaderMap) -> Result<StatusCode, ApiError> {
    if !headers.contains_key(TENANT) {
        let message =
            "no tenant is named: send the header X-Scope-OrgID with the tenant whose data to delete";
        return Err(ApiError::invalid(message));
    }
    app.delete_tenant(app.tenant(&headers)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

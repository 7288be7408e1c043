//! Says in a header of each answer which profiles are missing in it, because their block is damaged.

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::Response;

use crate::app::App;

/// Names the header: first and last timestamp of each damaged block of the tenant, in milliseconds since 1970.
const HEADER: &str = "plumb-missing";
/// Most blocks that are listed.
const MOST: usize = 20;

/// Adds the header where blocks are damaged: also to the answer of the query that has found that.
pub(super) async fn tell(State(app): State<App>, request: Request, next: Next) -> Response {
    let tenant = app.tenant(request.headers());
    let mut response = next.run(request).await;
    let missing = tenant.map(|tenant| app.store.missing(&tenant)).unwrap_or_default();
    let spans: Vec<String> =
        missing.iter().take(MOST).map(|(from, until)| format!("{}-{}", from.0, until.0)).collect();
    if !spans.is_empty()
        && let Ok(value) = HeaderValue::from_str(&spans.join(","))
    {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

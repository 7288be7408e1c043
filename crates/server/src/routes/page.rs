//! The page, and what keeps it from doing anything but asking its own server.
//!
//! Invariant: no script or style but the page's own files; nothing is asked of any other host; no other page shows it in a frame.
//! The files are built by `npm run build` in web/ and committed: a machine that builds plumb may have no node.

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

const PAGE: &str = include_str!("../../../../web/dist/page.html");
const SCRIPT: &str = include_str!("../../../../web/dist/page.js");
const STYLE: &str = include_str!("../../../../web/dist/page.css");

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page for what this server has: `recordings` or a `store`.
pub(super) fn routes<S: Clone + Send + Sync + 'static>(serves: &'static str) -> Router<S> {
    let about =
        format!("{{\"version\":1,\"plumb\":\"{}\",\"serves\":\"{serves}\"}}\n", env!("CARGO_PKG_VERSION"));
    Router::new()
        .route("/", get(|| async { file("text/html; charset=utf-8", PAGE) }))
        .route("/page.js", get(|| async { file("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/page.css", get(|| async { file("text/css; charset=utf-8", STYLE) }))
        .route("/api/v1/about", get(move || async move { guarded("application/json", about.into_bytes()) }))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    guarded(kind, text.as_bytes().to_vec())
}

/// An answer that other sites can't use.
pub(super) fn guarded(kind: &'static str, body: Vec<u8>) -> Response {
    let fixed = |name: HeaderName, value: &'static str| (name, HeaderValue::from_static(value));
    let headers = [
        fixed(header::CONTENT_TYPE, kind),
        fixed(header::CONTENT_SECURITY_POLICY, POLICY),
        fixed(header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        fixed(header::REFERRER_POLICY, "no-referrer"),
        fixed(header::CACHE_CONTROL, "no-cache"),
        fixed(HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    (headers, body).into_response()
}

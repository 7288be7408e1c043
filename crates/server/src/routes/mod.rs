//! All routes, by path. One file per resource.

mod admin;
mod api;
mod compressed;
mod export;
mod findings;
mod guard;
mod health;
mod host;
mod ingest;
mod missing;
mod opened;
mod origin;
mod otlp;
mod page;
mod push;
mod querier;
mod recordings;
mod render;
mod selection;
mod symbols;
mod tenant;
mod verdict;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, Uri};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use plumb_store::Store;

use self::guard::guard;
pub use self::recordings::ShownRecordings;
use crate::access::Scope;
use crate::app::App;
use crate::error::{ApiError, ErrorCode};
use crate::options::ServerOptions;

/// All routes of a server with a store.
pub fn router(store: Arc<Store>, options: ServerOptions) -> Router {
    router_of(App::new(store, options))
}

/// As [`router`], for state that is shared with others.
pub(crate) fn router_of(app: App) -> Router {
    let is_open = app.options.tokens.is_none();
    let write = push::routes().merge(ingest::routes()).merge(otlp::routes()).merge(symbols::routes());
    let read = querier::routes()
        .merge(render::routes())
        .merge(api::routes())
        .merge(selection::routes())
        .merge(opened::routes())
        .route_layer(middleware::from_fn_with_state(app.clone(), missing::tell))
        .route("/metrics", get(health::metrics));
    let router = Router::new()
        .merge(page::routes("store"))
        .route("/ready", get(health::ready))
        .route("/ready/push", get(health::ready_for_push))
        .route("/api/v1/openapi.json", get(api::openapi))
        .merge(guard(write, &app, Scope::Write))
        .merge(guard(read, &app, Scope::Read))
        .merge(guard(admin::routes().merge(tenant::routes()), &app, Scope::Admin))
        .fallback(nothing)
        .layer(middleware::from_fn(origin::check))
        .layer(compressed::layer())
        .layer(middleware::from_fn_with_state(app.clone(), count))
        .with_state(app);
    // With tokens, a foreign page gets no data, whatever host name it uses.
    if is_open { router.layer(middleware::from_fn(host::check)) } else { router }
}

/// All routes of a server of recordings.
pub fn recordings_router(shown: ShownRecordings) -> Router {
    page::routes("recordings")
        .merge(recordings::routes(shown))
        .fallback(nothing)
        .layer(middleware::from_fn(origin::check))
        .layer(compressed::layer())
        .layer(middleware::from_fn(host::check))
}

/// The routes for programs of other users: an error.
pub(crate) fn refusing_router() -> Router {
    Router::new().fallback(|| async {
        let message = "these recordings are shown to the user who opened them; ask for a copy of the file";
        ApiError::new(ErrorCode::PermissionDenied, message)
    })
}

async fn nothing(method: Method, uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(ErrorCode::NotFound, format!("nothing answers {method} {path}"))
}

/// Counts and logs every request.
async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    let begin = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let response = next.run(request).await;
    let took = begin.elapsed();
    // Paths without a route could be any number.
    let route = route.as_deref().unwrap_or("other");
    let status = response.status().as_u16();
    app.metrics.answered(route, status, took);
    let ms = took.as_secs_f64() * 1e3;
    if status >= 500 {
        tracing::warn!(%method, route, status, ms, "request");
    } else {
        tracing::debug!(%method, route, status, ms, "request");
    }
    response
}

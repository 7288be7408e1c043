//! Middleware in front of routes: requires a token with the right scope.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use crate::access::Scope;
use crate::app::App;

/// Header that names the tenant of a request.
pub(super) const TENANT: &str = "x-scope-orgid";

/// Admits only requests whose token has the scope, if the server has tokens.
pub(super) fn guard(router: Router<App>, app: &App, scope: Scope) -> Router<App> {
    let check = move |State(app): State<App>, mut request: Request, next: Next| async move {
        if let Some(tokens) = &app.options.tokens {
            match tokens.check(request.headers(), scope) {
                Err(error) => return error.into_response(),
                Ok(None) => {}
                Ok(Some(tenant)) => {
                    // Overrides the request's header: the token is for one tenant.
                    if let Ok(name) = HeaderValue::from_str(tenant.as_str()) {
                        request.headers_mut().insert(TENANT, name);
                    }
                }
            }
        }
        let response: Response = next.run(request).await;
        response
    };
    router.route_layer(middleware::from_fn_with_state(app.clone(), check))
}

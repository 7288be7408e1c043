//! What stands before routes: tokens with the right scope.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use crate::access::Scope;
use crate::app::App;

/// The name of a tenant, by which clients say whose profiles they mean.
pub(super) const TENANT: &str = "x-scope-orgid";

/// Lets only those pass whose token has a scope, if the server has tokens.
pub(super) fn guard(router: Router<App>, app: &App, scope: Scope) -> Router<App> {
    let check = move |State(app): State<App>, mut request: Request, next: Next| async move {
        if let Some(tokens) = &app.options.tokens {
            match tokens.check(request.headers(), scope) {
                Err(error) => return error.into_response(),
                Ok(None) => {}
                Ok(Some(tenant)) => {
                    // Whatever the request says: the token is for one tenant.
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

//! All routes, as the router has them: each refuses a page of another site. `routes.txt` lists them for the test in a browser (`web/test/store.mjs`).

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;

use crate::support::Server;
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use plumb_server::{FileReader, ServerOptions, ShownRecordings, recordings_router};
use tower::ServiceExt;

/// The listed routes, which a browser tries too.
const LISTED: &str = include_str!("../routes.txt");

/// The paths of a router: axum lists them nowhere but in its text for debugging.
fn paths(router: &Router) -> BTreeSet<String> {
    let text = format!("{router:?}");
    let quoted = text.split('"').skip(1).step_by(2);
    // The paths of axum's own routes begin with another letter, or have this name.
    quoted.filter(|path| path.starts_with('/') && !path.contains("__private__")).map(str::to_owned).collect()
}

/// A path of a route, without parameters.
fn example(path: &str) -> String {
    path.replace("{id}", "0").replace("{build_id}", "00")
}

fn is_read(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}

async fn answer(router: &Router, method: &Method, path: &str, site: Option<&str>) -> StatusCode {
    let mut request = Request::builder().method(method).uri(example(path)).header("Host", "127.0.0.1:4041");
    if let Some(site) = site {
        request = request.header("Sec-Fetch-Site", site).header("Sec-Fetch-Mode", "no-cors");
    }
    router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status()
}

/// Methods and paths: an answer to a method that a route does not have names those that it has.
async fn routes(router: &Router) -> Vec<(Method, String)> {
    let mut all = Vec::new();
    for path in paths(router) {
        let request = Request::builder().method("PROPFIND").uri(example(&path)).header("Host", "localhost");
        let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        for method in response.headers()["Allow"].to_str().unwrap().split(',') {
            all.push((method.parse().unwrap(), path.clone()));
        }
    }
    all
}

async fn lines(name: &str, router: &Router) -> Vec<String> {
    let routes = routes(router).await;
    for (method, path) in &routes {
        for site in ["cross-site", "same-site"] {
            assert_eq!(
                answer(router, method, path, Some(site)).await,
                StatusCode::FORBIDDEN,
                "{method} {path}"
            );
        }
    }
    assert!(routes.iter().any(|(method, _)| !is_read(method)), "{name} has routes that change something");
    // HEAD goes wherever GET does.
    let listed = routes.iter().filter(|(method, _)| method != Method::HEAD);
    listed.map(|(method, path)| format!("{name} {method} {path}")).collect()
}

#[tokio::test]
async fn every_route_refuses_pages_of_other_sites_and_is_listed() {
    let server = Server::new("routes", ServerOptions::default());
    let shown = ShownRecordings {
        recordings: Vec::new(),
        editor: String::new(),
        reader: FileReader::new(|_, _| Err("nothing is opened".into())),
    };
    let mut all = lines("store", server.router()).await;
    all.extend(lines("recordings", &recordings_router(shown)).await);
    let expected = all.join("\n") + "\n";
    assert!(
        LISTED == expected,
        "crates/server/tests/routes.txt has to list the routes, so that a browser tries them too; they are:\n{expected}"
    );
}

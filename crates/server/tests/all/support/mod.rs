//! A server in memory, and requests to it.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

pub mod live;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use http_body_util::BodyExt;
use plumb_server::ServerOptions;
use plumb_store::{Store, StoreOptions};
use serde_json::Value;
use tower::ServiceExt;

pub struct Server {
    router: Option<Router>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // A store's runtime can't be dropped inside another either.
        let router = self.router.take();
        _ = std::thread::spawn(move || drop(router)).join();
    }
}

impl Server {
    pub fn new(name: &str, options: ServerOptions) -> Self {
        let directory: PathBuf = [env!("CARGO_TARGET_TMPDIR"), name].iter().collect();
        _ = std::fs::remove_dir_all(&directory);
        // Recorded profiles must never become too old.
        let retention = Duration::from_secs(100 * 365 * 86_400);
        let options_of_store = StoreOptions { retention, ..StoreOptions::new(directory) };
        // The store has a runtime of its own, which can't be created inside another.
        let opened = std::thread::spawn(|| Store::open(options_of_store).unwrap());
        let store = Arc::new(opened.join().unwrap());
        Self { router: Some(plumb_server::router(store, options)) }
    }

    pub fn router(&self) -> &Router {
        self.router.as_ref().unwrap()
    }

    pub async fn send(&self, request: Request<Body>) -> Response {
        self.router.clone().unwrap().oneshot(request).await.unwrap()
    }

    pub async fn bytes(&self, request: Request<Body>) -> (StatusCode, Vec<u8>) {
        let response = self.send(request).await;
        let status = response.status();
        (status, response.into_body().collect().await.unwrap().to_bytes().to_vec())
    }

    pub async fn post(&self, path: &str, kind: &str, body: impl Into<Body>) -> (StatusCode, Vec<u8>) {
        let request = Request::post(path).header("Content-Type", kind).body(body.into()).unwrap();
        self.bytes(request).await
    }

    pub async fn push(&self, message: Vec<u8>) -> (StatusCode, Vec<u8>) {
        self.post("/push.v1.PusherService/Push", "application/proto", message).await
    }

    pub async fn query(&self, method: &str, question: &Value) -> (StatusCode, Value) {
        let path = format!("/querier.v1.QuerierService/{method}");
        let (status, body) = self.post(&path, "application/json", question.to_string()).await;
        (status, serde_json::from_slice(&body).unwrap())
    }

    pub async fn get(&self, path: &str) -> (StatusCode, Vec<u8>) {
        self.bytes(Request::get(path).body(Body::empty()).unwrap()).await
    }
}

/// A file of recorded answers.
pub fn golden(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

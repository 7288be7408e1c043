//! Cancellation of queries that nobody waits for: after the time limit, or when the client has closed the connection.
//!
//! The query in these tests never ends by itself; `/metrics` shows when it runs, and when it no longer does.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use http_body_util::BodyExt;
use plumb_store::{StoreOptions, Tenant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tower::ServiceExt;

use super::*;
use crate::error::{ApiError, ErrorCode};
use crate::options::QueryLimits;

/// Time limit for a state before the test fails; a passing test waits only as long as needed.
const PATIENCE: Duration = Duration::from_secs(300);

const RUNNING: &str = "plumb_queries_running";
const CANCELLED: &str = "plumb_queries_cancelled_total";

/// A server with a query that never ends by itself.
#[derive(Clone)]
struct Endless {
    app: App,
    router: Router,
    /// Number of these queries that were started.
    begun: Arc<AtomicUsize>,
    /// Set when the test fails, so that queries which weren't cancelled end.
    is_over: Arc<AtomicBool>,
}

impl Drop for Endless {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.is_over.store(true, Ordering::Relaxed);
        }
    }
}

impl Endless {
    async fn query(&self) -> Result<String, ApiError> {
        let (begun, is_over) = (self.begun.clone(), self.is_over.clone());
        let work = move |context: &crate::app::Context| {
            begun.fetch_add(1, Ordering::Relaxed);
            while !is_over.load(Ordering::Relaxed) {
                context.check()?;
                std::thread::yield_now();
            }
            Err(ApiError::new(ErrorCode::Internal, "the query was not cancelled"))
        };
        self.app.query(Tenant::default(), work).await
    }

    /// The value of a metric, as scraped.
    async fn metric(&self, name: &str) -> usize {
        let request = Request::get("/metrics").body(Body::empty()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).rsplit(' ').next().unwrap().parse().unwrap()
    }

    async fn wait_for(&self, name: &str, value: usize) {
        let begin = Instant::now();
        while self.metric(name).await != value {
            assert!(begin.elapsed() < PATIENCE, "{name} never became {value}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Runs a test on a server with this time limit for queries. The store has a runtime of its own, so it is opened and dropped outside of the test's.
fn with_endless(time: Duration, test: impl AsyncFnOnce(Endless)) {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(StoreOptions::new(directory.path())).unwrap());
    // One query at a time: one that went on would block all others.
    let query = QueryLimits { time, concurrent: 1, ..QueryLimits::default() };
    let app = App::new(store.clone(), ServerOptions { query, ..ServerOptions::default() });
    let endless =
        Endless { router: router_of(app.clone()), app, begun: Arc::default(), is_over: Arc::default() };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(test(endless));
    drop(runtime);
    drop(store);
}

#[test]
fn a_query_ends_when_its_time_has_passed() {
    with_endless(Duration::from_millis(20), async |endless| {
        // On a busy machine the time limit may pass before the query starts.
        for _ in 0..1000 {
            let error = endless.query().await.unwrap_err();
            assert_eq!(error.code, ErrorCode::DeadlineExceeded, "{error}");
            if endless.begun.load(Ordering::Relaxed) >= 2 {
                break;
            }
        }
        // The second query started, so the first had ended.
        let begun = endless.begun.load(Ordering::Relaxed);
        assert!(begun >= 2, "{begun} queries began");
        endless.wait_for(RUNNING, 0).await;
        assert!(endless.metric(CANCELLED).await >= begun);
    });
}

#[test]
fn a_query_ends_when_its_client_is_gone() {
    with_endless(PATIENCE, async |endless| {
        let asked = endless.clone();
        let route = get(async move || asked.query().await);
        let router = endless.router.clone().route("/endless", route);
        let listen = ListenOptions::new("127.0.0.1:0".parse().unwrap());
        let server = Server::listen(router, endless.app.metrics.clone(), listen, None).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let run = tokio::spawn(server.run(async { _ = stopped.await }));
        for number in 1..=2 {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            endless.wait_for(RUNNING, 1).await;
            drop(client);
            endless.wait_for(RUNNING, 0).await;
            assert_eq!(endless.metric(CANCELLED).await, number);
        }
        _ = stop.send(());
        run.await.unwrap();
    });
}

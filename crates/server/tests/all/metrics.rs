//! The server's own state: metrics, read by Prometheus' own parser, and readiness.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::Server;
use crate::support::live::{LiveServer, until};
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use plumb_fixtures::{Requirement, needs, skip};
use plumb_server::{ServerOptions, TenantLimits, WatchOptions, WebhookOptions};

/// The parser as a program; `None`, after saying why, if its modules can't be fetched.
fn parser() -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/prometheus");
    let fetched = Command::new("go").args(["mod", "download"]).current_dir(source).output().unwrap();
    if !fetched.status.success() {
        let why = String::from_utf8_lossy(&fetched.stderr).into_owned();
        skip(Requirement::Go, format_args!("the modules of Prometheus' parser can't be fetched: {why}"));
        return None;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prometheus-parser");
    let mut command = Command::new("go");
    command.args(["build", "-o"]).arg(&program).arg(".").env("GOFLAGS", "-buildvcs=false -mod=readonly");
    assert!(command.current_dir(source).status().unwrap().success(), "it builds");
    Some(program)
}

/// The output for these arguments and metrics: by a content type, their series.
fn parsed(program: &Path, arguments: &[&str], text: &[u8]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// Readers must still be served while nothing can be written.
#[tokio::test]
async fn a_server_that_can_not_write_is_ready_for_queries() {
    let server = Server::new("ready", ServerOptions::default());
    for path in ["/ready", "/ready/push"] {
        assert_eq!(server.get(path).await.0, 200);
    }
    let (status, _) = server.post("/ingest?name=api.cpu&sampleRate=100", "text/plain", "main;f 5\n").await;
    assert_eq!(status, 200);
    // No block can be written where the folder of blocks is a file.
    let blocks = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ready/blocks");
    _ = std::fs::remove_dir_all(&blocks);
    std::fs::write(&blocks, "").unwrap();
    server.post("/api/v1/admin/flush", "text/plain", "").await;
    let (status, body) = server.get("/ready").await;
    let body = String::from_utf8_lossy(&body).into_owned();
    assert!(status == 200 && body.starts_with("ready for queries; profiles can't be stored: "), "{body}");
    assert_eq!(server.get("/ready/push").await.0, 503);
    let (status, body) = server.get("/api/v1/services").await;
    assert_eq!((status.as_u16(), &*body), (200, &br#"["api"]"#[..]));
}

#[tokio::test]
async fn metrics_are_read_by_prometheus_in_either_format() {
    if !needs(Requirement::Go) {
        return;
    }
    let Some(program) = parser() else { return };
    let server = Server::new("metrics", ServerOptions::default());
    let (status, _) = server.post("/ingest?name=api.cpu&sampleRate=100", "text/plain", "main;f 5\n").await;
    assert_eq!(status, 200);
    // As Prometheus asks, as older scrapers do, and as a browser does.
    let open = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.4,*/*;q=0.1";
    for (accept, expected) in [
        (open, "application/openmetrics-text"),
        ("text/plain;version=0.0.4", "text/plain"),
        ("*/*", "text/plain"),
    ] {
        let request = Request::get("/metrics").header("Accept", accept).body(Body::empty()).unwrap();
        let response = server.send(request).await;
        let kind = response.headers()["Content-Type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with(expected), "{accept}: {kind}");
        let text = response.into_body().collect().await.unwrap().to_bytes().to_vec();
        let series = parsed(&program, &[&kind], &text).unwrap();
        for wanted in
            [r#"__name__="plumb_store_samples_total"} 2"#, r#"__name__="plumb_store_batches_total"} 1"#]
        {
            assert!(series.contains(wanted), "{kind}: no {wanted} in {series}");
        }
        // Cut anywhere, it is refused: a scrape that ended early isn't taken for a whole one.
        if expected != "text/plain" {
            let cut = text.len() - "# EOF\n".len();
            assert!(parsed(&program, &[&kind], &text[..cut]).unwrap_err().contains("EOF"));
        }
    }
}

/// The metrics of a listening server that has answered, refused and failed requests, and has a finding of each kind that alerts ask for: all series
/// that are asked for are among them.
fn busy_metrics(name: &str) -> Vec<u8> {
    let watch = WatchOptions { least_interval: Duration::from_millis(100), ..WatchOptions::default() };
    // A receiver that refuses all messages.
    let receiver = LiveServer::start(&format!("{name}-receiver"), ServerOptions::default());
    let webhook = Some(WebhookOptions::new(&format!("{}/none", receiver.url()), None, None).unwrap());
    let limits = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.limits"));
    std::fs::write(&limits, "slow rate=1\n").unwrap();
    let tenants = Some(TenantLimits::read(limits).unwrap());
    let options = ServerOptions { watch: Some(watch), webhook, tenants, ..ServerOptions::default() };
    let server = LiveServer::start(name, options);
    let own = "anonymous";
    server.push("slow", "shop", &"main;handle 3\n".repeat(100), 0);
    assert_eq!(server.post("slow", "/ingest?name=shop.cpu", "main;handle 3\n"), 429);
    server.deploy(own, "shop");
    assert_eq!(server.post(own, "/ingest", "main;f 5\n"), 400);
    server.json(own, "/api/v1/services");
    until("a change is found", || server.get(own, "/metrics").contains("kind=\"change\"").then_some(()));
    until("a message is refused", || {
        server.push(own, "shop", "main;handle;ship 3\n", 0);
        server.get(own, "/metrics").contains("outcome=\"failed\"").then_some(())
    });
    let blocks = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).join("blocks");
    _ = std::fs::remove_dir_all(&blocks);
    std::fs::write(&blocks, "").unwrap();
    server.post(own, "/api/v1/admin/flush", "");
    until("nothing can be stored", || (server.status("/ready/push") == 503).then_some(()));
    server.get_of_all("/metrics").into_bytes()
}

fn deployed(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

#[test]
fn alerts_ask_for_metrics_that_a_server_has() {
    if !needs(Requirement::Go) {
        return;
    }
    let Some(program) = parser() else { return };
    let metrics = busy_metrics("metrics-alerts");
    let rules = deployed("prometheus/plumb.rules.yaml");
    let alerts = parsed(&program, &["rules", rules.to_str().unwrap()], &metrics).unwrap();
    assert!(alerts.lines().any(|alert| alert == "PlumbCannotStore"), "{alerts}");
    // A rule on a metric, a route or a label that no server has is noticed.
    let wrong = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong.rules.yaml");
    let text = std::fs::read_to_string(rules).unwrap();
    for (right, other) in
        [("plumb_store_failed", "plumb_failed"), ("|/ingest|", "|/in|"), ("(job, instance, route)", "(path)")]
    {
        assert!(text.contains(right), "{right}");
        std::fs::write(&wrong, text.replace(right, other).replace("/push.v1.*", "/push.v2.*")).unwrap();
        let error = parsed(&program, &["rules", wrong.to_str().unwrap()], &metrics).unwrap_err();
        assert!(error.contains("nothing is selected"), "{other}: {error}");
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_a_server_has() {
    if !needs(Requirement::Go) {
        return;
    }
    let Some(program) = parser() else { return };
    let metrics = busy_metrics("metrics-dashboard");
    let text = std::fs::read(deployed("grafana/plumb-server.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let targets =
        dashboard["panels"].as_array().unwrap().iter().filter_map(|panel| panel["targets"].as_array());
    let expressions: Vec<&str> = targets.flatten().map(|target| target["expr"].as_str().unwrap()).collect();
    // As Grafana fills in its variables.
    let filled = expressions.join("\n").replace("$__rate_interval", "1m").replace("\"$job\"", "\"plumb\"");
    let filled = filled.replace("\"$instance\"", "\".*\"");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard.promql");
    std::fs::write(&file, &filled).unwrap();
    let asked = parsed(&program, &["expressions", file.to_str().unwrap()], &metrics).unwrap();
    assert_eq!((asked.trim_end(), filled.contains('$')), (filled.as_str(), false));
    // Whatever the server counts is shown.
    let series = parsed(&program, &["application/openmetrics-text"], &metrics).unwrap();
    let names = series.lines().filter_map(|line| line.split('"').nth(1));
    for name in names.filter(|name| !name.ends_with("_sum") && !name.ends_with("_count")) {
        let is_twice = name == "plumb_store_samples_total";
        assert!(is_twice || filled.contains(name), "{name} is in no panel");
    }
}

/// A tenant's findings have names of its services: a request for one tenant gets no others.
#[test]
fn findings_are_gauges_of_their_tenant() {
    let watch = WatchOptions { least_interval: Duration::from_millis(100), ..WatchOptions::default() };
    let server = LiveServer::start(
        "metrics-findings",
        ServerOptions { watch: Some(watch), ..ServerOptions::default() },
    );
    for (tenant, function) in [("one", "alpha"), ("two", "omega")] {
        server.push(tenant, "shop", &format!("main;{function} 30\nmain;other 10\n"), 60);
    }
    for (tenant, function, other) in [("one", "alpha", "omega"), ("two", "omega", "alpha")] {
        let labels =
            format!(r#"{{tenant="{tenant}",service="shop",kind="function",subject="{function}"}} 0.75"#);
        let wanted = format!("plumb_finding{labels}");
        let text = until("the finding is a gauge", || {
            Some(server.get(tenant, "/metrics")).filter(|text| text.contains(&wanted))
        });
        assert!(!text.contains(other), "{text}");
        let seconds = text.lines().find_map(|line| line.strip_prefix("plumb_findings_seconds_total "));
        assert!(seconds.is_some_and(|seconds| seconds.parse::<f64>().unwrap() > 0.0), "{text}");
    }
    let all = server.get_of_all("/metrics");
    assert!(all.contains("alpha") && all.contains("omega"), "{all}");
}

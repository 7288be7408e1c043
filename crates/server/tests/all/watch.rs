//! Findings that a listening server computes before somebody asks.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use crate::support::live::{LiveServer, until};
use plumb_server::{ServerOptions, WatchOptions};
use serde_json::Value;

const OWN: &str = "anonymous";
/// As the page and `plumb query findings` ask.
const HOUR: &str = "/api/v1/findings?from=now-1h&until=now&query=%7B%7D";

/// A server that keeps all findings and computes them again after `least_interval` milliseconds, whatever that costs.
fn server(name: &str, least_interval: u64) -> LiveServer {
    let watch = WatchOptions {
        least_interval: Duration::from_millis(least_interval),
        cpu_share: 1000.0,
        kept_from: Duration::ZERO,
    };
    LiveServer::start(name, ServerOptions { watch: Some(watch), ..ServerOptions::default() })
}

fn titles(found: &Value) -> Vec<&str> {
    found["findings"].as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap()).collect()
}

/// An answer that was kept: another request gets one of the same time.
fn kept(server: &LiveServer, path: &str) -> Value {
    until("findings are kept", || {
        let first = server.json(OWN, path);
        std::thread::sleep(Duration::from_millis(5));
        let again = server.json(OWN, path);
        (first["until_ms"] == again["until_ms"]).then_some(again)
    })
}

#[test]
fn kept_findings_are_those_of_the_range_that_they_name() {
    let server = server("watch-same", 3_600_000);
    server.push(OWN, "shop", "main;serve;price_basket 700\nmain;serve 300\n", 600);
    server.push(OWN, "mail", "main;send 40\n", 7200);
    for (path, length, services) in
        [(HOUR, 3_600_000, 1), ("/api/v1/findings?from=now-24h&until=now", 86_400_000, 2)]
    {
        let kept = kept(&server, path);
        let [from, until] = ["from_ms", "until_ms"].map(|name| kept[name].as_i64().unwrap());
        assert_eq!((until - from, kept["services"].as_u64()), (length, Some(services)), "{kept}");
        assert!(titles(&kept)[0].starts_with("price_basket: 70%"), "{kept}");
        // Another number of services than the default is computed.
        let computed = server.json(OWN, &format!("/api/v1/findings?from={from}&until={until}&services=19"));
        assert_eq!(computed, kept);
    }
    // With the server's profile type or threshold named, the kept answer is given; with others it is not.
    let until_ms = |more: &str| server.json(OWN, &format!("{HOUR}{more}"))["until_ms"].clone();
    let of_kept = until_ms("");
    assert_eq!(until_ms("&type=process_cpu:cpu:nanoseconds:cpu:nanoseconds&threshold=10"), of_kept);
    assert_ne!(until_ms("&threshold=9"), of_kept);
    let selected = server.json(OWN, "/api/v1/findings?query=%7Bservice_name%3D%22mail%22%7D&from=now-3h");
    assert_eq!(titles(&selected), ["send: 100% of its CPU time"]);
}

#[test]
fn new_profiles_are_in_the_answer_after_the_interval() {
    let server = server("watch-new", 200);
    server.push(OWN, "shop", "main;serve 300\n", 600);
    assert_eq!(titles(&kept(&server, HOUR)), ["serve: 100% of its CPU time"]);
    server.push(OWN, "shop", "main;price_basket 700\n", 300);
    let found = until("the new function is a finding", || {
        let found = server.json(OWN, HOUR);
        titles(&found)[0].starts_with("price_basket: 70%").then_some(found)
    });
    assert_eq!(titles(&found).len(), 2, "{found}");
    // Without new profiles nothing is computed.
    let again = kept(&server, HOUR);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(server.json(OWN, HOUR)["until_ms"], again["until_ms"]);
}

#[test]
fn tenants_are_apart() {
    let server = server("watch-tenants", 200);
    for (tenant, function) in [("one", "first"), ("two", "second")] {
        server.push(tenant, "shop", &format!("main;{function} 50\n"), 60);
    }
    for (tenant, title) in [("one", "first: 100% of its CPU time"), ("two", "second: 100% of its CPU time")] {
        until("findings are kept", || {
            let [a, b] = [(); 2].map(|()| server.json(tenant, HOUR));
            assert_eq!(titles(&b), [title]);
            (a["until_ms"] == b["until_ms"]).then_some(())
        });
    }
    assert_eq!(server.json("three", HOUR)["findings"].as_array().map(Vec::len), Some(0));
}

/// Everybody gets the newest findings if computing them takes no time.
#[test]
fn findings_that_take_no_time_are_computed_on_request() {
    let watch = WatchOptions { kept_from: Duration::from_secs(60), ..WatchOptions::default() };
    let server =
        LiveServer::start("watch-fast", ServerOptions { watch: Some(watch), ..ServerOptions::default() });
    for (count, function) in ["first", "second", "third"].iter().enumerate() {
        server.push(OWN, function, &format!("main;{function} 50\n"), 60);
        assert_eq!(server.json(OWN, HOUR)["services"], count + 1);
    }
}

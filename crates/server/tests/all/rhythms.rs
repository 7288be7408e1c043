//! Findings on what comes and goes: jobs that run at regular intervals, and waits for locks.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::support::Server;
use plumb_formats::otlp::{BURST, BURST_LENGTH, Figure, ResourceSet, encode_by_resource};
use plumb_server::ServerOptions;
use serde_json::{Value, json};

const TIME: i64 = 1_700_000_000;
/// A quarter of an hour.
const WINDOWS: i64 = 60;
const SECOND: u64 = 1_000_000_000;

fn noise(window: i64, salt: i64) -> i64 {
    (window * 7919 + salt * 104_729) % 23
}

/// Sends the windows of a service that serves requests, in some of which a job runs as well.
async fn windows(server: &Server, service: &str, job: impl Fn(i64) -> i64) {
    for window in 0..WINDOWS {
        let (serve, log) = (300 + noise(window, 1), 100 + noise(window, 2));
        let mut body = format!("main;serve {serve}\nmain;serve;log {log}\n");
        if job(window) > 0 {
            body.push_str(&format!("main;timer;rebuild_index {}\n", job(window)));
        }
        let path = format!("/ingest?name={service}.cpu&from={}&sampleRate=100", TIME + 15 * window);
        assert_eq!(server.post(&path, "text/plain", body).await.0, 200);
    }
}

/// Sends values of a service `shop`: name, stack from the innermost function, value, and time in nanoseconds after [`TIME`].
async fn figures(server: &Server, figures: &[(&'static str, Vec<&'static str>, u64, u64)]) {
    let mut profile = plumb_profile::Profile::default();
    let (name, unit) = (profile.strings.add("cpu-clock"), profile.strings.add("ns"));
    profile.events.push(plumb_profile::Event { name, unit });
    let figure = |(name, stack, value, time): &(&'static str, Vec<&'static str>, u64, u64)| Figure {
        resource: 0,
        name,
        unit: "nanoseconds",
        stack: stack.iter().map(|&frame| frame.into()).collect(),
        value: *value,
        time_unix_ns: Some(TIME as u64 * SECOND + time),
    };
    let set = ResourceSet {
        resources: vec![vec![("service.name".to_owned(), "shop".to_owned())]],
        figures: figures.iter().map(figure).collect(),
        time_unix_ns: TIME as u64 * SECOND,
        ..ResourceSet::default()
    };
    let body = encode_by_resource(&profile, &set).bytes;
    let (status, body) = server.post("/v1development/profiles", "application/x-protobuf", body).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
}

/// The findings of these kinds, in their order.
async fn found(server: &Server, kinds: &[&str]) -> Vec<Value> {
    let path = format!("/api/v1/findings?from={}&until={}", TIME - 1, TIME + 15 * WINDOWS);
    let (status, body) = server.get(&path).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    let found: Value = serde_json::from_slice(&body).unwrap();
    let all = found["findings"].as_array().unwrap();
    all.iter().filter(|one| kinds.contains(&one["kind"].as_str().unwrap())).cloned().collect()
}

#[tokio::test]
async fn a_job_that_runs_each_minute_is_named_and_random_ones_are_not() {
    let server = Server::new("rhythms-windows", ServerOptions::default());
    windows(&server, "shop", |window| if window % 4 == 1 { 400 } else { 0 }).await;
    windows(&server, "steady", |_| 0).await;
    windows(&server, "random", |window| if noise(window * window, 5) < 6 { 400 } else { 0 }).await;
    windows(&server, "once", |window| if (20..26).contains(&window) { 400 } else { 0 }).await;
    // Less than what the load varies by.
    windows(&server, "large", |window| if window % 4 == 3 { 60 } else { 0 }).await;
    let found = found(&server, &["rhythm"]).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((&found[0]["service"], &found[1]["service"]), (&json!("shop"), &json!("large")));
    assert!(
        found[1]["title"].as_str().unwrap().starts_with("rebuild_index runs every 60.0 s: 3"),
        "{found:?}"
    );
    let title = found[0]["title"].as_str().unwrap();
    assert!(title.starts_with("rebuild_index runs every 60.0 s: 19%"), "{title}");
    assert_eq!(
        (&found[0]["evidence"]["function"], &found[0]["period_ns"]),
        (&json!("rebuild_index"), &json!(60 * SECOND))
    );
    assert!(found[0]["details"].as_array().unwrap().contains(&json!("Called by timer.")), "{found:?}");
}

/// Each burst of 800 ms in the 10 seconds of which a profile has the whole takes 0.8 s of CPU time beside 0.2 s for requests.
#[tokio::test]
async fn bursts_within_profiles_have_a_rhythm_of_their_own() {
    let server = Server::new("rhythms-bursts", ServerOptions::default());
    windows(&server, "shop", |_| 100).await;
    let mut sent = Vec::new();
    for burst in 0..90 {
        let time = burst * 10 * SECOND + noise(burst as i64, 3) as u64 * 10_000_000;
        sent.push((BURST, vec!["serve", "main"], SECOND / 5, time));
        sent.push((BURST, vec!["msort", "rebuild_index", "timer", "main"], SECOND * 4 / 5, time));
        sent.push((BURST_LENGTH, vec!["burst"], SECOND * 4 / 5, time));
    }
    figures(&server, &sent).await;
    let found = found(&server, &["rhythm"]).await;
    assert_eq!(found.len(), 1, "{found:?}");
    let title = found[0]["title"].as_str().unwrap();
    assert!(title.starts_with("msort runs every 10") && title.contains(" s for 800 ms: "), "{title}");
    assert!(
        found[0]["details"].as_array().unwrap().contains(&json!("Called by rebuild_index.")),
        "{found:?}"
    );
}

#[tokio::test]
async fn locks_are_named_with_their_rhythm_and_idle_threads_are_not() {
    let server = Server::new("rhythms-locks", ServerOptions::default());
    windows(&server, "shop", |_| 0).await;
    let mut sent = Vec::new();
    for window in 0..WINDOWS as u64 {
        let time = window * 15 * SECOND;
        sent.push(("off_cpu", vec!["ep_poll", "epoll_wait", "loop", "main"], 60 * SECOND, time));
        sent.push(("off_cpu", vec!["futex_wait", "pthread_cond_wait", "pop", "worker"], 90 * SECOND, time));
        let waits = if window % 4 == 2 { 40 * SECOND } else { SECOND / 100 };
        let lock = vec!["futex_wait", "__lll_lock_wait", "pthread_mutex_lock", "get_item", "serve", "main"];
        sent.push(("off_cpu", lock, waits, time));
    }
    figures(&server, &sent).await;
    let found = found(&server, &["rhythm", "wait"]).await;
    let titles: Vec<&str> = found.iter().map(|one| one["title"].as_str().unwrap()).collect();
    let [rhythm, wait] = titles[..] else { panic!("{titles:?}") };
    assert!(
        rhythm.starts_with("every 60.0 s its threads wait for a lock in get_item, 40.0 s in all"),
        "{rhythm}"
    );
    assert!(wait.starts_with("0.7 threads at any time wait for a lock in get_item"), "{wait}");
}

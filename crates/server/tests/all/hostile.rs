//! Requests that are small on the wire and large in memory: each is refused with the limit and what to do, and changes no answer about others.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::support::Server;
use axum::http::StatusCode;
use plumb_formats::pprof::message::{Label, Line, Location, PprofFunction, PprofSample, Profile, ValueType};
use plumb_server::{IngestLimits, MemoryLimits, ServerOptions};
use prost::Message;
use serde_json::json;

/// A server that refuses what a real one does with a hundredth of the bytes.
fn server(name: &str) -> Server {
    let memory = MemoryLimits { decoded: 1 << 20, batch: 1 << 20, text: 1000, ..MemoryLimits::default() };
    let ingest = IngestLimits { memory, ..IngestLimits::default() };
    Server::new(name, ServerOptions { ingest, ..ServerOptions::default() })
}

/// A profile with one sample of `main`, and more strings.
fn profile(more: impl IntoIterator<Item = String>) -> Profile {
    let texts = ["", "cpu", "nanoseconds", "main"].map(str::to_owned);
    let function = PprofFunction { id: 1, name: 3, ..PprofFunction::default() };
    Profile {
        sample_type: vec![ValueType { kind: 1, unit: 2 }],
        sample: vec![PprofSample { location_id: vec![1], value: vec![7], label: Vec::new() }],
        location: vec![Location {
            id: 1,
            line: vec![Line { function_id: 1, line: 1 }],
            ..Location::default()
        }],
        function: vec![function],
        string_table: texts.into_iter().chain(more).collect(),
        ..Profile::default()
    }
}

async fn ingest(server: &Server, format: &str, body: Vec<u8>) -> (StatusCode, String) {
    let path = format!("/ingest?name=hostile.cpu&format={format}");
    let (status, body) = server.post(&path, "application/octet-stream", body).await;
    (status, String::from_utf8(body).unwrap())
}

async fn refused(server: &Server, what: &str, format: &str, body: Vec<u8>, words: &[&str]) {
    let (status, message) = ingest(server, format, body).await;
    assert!(status.is_client_error(), "{what}: {status} {message}");
    assert!(words.iter().all(|word| message.contains(word)), "{what}: {message}");
}

#[tokio::test]
async fn what_takes_much_memory_is_refused_by_name_and_changes_nothing() {
    let server = server("hostile");
    assert_eq!(server.post("/ingest?name=control.cpu", "text/plain", "main;f 5\n").await.0, 200);
    let memory = ["of memory once decoded, the limit: send them in several requests"];

    let mut many = profile([]);
    many.location.extend((2..10_000).map(|id| Location { id, ..Location::default() }));
    refused(&server, "locations", "pprof", many.encode_to_vec(), &memory).await;

    let mut inlined = profile([]);
    inlined.location[0].line = vec![Line::default(); 600_000];
    refused(&server, "lines of a location", "pprof", inlined.encode_to_vec(), &memory).await;

    // Twenty labels of 900 bytes in each of a hundred series, which differ in another.
    let mut series = profile((0..20).map(|n| format!("key{n}")).chain(["x".repeat(900)]));
    let long: Vec<Label> = (4..24).map(|key| Label { key, text: 24, number: 0 }).collect();
    series.sample.clear();
    for number in 0..100 {
        series.string_table.push(format!("value{number}"));
        let own = Label { key: 3, text: series.string_table.len() as i64 - 1, number: 0 };
        let label = long.iter().copied().chain([own]).collect();
        series.sample.push(PprofSample { location_id: vec![1], value: vec![1], label });
    }
    refused(&server, "series of long labels", "pprof", series.encode_to_vec(), &memory).await;

    let mut named = profile(["n".repeat(1001)]);
    named.function[0].name = 4;
    let words = ["has 1001 bytes; limit 1000: shorten it"];
    refused(&server, "a long name", "pprof", named.encode_to_vec(), &words).await;
    refused(&server, "a long name", "folded", format!("{} 1", "n".repeat(1001)).into(), &words).await;

    let mut types = profile([]);
    types.sample_type = vec![ValueType::default(); 101];
    refused(&server, "sample types", "pprof", types.encode_to_vec(), &["more than 100 sample types"]).await;

    let mut values = profile([]);
    values.sample[0].value = vec![1; 2 << 20];
    refused(&server, "a sample", "pprof", values.encode_to_vec(), &["a sample takes", "limit 1048576"]).await;

    let stacks: String = (0..20_000).map(|n| format!("main;function_{n} 1\n")).collect();
    refused(&server, "folded stacks", "folded", stacks.into_bytes(), &memory).await;
    let frames: Vec<_> = (0..10_000).map(|n| json!({"name": format!("f{n}")})).collect();
    let speedscope = json!({"shared": {"frames": frames}, "profiles": []}).to_string();
    refused(&server, "speedscope", "speedscope", speedscope.into_bytes(), &memory).await;

    let empty_series = b"\x0a\x00".repeat(20_000);
    let (status, body) = server.push(empty_series.clone()).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{}", String::from_utf8_lossy(&body));
    let (status, body) = server.post("/v1development/profiles", "application/x-protobuf", empty_series).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{}", String::from_utf8_lossy(&body));

    assert_eq!(
        ingest(&server, "pprof", profile([]).encode_to_vec()).await.0,
        200,
        "a profile without malice"
    );
    let (status, body) = server.get("/api/v1/services").await;
    assert_eq!((status.as_u16(), &*body), (200, &br#"["control","hostile.cpu"]"#[..]));
}

/// A question that names a million labels.
#[tokio::test]
async fn questions_are_small() {
    let server = server("hostile-questions");
    let path = "/querier.v1.QuerierService/Series";
    let (status, body) = server.post(path, "application/proto", b"\x12\x00".repeat(1 << 20)).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{}", String::from_utf8_lossy(&body));
}

/// Bodies that are in memory together are bounded: one more is to be sent again.
#[tokio::test]
async fn what_arrives_is_bounded_together() {
    let memory = MemoryLimits { in_flight: 4096, ..MemoryLimits::default() };
    let ingest = IngestLimits { memory, ..IngestLimits::default() };
    let server = Server::new("hostile-bodies", ServerOptions { ingest, ..ServerOptions::default() });
    let path = "/ingest?name=api.cpu";
    let (status, body) = server.post(path, "text/plain", "main;f 5\n".repeat(1000)).await;
    let body = String::from_utf8(body).unwrap();
    assert!(
        status == StatusCode::SERVICE_UNAVAILABLE && body.contains("send this one again later"),
        "{body}"
    );
    assert_eq!(server.post(path, "text/plain", "main;f 5\n").await.0, 200, "the room is given back");
}

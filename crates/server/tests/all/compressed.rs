//! Answers are compressed as the client's `Accept-Encoding` allows, with the same content.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fmt::Write;
use std::io::Read;

use crate::support::Server;
use axum::body::Body;
use axum::http::{Request, header};
use http_body_util::BodyExt;
use plumb_server::ServerOptions;

const TIME: i64 = 1_700_000_000;

/// Headers of real clients: Firefox 126 and Chrome 123 and later, Go's net/http, curl --compressed of Debian 13, plain curl, and one that wants none.
const CLIENTS: [(&str, Option<&str>); 6] = [
    ("gzip, deflate, br, zstd", Some("zstd")),
    ("gzip", Some("gzip")),
    ("deflate, gzip, br, zstd", Some("zstd")),
    ("", None),
    ("identity", None),
    ("gzip;q=0, zstd;q=0, *;q=0", None),
];

async fn ask(server: &Server, path: &str, accept: &str) -> (Option<String>, Vec<u8>, String) {
    let mut request = Request::get(path);
    if !accept.is_empty() {
        request = request.header(header::ACCEPT_ENCODING, accept);
    }
    let response = server.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(response.status(), 200, "{path}");
    let text = |name| response.headers().get(name).map(|one| one.to_str().unwrap().to_owned());
    let (encoding, vary) = (text(header::CONTENT_ENCODING), text(header::VARY).unwrap_or_default());
    (encoding, response.into_body().collect().await.unwrap().to_bytes().to_vec(), vary)
}

fn unpacked(encoding: Option<&str>, body: &[u8]) -> Vec<u8> {
    match encoding {
        None => body.to_vec(),
        Some("gzip") => {
            let mut bytes = Vec::new();
            flate2::read::GzDecoder::new(body).read_to_end(&mut bytes).unwrap();
            bytes
        }
        Some("zstd") => zstd::decode_all(body).unwrap(),
        Some(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn an_answer_is_the_same_in_every_encoding() {
    let server = Server::new("compressed", ServerOptions::default());
    let mut stacks = String::new();
    for number in 0..500 {
        writeln!(stacks, "main;worker::run;task_{number};compute {}", number + 1).unwrap();
    }
    let (status, _) = server.post(&format!("/ingest?name=api.cpu&from={TIME}"), "text/plain", stacks).await;
    assert_eq!(status, 200);
    let range = format!("from={}&until={}", TIME - 60, TIME + 60);
    let export = format!("/api/v1/export?{range}&format=");
    let paths = [
        format!("/api/v1/flame?{range}"),
        format!("/api/v1/functions?{range}"),
        format!("/pyroscope/render?query=process_cpu:cpu:nanoseconds:cpu:nanoseconds%7B%7D&{range}"),
        format!("{export}folded"),
        format!("{export}speedscope"),
        format!("{export}pprof"),
        "/page.css".to_owned(),
        "/page.js".to_owned(),
        "/api/v1/openapi.json".to_owned(),
    ];
    for path in &paths {
        let (encoding, plain, _) = ask(&server, path, "").await;
        assert_eq!(encoding, None, "{path}");
        for (accept, wanted) in CLIENTS {
            let (encoding, body, vary) = ask(&server, path, accept).await;
            assert_eq!(encoding.as_deref(), wanted, "{path} for {accept:?}");
            assert!(unpacked(wanted, &body) == plain, "{path} for {accept:?}");
            assert!(wanted.is_none() || body.len() < plain.len(), "{path} for {accept:?}");
            // A cache on the way has to distinguish them.
            assert!(vary.contains("accept-encoding"), "{path} for {accept:?}: {vary:?}");
        }
    }
    // Compressed formats and short answers stay as they are.
    for path in [format!("{export}pprof.gz"), format!("{export}plumb"), "/ready".to_owned()] {
        let (encoding, body, _) = ask(&server, &path, CLIENTS[0].0).await;
        assert!(encoding.is_none() && !body.is_empty(), "{path}: {encoding:?}");
    }
    // Requests of Grafana and of Go's client: in Connect's protocol the encoding is HTTP's.
    let question = format!(
        r#"{{"profileTypeID":"process_cpu:cpu:nanoseconds:cpu:nanoseconds","labelSelector":"{{}}","start":{}000,"end":{}000}}"#,
        TIME - 60,
        TIME + 60
    );
    let request = Request::post("/querier.v1.QuerierService/SelectMergeStacktraces")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT_ENCODING, "gzip");
    let response = server.send(request.body(Body::from(question)).unwrap()).await;
    assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let answer: serde_json::Value = serde_json::from_slice(&unpacked(Some("gzip"), &body)).unwrap();
    assert!(answer["flamegraph"]["names"].as_array().unwrap().len() > 500);
}

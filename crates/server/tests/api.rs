//! plumb's own API: what tables say of stacks that are known, and that every path of the description answers.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod support;

use plumb_server::ServerOptions;
use serde_json::{Value, json};
use support::Server;

const TIME: i64 = 1_700_000_000;

/// Ten samples of 10 ms: `f` calls itself, and `g` is called by both functions.
async fn server(name: &str) -> Server {
    let server = Server::new(name, ServerOptions::default());
    for (service, stacks) in [("api", "main;f;f;g 4\nmain;f 1\nmain;g 5\n"), ("web", "main;h 7\n")] {
        let path = format!("/ingest?name={service}.cpu&from={TIME}&sampleRate=100");
        let (status, _) = server.post(&path, "text/plain", stacks).await;
        assert_eq!(status, 200);
    }
    server
}

async fn get(server: &Server, path: &str, parameters: &str) -> Value {
    let path = format!("/api/v1/{path}?from={}&until={}&{parameters}", TIME - 60, TIME + 60);
    let (status, body) = server.get(&path).await;
    assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

/// A selector of one service, as it is written in a path.
const API: &str = "query=%7Bservice_name%3D%22api%22%7D";

#[tokio::test]
async fn tables_are_exact() {
    let server = server("api-tables").await;
    let ms = |samples: i64| samples * 10_000_000;
    let table = get(&server, "functions", API).await;
    let row = |function: &str, own: i64, total: i64| json!({"function": function, "self": ms(own), "total": ms(total)});
    let rows = json!([row("g", 9, 9), row("f", 1, 5), row("main", 0, 10)]);
    assert_eq!(table, json!({"total": ms(10), "functions": 3, "rows": rows}));
    let by_total = get(&server, "functions", &format!("{API}&order=total&limit=1")).await;
    assert_eq!(by_total["rows"], json!([row("main", 0, 10)]));
    let g = get(&server, "function", &format!("{API}&name=g")).await;
    let call = |function: &str, total: i64| json!({"function": function, "total": ms(total)});
    assert_eq!(g["callers"], json!([call("main", 5), call("f", 4)]));
    let f = get(&server, "function", &format!("{API}&name=f")).await;
    assert_eq!((&f["total"], &f["callees"]), (&json!(ms(5)), &json!([call("f", 4)])));
    let (status, _) = server.get(&format!("/api/v1/function?name=nobody&from={TIME}&until={TIME}")).await;
    assert_eq!(status, 404);
    assert_eq!(get(&server, "services", "").await, json!(["api", "web"]));
    assert_eq!(get(&server, "labels", "name=service_name").await, json!(["api", "web"]));
    let series = get(&server, "series", "by=service_name&step=3600").await;
    let values: Vec<(&str, f64)> = series
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["labels"][0]["value"].as_str().unwrap(), one["points"][0]["value"].as_f64().unwrap()))
        .collect();
    assert_eq!(values, [("api", 1e8), ("web", 7e7)]);
}

#[tokio::test]
async fn what_is_exported_has_the_same_sum() {
    let server = server("api-export").await;
    let range = format!("from={}&until={}&{API}", TIME - 60, TIME + 60);
    for format in ["pprof", "pprof.gz", "speedscope", "firefox"] {
        let (status, body) = server.get(&format!("/api/v1/export?{range}&format={format}")).await;
        assert_eq!(status, 200, "{format}: {}", String::from_utf8_lossy(&body));
        let profile = plumb_formats::foreign::read(&body).unwrap();
        let sum: u64 = profile.samples.iter().map(|sample| sample.weight).sum();
        assert_eq!(sum, 100_000_000, "{format}");
    }
    for format in ["callgrind", "otlp", "folded", "csv", "trace", "plumb"] {
        let (status, body) = server.get(&format!("/api/v1/export?{range}&format={format}")).await;
        assert!(status == 200 && !body.is_empty(), "{format}");
    }
    let (status, _) = server.get(&format!("/api/v1/export?{range}&format=docx")).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn every_path_of_the_description_answers_and_refuses_as_it_says() {
    let server = server("api-description").await;
    let (status, body) = server.get("/api/v1/openapi.json").await;
    assert_eq!(status, 200);
    let description: Value = serde_json::from_slice(&body).unwrap();
    // Files with symbols are no queries: symbols.rs has them.
    let queries = description["paths"].as_object().unwrap().iter();
    for (path, methods) in queries.filter(|(path, _)| !path.starts_with("/api/v1/symbols/")) {
        let parameters = methods["get"]["parameters"].as_array().unwrap();
        let has = |name: &str| parameters.iter().any(|parameter| parameter["name"] == name);
        let times = if has("left_from") { ["left_from", "right_from"] } else { ["from", "from"] };
        let name = if parameters.iter().any(|one| one["required"] == true) { "&name=g" } else { "" };
        let good = format!("{path}?{}={}&{}={}{name}", times[0], TIME - 1, times[1], TIME - 1);
        let (status, body) = server.get(&good).await;
        assert_eq!(status, 200, "{good}: {}", String::from_utf8_lossy(&body));
        let bad = format!("{path}?{}=yesterday{name}", times[0]);
        let (status, body) = server.get(&bad).await;
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status.as_u16(), &body["code"]), (400, &json!("invalid_argument")), "{bad}");
        if has("type") {
            let (status, _) = server.get(&format!("{good}&type=cpu")).await;
            assert_eq!(status, 400, "{path}");
        }
    }
}

#[tokio::test]
async fn a_server_without_tokens_answers_to_names_of_this_machine_alone() {
    let server = Server::new("api-host", ServerOptions::default());
    for (host, wanted) in
        [("localhost:4041", 200), ("127.0.0.1:4041", 200), ("[::1]:4041", 200), ("evil.example:4041", 403)]
    {
        for path in ["/", "/api/v1/services", "/ready"] {
            let request = axum::http::Request::get(path).header("Host", host);
            let (status, body) = server.bytes(request.body(axum::body::Body::empty()).unwrap()).await;
            assert_eq!(status.as_u16(), wanted, "{host}{path}: {}", String::from_utf8_lossy(&body));
        }
    }
}

//! Pyroscope's answers to recorded requests, compared with plumb's: equal except for the order of siblings.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::Read;
use std::time::Duration;

use crate::support::{Server, golden};
use plumb_server::{IngestLimits, QueryLimits, ServerOptions};
use serde_json::{Value, json};

/// Time of the newest profile in Pyroscope.
const NEWEST: u64 = 1_795_250_692_000;

/// A server with the same profiles as Pyroscope had.
async fn server(name: &str, query: QueryLimits) -> Server {
    let ingest = IngestLimits { newest: None, ..IngestLimits::default() };
    let server = Server::new(name, ServerOptions { ingest, query, ..ServerOptions::default() });
    let requests = zstd::decode_all(&*golden("requests.zst")).unwrap();
    let mut rest = &requests[..];
    // Concatenated messages are one message with all their lists.
    let mut all = later();
    while let Some((length, after)) = rest.split_first_chunk() {
        let (request, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        all.extend_from_slice(request);
        rest = after;
    }
    let (status, body) = server.push(all).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    server
}

/// A profile of the newest time, as protocol buffers.
fn later() -> Vec<u8> {
    fn number(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value > 127 {
            bytes.push(value as u8 & 127 | 128);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }
    fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
        [&[tag << 3 | 2], &number(bytes.len() as u64)[..], bytes].concat()
    }
    fn varint(tag: u8, value: u64) -> Vec<u8> {
        [vec![tag << 3], number(value)].concat()
    }
    let kind = [varint(1, 1), varint(2, 2)].concat();
    let strings = ["", "cpu", "nanoseconds", "main"].map(|text| field(6, text.as_bytes()));
    let profile = [
        field(1, &kind),
        field(2, &[field(1, &[1]), field(2, &[7])].concat()),
        field(4, &[varint(1, 1), field(4, &varint(1, 1))].concat()),
        field(5, &[varint(1, 1), varint(2, 3)].concat()),
        strings.concat(),
        varint(9, NEWEST * 1_000_000),
        field(11, &kind),
    ];
    let label =
        |name: &str, value: &str| field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat());
    let labels = [label("__name__", "process_cpu"), label("service_name", "auth")].concat();
    let series = [labels, field(2, &field(1, &profile.concat()))].concat();
    field(1, &series)
}

fn recorded(name: &str) -> Value {
    let mut bytes = golden(name);
    if name.ends_with(".gz") {
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&*bytes).read_to_end(&mut unpacked).unwrap();
        bytes = unpacked;
    }
    serde_json::from_slice(&bytes).unwrap()
}

/// Asserts that two answers are equal; numbers by value.
fn assert_same(name: &str, path: &str, found: &Value, wanted: &Value) {
    match (found, wanted) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = |object: &serde_json::Map<String, Value>| {
                let mut keys: Vec<String> = object.keys().cloned().collect();
                keys.sort();
                keys
            };
            assert_eq!(keys(one), keys(other), "{name}: {path}");
            one.iter()
                .for_each(|(key, value)| assert_same(name, &format!("{path}.{key}"), value, &other[key]));
        }
        (Value::Array(one), Value::Array(other)) => {
            assert_eq!(one.len(), other.len(), "{name}: {path}");
            let pairs = one.iter().zip(other).enumerate();
            pairs.for_each(|(at, (one, other))| assert_same(name, &format!("{path}[{at}]"), one, other));
        }
        (Value::Number(one), Value::Number(other)) => {
            assert_eq!(one.as_f64(), other.as_f64(), "{name}: {path}");
        }
        _ => assert_eq!(found, wanted, "{name}: {path}"),
    }
}

fn integer(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

/// The boxes of a flame graph in a canonical order: names of the callers and the function, and the values.
fn boxes(graph: &Value, sides: usize) -> Vec<(Vec<String>, Vec<i64>)> {
    let name = |place: i64| graph["names"][place as usize].as_str().unwrap().to_owned();
    let mut boxes = Vec::new();
    // Offset and end on the last non-empty side, with the path.
    let mut above: Vec<(Vec<i64>, Vec<i64>, Vec<String>)> = Vec::new();
    for level in graph["levels"].as_array().unwrap() {
        let values = level.get("values").unwrap_or(level).as_array().unwrap();
        let mut row = Vec::new();
        let mut at = vec![0; sides];
        for one in values.chunks(3 * sides + 1) {
            let one: Vec<i64> = one.iter().map(integer).collect();
            let starts: Vec<i64> = (0..sides).map(|side| at[side] + one[3 * side]).collect();
            let totals: Vec<i64> = (0..sides).map(|side| one[3 * side + 1]).collect();
            let ends: Vec<i64> = (0..sides).map(|side| starts[side] + totals[side]).collect();
            at.clone_from(&ends);
            let is_in = |outer: &&(Vec<i64>, Vec<i64>, Vec<String>)| {
                (0..sides).all(|side| outer.0[side] <= starts[side] && ends[side] <= outer.1[side])
                    && (0..sides).any(|side| totals[side] > 0 && outer.1[side] > outer.0[side])
            };
            let mut path = above.iter().find(is_in).map_or_else(Vec::new, |outer| outer.2.clone());
            assert!(!path.is_empty() || above.is_empty(), "a box outside of all callers");
            path.push(name(one[3 * sides]));
            let values = (0..sides).flat_map(|side| [one[3 * side + 1], one[3 * side + 2]]);
            boxes.push((path.clone(), values.collect()));
            row.push((starts, ends, path));
        }
        above = row;
    }
    boxes.sort();
    boxes
}

/// Takes the flame graph out of an answer, for separate comparison.
fn take_boxes(graph: &mut Value, sides: usize) -> Vec<(Vec<String>, Vec<i64>)> {
    let boxes = boxes(graph, sides);
    let graph = graph.as_object_mut().unwrap();
    graph.remove("levels");
    let mut names: Vec<Value> = graph["names"].as_array().unwrap().clone();
    names[1..].sort_by_key(|name| name.as_str().unwrap().to_owned());
    graph.insert("names".into(), names.into());
    boxes
}

/// The part of a profile that doesn't depend on the numbers of its rows.
fn take_samples(profile: &mut Value) -> Vec<(Vec<String>, i64)> {
    let string = |index: &Value| match index {
        Value::Null => "",
        index => profile["stringTable"][integer(index) as usize].as_str().unwrap(),
    };
    let row = |table: &str, id: &Value| {
        let rows = profile[table].as_array().unwrap();
        rows.iter().find(|row| row["id"] == *id).cloned().unwrap_or_default()
    };
    let location = |id: &Value| {
        let location = row("location", id);
        let mapping = row("mapping", &location["mappingId"]);
        let lines = location["line"].as_array().unwrap().iter().map(|line| {
            let one = row("function", &line["functionId"]);
            let [name, system_name, file] = ["name", "systemName", "filename"].map(|key| string(&one[key]));
            format!("{name} {system_name} {file} {} {}", one["startLine"], line["line"])
        });
        let lines: Vec<String> = lines.collect();
        format!(
            "{lines:?} {} {} {}",
            location["address"],
            string(&mapping["filename"]),
            string(&mapping["buildId"])
        )
    };
    let known: std::collections::HashMap<String, String> = profile["location"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["id"].as_str().unwrap().to_owned(), location(&one["id"])))
        .collect();
    let sample = |sample: &Value| {
        let stack = sample["locationId"].as_array().unwrap().iter();
        let stack = stack.map(|id| known[id.as_str().unwrap()].clone()).collect();
        (stack, integer(&sample["value"][0]))
    };
    let mut samples: Vec<_> = profile["sample"].as_array().unwrap().iter().map(sample).collect();
    samples.sort();
    let kind = |kind: &Value| json!([string(&kind["type"]), string(&kind["unit"])]);
    let kinds = [kind(&profile["sampleType"][0]), kind(&profile["periodType"])];
    let default = string(&profile["defaultSampleType"]).to_owned();
    let rest = ["location", "function", "mapping", "stringTable"];
    let counts: Vec<usize> = rest.iter().map(|table| profile[table].as_array().unwrap().len()).collect();
    let [times, periods] = ["timeNanos", "period"].map(|key| profile[key].clone());
    *profile =
        json!({"kinds": kinds, "default": default, "counts": counts, "time": times, "period": periods});
    samples
}

async fn answer(server: &Server, record: &Value) -> (u16, Value) {
    match record["get"].as_str() {
        Some(path) => {
            let (status, body) = server.get(path).await;
            let answer = serde_json::from_slice(&body);
            (status.as_u16(), answer.unwrap_or_else(|_| panic!("{path}: {}", String::from_utf8_lossy(&body))))
        }
        None => {
            let (status, body) = server.query(record["method"].as_str().unwrap(), &record["request"]).await;
            (status.as_u16(), body)
        }
    }
}

async fn compare(server: &Server, name: &str) {
    let record = recorded(name);
    let (status, mut found) = answer(server, &record).await;
    let mut wanted = record["response"].clone();
    assert_eq!(u64::from(status), record["status"].as_u64().unwrap(), "{name}: {found}");
    for key in ["flamegraph", "flamebearer"] {
        if wanted.get(key).is_some() {
            let sides = if name.contains("diff") { 2 } else { 1 };
            let [one, other] = [&mut found, &mut wanted].map(|answer| take_boxes(&mut answer[key], sides));
            for (one, other) in one.iter().zip(&other) {
                assert_eq!(one, other, "{name}");
            }
            assert_eq!(one.len(), other.len(), "{name}");
        }
    }
    if wanted.get("stringTable").is_some() {
        let [one, other] = [&mut found, &mut wanted].map(take_samples);
        assert_eq!(one, other, "{name}");
    }
    assert_same(name, "", &found, &wanted);
}

#[tokio::test]
async fn queries_are_answered_as_by_pyroscope() {
    let server = server("golden", QueryLimits::default()).await;
    for name in [
        "profile_types.json",
        "label_names.json",
        "label_names_matcher.json",
        "label_values.json",
        "series.json",
        "series_all.json",
        "merge_64.json",
        "merge_full.json.gz",
        "merge_callsite.json",
        "series_15s.json",
        "series_by.json",
        "series_limit.json",
        "diff_64.json",
        "pprof.json.gz",
        "heatmap.json",
        "stats.json",
        "label_values_get.json",
        "render.json",
        "render_group.json",
        "render_diff.json",
        "err_no_type.json",
        "err_bad_selector.json",
        "empty_range.json",
    ] {
        compare(&server, name).await;
    }
}

#[tokio::test]
async fn protocol_buffers_carry_the_same_numbers() {
    let server = server("golden-binary", QueryLimits::default()).await;
    let path = "/querier.v1.QuerierService/SelectMergeStacktraces";
    let (status, body) = server.post(path, "application/proto", golden("merge_64.req.bin")).await;
    assert_eq!(status, 200);
    assert_eq!(body, golden("merge_64.resp.bin"), "not even the order of siblings differs");
}

#[tokio::test]
async fn a_range_is_refused_only_where_there_is_a_limit() {
    let record = recorded("err_too_long.json");
    let without = server("golden-long", QueryLimits::default()).await;
    assert_eq!(answer(&without, &record).await.0, 200);
    let length = Some(Duration::from_secs(86_400));
    let with = Server::new(
        "golden-limit",
        ServerOptions { query: QueryLimits { length, ..QueryLimits::default() }, ..ServerOptions::default() },
    );
    let (status, found) = answer(&with, &record).await;
    // Pyroscope states the length after cutting off the part beyond its retention.
    let strip = |answer: &Value| {
        let message = answer["message"].as_str().unwrap();
        let (before, after) = message.split_once("actual: ").unwrap();
        (before.to_owned(), after.split_once(',').unwrap().1.to_owned(), answer["code"].clone())
    };
    assert_eq!(status, 400);
    assert_eq!(strip(&found), strip(&record["response"]));
    // 40 days and the 150 seconds of the other requests.
    assert!(found["message"].as_str().unwrap().contains("actual: 960h2m29.999s"), "{found}");
}

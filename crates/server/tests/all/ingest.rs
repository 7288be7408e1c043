//! Profiles in every form that clients send, found again by a query; and what is refused, with a sentence and without harm.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::support::Server;
use axum::http::StatusCode;
use base64::Engine;
use plumb_formats::pprof::message::{
    Label, Line, Location, PprofFunction, PprofMapping, PprofSample, Profile, ValueType,
};
use plumb_server::{IngestLimits, ServerOptions};
use prost::Message;
use serde_json::{Value, json};

const TIME: i64 = 1_700_000_000_000;

/// `main` calls `work`, into which `helper` was inlined; 3 samples of 30 ns, one with a label.
fn profile() -> Profile {
    let strings =
        ["", "samples", "count", "cpu", "nanoseconds", "main", "work", "helper", "a.c", "thread", "t1"];
    let function = |id, name| PprofFunction { id, name, system_name: name, filename: 8, start_line: 1 };
    let line = |function_id, line| Line { function_id, line };
    let sample =
        |value: i64, label| PprofSample { location_id: vec![2, 1], value: vec![value, value * 10], label };
    Profile {
        sample_type: vec![ValueType { kind: 1, unit: 2 }, ValueType { kind: 3, unit: 4 }],
        sample: vec![sample(2, vec![]), sample(1, vec![Label { key: 9, text: 10, number: 0 }])],
        location: vec![
            Location { id: 1, line: vec![line(1, 10)], ..Location::default() },
            Location { id: 2, line: vec![line(3, 30), line(2, 20)], ..Location::default() },
        ],
        function: vec![function(1, 5), function(2, 6), function(3, 7)],
        string_table: strings.map(str::to_owned).to_vec(),
        time_nanos: TIME * 1_000_000,
        period_type: Some(ValueType { kind: 3, unit: 4 }),
        period: 10,
        ..Profile::default()
    }
}

fn push(profile: &Profile, labels: &[(&str, &str)]) -> String {
    let labels: Vec<Value> =
        labels.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let raw = base64::engine::general_purpose::STANDARD.encode(profile.encode_to_vec());
    json!({"series": [{"labels": labels, "samples": [{"rawProfile": raw, "ID": "x"}]}]}).to_string()
}

const LABELS: [(&str, &str); 2] = [("__name__", "process_cpu"), ("service_name", "api")];
const PUSH: &str = "/push.v1.PusherService/Push";

/// The names of the boxes with their totals, level by level.
async fn flame(server: &Server, kind: &str, selector: &str) -> String {
    let question = json!({
        "profileTypeID": kind, "labelSelector": selector, "start": TIME - 1000, "end": TIME + 1000,
    });
    let (status, answer) = server.query("SelectMergeStacktraces", &question).await;
    assert_eq!(status, 200, "{answer}");
    let graph = &answer["flamegraph"];
    let levels = graph["levels"].as_array().unwrap().iter().map(|level| {
        let values: Vec<&str> =
            level["values"].as_array().unwrap().iter().map(|value| value.as_str().unwrap()).collect();
        let boxes = values.chunks(4).map(|one| {
            let name = graph["names"][one[3].parse::<usize>().unwrap()].as_str().unwrap();
            format!("{name} {}/{}", one[1], one[2])
        });
        boxes.collect::<Vec<_>>().join(", ")
    });
    levels.collect::<Vec<_>>().join("; ")
}

#[tokio::test]
async fn every_type_and_every_label_of_a_sample_is_a_series() {
    let server = Server::new("types", ServerOptions::default());
    let (status, body) = server.post(PUSH, "application/json", push(&profile(), &LABELS)).await;
    assert_eq!((status, &body[..]), (StatusCode::OK, &b"{}"[..]));
    let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    assert_eq!(flame(&server, cpu, "{}").await, "total 30/0; main 30/0; work 30/0; helper 30/30");
    let one_thread = r#"{thread="t1"}"#;
    assert_eq!(flame(&server, cpu, one_thread).await, "total 10/0; main 10/0; work 10/0; helper 10/10");
    let samples = "process_cpu:samples:count:cpu:nanoseconds";
    assert_eq!(flame(&server, samples, "").await, "total 3/0; main 3/0; work 3/0; helper 3/3");
    let question = json!({"name": "service_name"});
    assert_eq!(server.query("LabelValues", &question).await.1, json!({"names": ["api"]}));
}

/// A change of the profile that has to be refused, and a part of what is said.
type Damage = (&'static str, fn(&mut Profile));

#[tokio::test]
async fn a_profile_that_points_nowhere_is_refused() {
    let server = Server::new("refused", ServerOptions::default());
    let damages: [Damage; 14] = [
        ("there is no location 9", |one| one.sample[0].location_id[0] = 9),
        ("there is no function 9", |one| one.location[0].line[0].function_id = 9),
        ("there is no mapping 9", |one| one.location[0].mapping_id = 9),
        ("there is no string 99", |one| one.function[0].name = 99),
        ("there is no string -1", |one| one.function[0].name = -1),
        ("location id 1 is zero or not unique", |one| one.location[1].id = 1),
        ("function id 0 is zero", |one| one.function[0].id = 0),
        ("mapping id 0 is zero", |one| one.mapping.push(PprofMapping::default())),
        ("1 values of 2 types", |one| _ = one.sample[0].value.pop()),
        ("which is negative", |one| one.sample[0].value[1] = -5),
        ("larger than 64 bits hold", |one| one.sample[0].value[1] = i64::MAX - 5),
        ("no sample types", |one| one.sample_type.clear()),
        ("before 1970", |one| one.time_nanos = -1),
        ("in the future", |one| one.time_nanos = i64::MAX),
    ];
    for (wanted, damage) in damages {
        let mut damaged = profile();
        damage(&mut damaged);
        let (status, body) = server.post(PUSH, "application/json", push(&damaged, &LABELS)).await;
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!("invalid_argument")), "{body}");
        assert!(body["message"].as_str().unwrap().contains(wanted), "{wanted}: {body}");
    }
    let (_, types) = server.query("ProfileTypes", &json!({})).await;
    assert_eq!(types, json!({}), "a refused profile leaves nothing behind");
}

#[tokio::test]
async fn what_is_too_much_is_refused() {
    let limits = IngestLimits { body: 4000, unpacked: 10_000, samples: 1, ..IngestLimits::default() };
    let server = Server::new("limits", ServerOptions { ingest: limits, ..ServerOptions::default() });
    let (status, body) = server.post(PUSH, "application/json", push(&profile(), &LABELS)).await;
    assert_eq!(status, 400);
    assert!(String::from_utf8_lossy(&body).contains("more than 1 samples"));
    let (status, _) = server.post(PUSH, "application/proto", vec![0; 5000]).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    // A megabyte of zeros in a thousand bytes.
    let mut bomb = Vec::new();
    let mut packer = flate2::write::GzEncoder::new(&mut bomb, flate2::Compression::best());
    std::io::Write::write_all(&mut packer, &vec![0; 1 << 20]).unwrap();
    packer.finish().unwrap();
    let request = axum::http::Request::post(PUSH)
        .header("Content-Type", "application/proto")
        .header("Content-Encoding", "gzip")
        .body(bomb.clone().into())
        .unwrap();
    assert_eq!(server.bytes(request).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let mut message = PushMessage::default();
    message.series[0].samples[0].raw_profile = bomb;
    let (status, body) = server.push(message.encode_to_vec()).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{}", String::from_utf8_lossy(&body));
}

/// A request as the protocol describes it, written down once more.
#[derive(Clone, PartialEq, Message)]
struct PushMessageInner {
    #[prost(message, repeated, tag = "1")]
    series: Vec<Series>,
}

#[derive(Clone, PartialEq, Message)]
struct Series {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Pair>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Raw>,
}

#[derive(Clone, PartialEq, Message)]
struct Pair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Raw {
    #[prost(bytes = "vec", tag = "1")]
    raw_profile: Vec<u8>,
}

struct PushMessage;

impl PushMessage {
    fn default() -> PushMessageInner {
        let labels = LABELS.map(|(name, value)| Pair { name: name.into(), value: value.into() }).to_vec();
        let raw_profile = profile().encode_to_vec();
        PushMessageInner { series: vec![Series { labels, samples: vec![Raw { raw_profile }] }] }
    }
}

#[tokio::test]
async fn garbage_gets_an_answer() {
    let server = Server::new("garbage", ServerOptions::default());
    let whole = PushMessage::default().encode_to_vec();
    for length in 0..whole.len() {
        let (status, _) = server.push(whole[..length].to_vec()).await;
        assert!(status == 200 || status == 400, "{length}: {status}");
    }
    for at in 0..whole.len() {
        for bit in [0, 3, 7] {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            let (status, _) = server.push(changed).await;
            assert!(status.as_u16() < 500, "{at}.{bit}: {status}");
        }
    }
    let (status, _) = server.post(PUSH, "text/plain", "x").await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let (status, body) = server.post("/nothing", "text/plain", "x").await;
    assert_eq!((status, body.starts_with(b"{")), (StatusCode::NOT_FOUND, true));
}

#[tokio::test]
async fn the_older_api_takes_stacks_in_all_forms() {
    let server = Server::new("older", ServerOptions::default());
    let from = TIME / 1000;
    // A tree as its format is described: length and text of a name, value, number of children; the first node has no name.
    let tree = b"\x00\x00\x01\x04main\x01\x02\x01a\x02\x00\x01b\x03\x00";
    let trie = b"\x00\x00\x01\x04main\x01\x02\x02;a\x02\x00\x02;b\x03\x00";
    let wanted = "total 60000000/0; main 60000000/10000000; b 30000000/30000000, a 20000000/20000000";
    for (service, format, body) in [
        ("groups", "", &b"main 1\nmain;a 2\nmain;b 3\n"[..]),
        ("folded", "&format=folded", b"main 1\nmain;a 2\nmain;b 3"),
        ("lines", "&format=lines", b"main\nmain;a\nmain;a\nmain;b\nmain;b\nmain;b\n"),
        ("tree", "&format=tree", tree),
        ("trie", "&format=trie", trie),
    ] {
        let path = format!("/ingest?name={service}.cpu%7Bregion%3Deu%7D&from={from}&sampleRate=100{format}");
        let (status, answer) = server.post(&path, "binary/octet-stream", body).await;
        assert_eq!(status, 200, "{service}: {}", String::from_utf8_lossy(&answer));
        let selector = format!(r#"{{service_name="{service}",region="eu"}}"#);
        let found = flame(&server, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", &selector).await;
        let sorted = |text: &str| {
            let mut boxes: Vec<String> = text.split([';', ',']).map(|one| one.trim().to_owned()).collect();
            boxes.sort();
            boxes
        };
        assert_eq!(sorted(&found), sorted(wanted), "{service}");
    }
    for body in [&b"main"[..], b"main x", b"\xff\xfe 1"] {
        let (status, _) = server.post("/ingest?name=bad", "text/plain", body).await;
        assert_eq!(status, 400);
    }
    for (format, whole) in [("tree", &tree[..]), ("trie", trie)] {
        for length in 0..whole.len() {
            let path = format!("/ingest?name=bad&format={format}");
            let (status, _) = server.post(&path, "binary/octet-stream", whole[..length].to_vec()).await;
            assert_eq!(status, 400, "{format} {length}");
        }
    }
}

/// Both of Go's kinds of contention have the same sample types; what the agent calls them tells them apart. The names are those of Pyroscope's
/// `RawProfile.metricName`.
#[tokio::test]
async fn what_an_agent_says_of_sample_types_names_the_kind() {
    let server = Server::new("sample-types", ServerOptions::default());
    let mut contention = profile();
    for (place, text) in [(1, "contentions"), (3, "delay")] {
        contention.string_table[place] = text.into();
    }
    let config = |kind: &str| {
        format!(
            r#"{{"contentions":{{"display-name":"{kind}_count","units":"lock_samples"}},
                 "delay":{{"display-name":"{kind}_duration","units":"lock_nanoseconds"}}}}"#
        )
    };
    let kinds = [("mutex", Some(config("mutex"))), ("block", Some(config("block"))), ("mutex", None)];
    for (place, (_, config)) in kinds.iter().enumerate() {
        let mut form =
            b"--xyz\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"p\"\r\n\r\n".to_vec();
        form.extend_from_slice(&contention.encode_to_vec());
        if let Some(config) = config {
            let head = "\r\n--xyz\r\nContent-Disposition: form-data; name=\"sample_type_config\"; filename=\"c\"\r\n\r\n";
            form.extend_from_slice(&[head, config].concat().into_bytes());
        }
        form.extend_from_slice(b"\r\n--xyz--\r\n");
        let path = format!("/ingest?name=go{place}&spyName=gospy");
        let (status, body) = server.post(&path, "multipart/form-data; boundary=xyz", form).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    }
    for (place, (kind, _)) in kinds.iter().enumerate() {
        let series = format!(r#"{{service_name="go{place}"}}"#);
        let other = if *kind == "mutex" { "block" } else { "mutex" };
        let of = |kind: &str| format!("{kind}:delay:nanoseconds:delay:nanoseconds");
        assert!(flame(&server, &of(kind), &series).await.starts_with("total 30/0"), "{place}");
        assert!(!flame(&server, &of(other), &series).await.starts_with("total 30/0"), "{place}");
    }
}

#[tokio::test]
async fn the_older_api_takes_profiles_plain_and_in_forms() {
    let server = Server::new("older-profiles", ServerOptions::default());
    let bytes = profile().encode_to_vec();
    let (status, _) =
        server.post("/ingest?name=plain&format=pprof", "binary/octet-stream", bytes.clone()).await;
    assert_eq!(status, 200);
    let mut form =
        b"--xyz\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"p\"\r\n\r\n".to_vec();
    form.extend_from_slice(&bytes);
    form.extend_from_slice(b"\r\n--xyz--\r\n");
    let path = "/pyroscope/ingest?name=form&spyName=gospy";
    let (status, body) = server.post(path, "multipart/form-data; boundary=xyz", form).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    let speedscope = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "main"}, {"name": "a"}]},
        "profiles": [{"type": "sampled", "name": "p", "unit": "nanoseconds", "startValue": 0, "endValue": 30,
                      "samples": [[0, 1], [0]], "weights": [20, 10]}],
    });
    let path = format!("/ingest?name=speed&format=speedscope&from={TIME}");
    let (status, body) = server.post(&path, "application/json", speedscope.to_string()).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    for service in ["plain", "form"] {
        let selector = format!(r#"{{service_name="{service}"}}"#);
        let wanted = "total 30/0; main 30/0; work 30/0; helper 30/30";
        assert_eq!(flame(&server, cpu, &selector).await, wanted);
    }
    let (_, types) = server.query("ProfileTypes", &json!({})).await;
    let question = r#"{service_name="speed"}"#;
    let types: Vec<&str> =
        types["profileTypes"].as_array().unwrap().iter().map(|one| one["ID"].as_str().unwrap()).collect();
    let mut found = Vec::new();
    for kind in &types {
        found.push(flame(&server, kind, question).await);
    }
    assert!(found.iter().any(|one| one == "total 30/0; main 30/10; a 20/20"), "{types:?} {found:?}");
}

/// A form with these fields.
fn form(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut form = Vec::new();
    for (name, bytes) in fields {
        let head =
            format!("--xyz\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\n\r\n");
        form.extend_from_slice(head.as_bytes());
        form.extend_from_slice(bytes);
        form.extend_from_slice(b"\r\n");
    }
    form.extend_from_slice(b"--xyz--\r\n");
    form
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packer, bytes).unwrap();
    packer.finish().unwrap()
}

/// The profile types with the totals of a service, `None` where it has none.
async fn totals(server: &Server, service: &str) -> std::collections::BTreeMap<String, String> {
    let (_, types) = server.query("ProfileTypes", &json!({})).await;
    let selector = format!(r#"{{service_name="{service}"}}"#);
    let mut totals = std::collections::BTreeMap::new();
    for one in types["profileTypes"].as_array().unwrap() {
        let kind = one["ID"].as_str().unwrap();
        let found = flame(server, kind, &selector).await;
        let total = found.split(['/', ';']).next().unwrap().trim_start_matches("total ").to_owned();
        totals.insert(kind.to_owned(), total);
    }
    totals
}

#[tokio::test]
async fn the_older_api_takes_java_flight_recordings() {
    let server = Server::new("jfr", ServerOptions::default());
    let file = include_bytes!("../../../formats/tests/data/async-profiler-4.0.jfr");
    let path = format!("/ingest?name=raw&format=jfr&from={TIME}&sampleRate=50");
    let (status, body) = server.post(&path, "application/octet-stream", &file[..]).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    // `jfr summary` counts 40 execution samples, which are 10 ms each as the file says; 121 samples of the wall clock stand for 290 of
    // 50 ms. Names are those of Pyroscope, which has no numbers of samples.
    let wanted = [
        ("memory:alloc_in_new_tlab_bytes:bytes:space:bytes", "1677721600"),
        ("memory:alloc_in_new_tlab_objects:count:space:bytes", "25"),
        ("mutex:contentions:count:mutex:count", "2"),
        ("mutex:delay:nanoseconds:mutex:count", "101414611"),
        ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", "400000000"),
        ("process_cpu:samples:count:cpu:nanoseconds", "40"),
        ("wall:wall:nanoseconds:wall:nanoseconds", "14500000000"),
    ];
    let wanted = wanted.map(|(kind, total)| (kind.to_owned(), total.to_owned())).into();
    assert_eq!(totals(&server, "raw").await, wanted);
    let path = format!("/ingest?name=form&format=jfr&from={TIME}");
    let packed = form(&[("jfr", &gzip(file)), ("labels", b"")]);
    let (status, body) = server.post(&path, "multipart/form-data; boundary=xyz", packed).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    assert_eq!(totals(&server, "form").await, wanted);
    for (wrong, wanted) in [
        (form(&[("profile", file)]), "no field jfr"),
        (form(&[("jfr", &file[..9000])]), "cut off"),
        (form(&[("jfr", file), ("labels", b"\x0a\x05")]), "the field labels"),
    ] {
        let (status, body) = server.post(&path, "multipart/form-data; boundary=xyz", wrong).await;
        let body = String::from_utf8_lossy(&body);
        assert!(status == 400 && body.contains(wanted), "{status} {body}");
    }
}

#[tokio::test]
async fn labels_of_contexts_make_series() {
    let server = Server::new("jfr-labels", ServerOptions::default());
    // Two samples in the context 9, one in none; a wait in the context 9.
    let file = plumb_fixtures::jfr_with_contexts()
        .event(30, &[5, 1, 1, 1, 9])
        .event(30, &[6, 1, 1, 1, 9])
        .event(30, &[7, 1, 1, 1, 0])
        .event(31, &[8, 1000, 1, 1, 9])
        .finish();
    // As protocol buffers have it: contexts (1) with the key 9, whose labels (1) have the strings 1 and 2; strings (2).
    let labels = b"\x0a\x0a\x08\x09\x12\x06\x0a\x04\x08\x01\x10\x02\x12\x0a\x08\x01\x12\x06tenant\x12\x08\x08\x02\x12\x04blue";
    let path = format!("/ingest?name=labels&format=jfr&from={TIME}&sampleRate=100");
    let body = form(&[("jfr", &file), ("labels", &gzip(labels))]);
    let (status, body) = server.post(&path, "multipart/form-data; boundary=xyz", body).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    // The file tells no period: the request's rate does.
    let stack = |total: u64| format!("total {total}/0; Load.run {total}/0; Load.work {total}/{total}");
    assert_eq!(flame(&server, cpu, r#"{service_name="labels"}"#).await, stack(30_000_000));
    assert_eq!(flame(&server, cpu, r#"{tenant="blue"}"#).await, stack(20_000_000));
    assert_eq!(
        flame(&server, "mutex:delay:nanoseconds:mutex:count", r#"{tenant="blue"}"#).await,
        stack(1000)
    );
    let unknown = b"\x0a\x0a\x08\x09\x12\x06\x0a\x04\x08\x01\x10\x02";
    let body = form(&[("jfr", &file), ("labels", unknown)]);
    let (status, body) = server.post(&path, "multipart/form-data; boundary=xyz", body).await;
    let body = String::from_utf8_lossy(&body);
    assert!(status == 400 && body.contains("no string"), "{status} {body}");
}

/// A stack deeper than any real one would make each later query of its tenant slow.
#[tokio::test]
async fn stacks_that_are_too_deep_are_refused_and_others_stay() {
    let server = Server::new("depth", ServerOptions::default());
    let (status, _) = server.post(PUSH, "application/json", push(&profile(), &LABELS)).await;
    assert_eq!(status, StatusCode::OK);
    let most = IngestLimits::default().frames.of_stack;
    let deep = |locations: usize, samples: usize| {
        let mut deep = profile();
        deep.sample = vec![deep.sample[0].clone(); samples];
        deep.sample.iter_mut().for_each(|sample| sample.location_id = vec![1; locations]);
        deep
    };
    let (status, body) = server.post(PUSH, "application/json", push(&deep(most + 1, 1), &LABELS)).await;
    let said = String::from_utf8_lossy(&body).into_owned();
    assert_eq!((status, said.contains("more than 16384 frames")), (StatusCode::BAD_REQUEST, true), "{said}");
    // Inlined calls count: each location is a frame for each of its lines.
    let mut wide = deep(2, 1);
    wide.location[0].line = vec![wide.location[0].line[0]; most];
    let (status, _) = server.post(PUSH, "application/json", push(&wide, &LABELS)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    // Few bytes may name many frames.
    let mut many = deep(1, 4000);
    many.location[0].line = vec![many.location[0].line[0]; most];
    let (status, body) = server.post(PUSH, "application/json", push(&many, &LABELS)).await;
    let said = String::from_utf8_lossy(&body).into_owned();
    assert_eq!(
        (status, said.contains("50000000 frames together")),
        (StatusCode::BAD_REQUEST, true),
        "{said}"
    );
    let folded = format!("{}b 1\n", "a;".repeat(most));
    let path = format!("/ingest?name=deep&from={}", TIME / 1000);
    let (status, _) = server.post(&path, "text/plain", folded).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    assert_eq!(flame(&server, cpu, "{}").await, "total 30/0; main 30/0; work 30/0; helper 30/30");
}

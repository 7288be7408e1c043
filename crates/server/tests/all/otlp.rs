//! Requests of the OpenTelemetry profiler, over gRPC and HTTP, compared with its own library's decoding.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::io::{Read, Write};

use crate::support::{Server, golden};
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use plumb_fixtures::Made;
use plumb_server::ServerOptions;
use serde_json::{Value, json};

const EXPORT: &str = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
/// The period of 97 samples per second, in nanoseconds.
const PERIOD: i64 = 10_309_278;

fn export(number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let packed = golden(&format!("otlp/export-{number}.bin.gz"));
    flate2::read::GzDecoder::new(&*packed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn grpc(message: &[u8], tenant: &str) -> Request<Body> {
    let framed = [&[0][..], &u32::try_from(message.len()).unwrap().to_be_bytes(), message].concat();
    let request = Request::post(EXPORT).header("Content-Type", "application/grpc").header("TE", "trailers");
    request.header("X-Scope-OrgID", tenant).body(framed.into()).unwrap()
}

async fn ask(server: &Server, tenant: &str, method: &str, question: Value) -> Value {
    let request = Request::post(format!("/querier.v1.QuerierService/{method}"))
        .header("Content-Type", "application/json")
        .header("X-Scope-OrgID", tenant)
        .body(question.to_string().into())
        .unwrap();
    let (status, body) = server.bytes(request).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

fn index(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.parse().unwrap())
}

/// Number of a program's samples by leaf frame.
async fn leaves(server: &Server, tenant: &str, program: &str) -> BTreeMap<String, i64> {
    let question = json!({
        "profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        "labelSelector": format!("{{process_executable_name={program:?}}}"),
        "start": 1, "end": i64::MAX / 2_000_000,
    });
    let profile = ask(server, tenant, "SelectMergeProfile", question).await;
    let string = |index: usize| profile["stringTable"][index].as_str().unwrap();
    let mut leaves = BTreeMap::new();
    for sample in profile["sample"].as_array().unwrap() {
        let location = &profile["location"][index(&sample["locationId"][0]) - 1];
        let leaf = match &location["line"][0]["functionId"] {
            Value::Null => {
                let mapping = index(&location["mappingId"]).checked_sub(1);
                let mapping = mapping.map_or(&Value::Null, |place| &profile["mapping"][place]);
                let file = string(index(&mapping["filename"]));
                format!("native:{}", file.rsplit('/').next().unwrap())
            }
            function => string(index(&profile["function"][index(function) - 1]["name"])).to_owned(),
        };
        let value: i64 = sample["value"][0].as_str().unwrap().parse().unwrap();
        assert_eq!(value % PERIOD, 0);
        *leaves.entry(leaf).or_default() += value / PERIOD;
    }
    leaves
}

#[tokio::test]
async fn all_samples_of_the_profiler_come_through() {
    let server = Server::new("otlp", ServerOptions::default());
    let expected: Value = serde_json::from_slice(&golden("otlp/expected.json")).unwrap();
    for number in 0..6 {
        let tenant = format!("export-{number}");
        let response = server.send(grpc(&export(number), &tenant)).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &"application/grpc".parse().unwrap())
        );
        let collected = response.into_body().collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
        assert_eq!(collected.to_bytes().to_vec(), [0; 5], "an empty message");
        for (program, wanted) in expected[format!("export-{number}.bin")].as_object().unwrap() {
            let found = leaves(&server, &tenant, program).await;
            assert_eq!(
                found.values().sum::<i64>(),
                wanted["samples"].as_i64().unwrap(),
                "{tenant} {program}"
            );
            for (leaf, count) in wanted["leaf_functions"].as_object().unwrap() {
                assert_eq!(found.get(leaf), count.as_i64().as_ref(), "{tenant} {program} {leaf}");
            }
        }
    }
}

#[tokio::test]
async fn a_request_that_is_sent_again_counts_once() {
    let server = Server::new("otlp-again", ServerOptions::default());
    let expected: Value = serde_json::from_slice(&golden("otlp/expected.json")).unwrap();
    let (program, wanted) = expected["export-0.bin"].as_object().unwrap().iter().next().unwrap();
    for tenant in ["one", "one", "two", "one"] {
        assert_eq!(server.send(grpc(&export(0), tenant)).await.status(), 200);
    }
    for tenant in ["one", "two"] {
        let found = leaves(&server, tenant, program).await;
        assert_eq!(found.values().sum::<i64>(), wanted["samples"].as_i64().unwrap(), "{tenant}");
    }
    let (_, metrics) = server.bytes(Request::get("/metrics").body(Body::empty()).unwrap()).await;
    let metrics = String::from_utf8(metrics.to_vec()).unwrap();
    assert!(metrics.contains("plumb_store_repeated_requests_total 2"), "{metrics}");
}

#[tokio::test]
async fn http_takes_the_same_and_both_refuse_what_is_no_profile() {
    let server = Server::new("otlp-http", ServerOptions::default());
    let (status, _) = server.post("/v1development/profiles", "application/x-protobuf", export(1)).await;
    assert_eq!(status, 200);
    let (_, types) = server.query("ProfileTypes", &json!({})).await;
    assert_eq!(types["profileTypes"][0]["ID"], "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
    let whole = export(0);
    for length in (0..whole.len()).step_by(997) {
        let response = server.send(grpc(&whole[..length], "cut")).await;
        let status = response.headers().get("grpc-status").cloned();
        assert!(status.is_none_or(|status| status == "3"), "{length}");
    }
    let mut message = whole.clone();
    for at in (0..whole.len()).step_by(331) {
        message[at] ^= 0x55;
        let response = server.send(grpc(&message, "changed")).await;
        let status = response.headers().get("grpc-status").cloned();
        assert!(status.is_none_or(|status| status == "3"), "{at}");
        message[at] ^= 0x55;
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// `export-0.json.gz` was made from `export-0.bin.gz` by protobuf's JSON of Python, from OpenTelemetry's own message definitions.
#[tokio::test]
async fn json_and_every_compression_carry_the_same() {
    let mut options = ServerOptions::default();
    options.ingest.unpacked = 1 << 20;
    let server = Server::new("otlp-json", options);
    let whole = export(0);
    let zstd = zstd::encode_all(&*whole, 3).unwrap();
    let mut json = Vec::new();
    flate2::read::GzDecoder::new(&*golden("otlp/export-0.json.gz")).read_to_end(&mut json).unwrap();
    let (proto, as_json) = ("application/x-protobuf", "application/json");
    for (tenant, kind, encoding, body) in [
        ("plain", proto, "identity", whole.clone()),
        ("json", as_json, "identity", json.clone()),
        ("json-gzip", as_json, "gzip", gzip(&json)),
        ("gzip", proto, "gzip", gzip(&whole)),
        ("zstd", proto, "zstd", zstd.clone()),
    ] {
        let request = Request::post("/v1development/profiles").header("Content-Type", kind);
        let request = request.header("Content-Encoding", encoding).header("X-Scope-OrgID", tenant);
        let (status, answer) = server.bytes(request.body(body.into()).unwrap()).await;
        let wanted: &[u8] = if kind == proto { b"" } else { b"{}" };
        assert_eq!((status.as_u16(), &*answer), (200, wanted), "{tenant}");
    }
    for (tenant, encoding, body) in [("grpc-gzip", "gzip", gzip(&whole)), ("grpc-zstd", "zstd", zstd)] {
        let mut request = grpc(&body, tenant);
        request.headers_mut().insert("grpc-encoding", encoding.parse().unwrap());
        let (parts, framed) = request.into_parts();
        let mut framed = framed.collect().await.unwrap().to_bytes().to_vec();
        framed[0] = 1;
        let again = Request::from_parts(parts, framed.into());
        let response = server.send(again).await;
        let collected = response.into_body().collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap()["grpc-status"], "0", "{tenant}");
    }
    let expected: Value = serde_json::from_slice(&golden("otlp/expected.json")).unwrap();
    let programs = expected["export-0.bin"].as_object().unwrap();
    for program in programs.keys() {
        let plain = leaves(&server, "plain", program).await;
        for tenant in ["json", "json-gzip", "gzip", "zstd", "grpc-gzip", "grpc-zstd"] {
            assert_eq!(leaves(&server, tenant, program).await, plain, "{tenant} {program}");
        }
    }
    // Bodies that unpack to more than the limit, or are invalid, are rejected.
    let bomb = vec![0; 2 << 20];
    for (kind, encoding, body, wanted) in [
        (proto, "gzip", gzip(&bomb), 413),
        (proto, "zstd", zstd::encode_all(&*bomb, 3).unwrap(), 413),
        (proto, "zstd", whole.clone(), 400),
        (proto, "br", whole, 501),
        (as_json, "identity", json[..json.len() / 2].to_vec(), 400),
        (as_json, "identity", b"[1]".to_vec(), 400),
        ("text/plain", "identity", json, 501),
    ] {
        let request = Request::post("/v1development/profiles").header("Content-Type", kind);
        let request = request.header("Content-Encoding", encoding).body(body.into()).unwrap();
        let (status, answer) = server.bytes(request).await;
        assert_eq!(status, wanted, "{kind} {encoding}: {}", String::from_utf8_lossy(&answer));
    }
}

#[tokio::test]
async fn a_profile_of_the_future_is_refused() {
    use plumb_formats::otlp::message::ProfilesData;
    use prost::Message;
    let server = Server::new("otlp-future", ServerOptions::default());
    let mut data = ProfilesData::decode(&*export(1)).unwrap();
    let profiles = data.resource_profiles.iter_mut().flat_map(|one| &mut one.scope_profiles);
    // The year 2200.
    profiles.flat_map(|one| &mut one.profiles).for_each(|one| one.time_unix_nano = 7_258_118_400_000_000_000);
    let path = "/v1development/profiles";
    let (status, body) = server.post(path, "application/x-protobuf", data.encode_to_vec()).await;
    let body = String::from_utf8_lossy(&body);
    assert!(status == 400 && body.contains("in the future") && body.contains("check both clocks"), "{body}");
    let (status, body) = server.post("/ingest?name=a&from=7258118400", "text/plain", "a;b 1").await;
    let body = String::from_utf8_lossy(&body);
    assert!(status == 400 && body.contains("in the future"), "{body}");
    let (_, types) = server.query("ProfileTypes", &json!({})).await;
    assert_eq!(types, json!({}), "nothing was stored");
}

#[tokio::test]
async fn a_sample_without_values_and_timestamps_is_refused_by_name() {
    use plumb_formats::otlp::message::{
        Dictionary, OtlpSample, Profile, ProfilesData, ResourceProfiles, ScopeProfiles, Stack, ValueType,
    };
    use prost::Message;
    let server = Server::new("otlp-empty", ServerOptions::default());
    let kind = Some(ValueType { type_strindex: 1, unit_strindex: 2 });
    let profile = Profile { sample_type: kind, samples: vec![OtlpSample::default()], ..Profile::default() };
    let data = ProfilesData {
        resource_profiles: vec![ResourceProfiles {
            resource: None,
            scope_profiles: vec![ScopeProfiles { scope: None, profiles: vec![profile] }],
        }],
        dictionary: Some(Dictionary {
            string_table: ["", "cpu", "nanoseconds"].map(str::to_owned).to_vec(),
            stack_table: vec![Stack::default()],
            ..Dictionary::default()
        }),
    };
    let path = "/v1development/profiles";
    let (status, body) = server.post(path, "application/x-protobuf", data.encode_to_vec()).await;
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(status, 400);
    assert!(body["message"].as_str().unwrap().contains("neither values nor timestamps"), "{body}");
}

/// Attributes as collectors write them: names and texts are rows of the dictionary.
#[tokio::test]
async fn attributes_may_be_in_the_dictionary() {
    use plumb_formats::otlp::message::{AnyValue, OneValue, ProfilesData};
    use prost::Message;
    let server = Server::new("otlp-references", ServerOptions::default());
    let expected: Value = serde_json::from_slice(&golden("otlp/expected.json")).unwrap();
    let mut data = ProfilesData::decode(&*export(0)).unwrap();
    let dictionary = data.dictionary.as_mut().unwrap();
    let strings = &mut dictionary.string_table;
    let mut refer = |text: &str| {
        strings.push(text.to_owned());
        i32::try_from(strings.len() - 1).unwrap()
    };
    let mut refer_value = |value: &mut Option<AnyValue>| {
        let one = value.as_mut().and_then(|value| value.value.as_mut());
        if let Some(OneValue::Text(text)) = one {
            let index = refer(&std::mem::take(text));
            *value = Some(AnyValue { value: Some(OneValue::TextIndex(index)) });
        }
    };
    dictionary.attribute_table.iter_mut().for_each(|one| refer_value(&mut one.value));
    let resources = data.resource_profiles.iter_mut().filter_map(|one| one.resource.as_mut());
    let mut attributes: Vec<_> = resources.flat_map(|one| &mut one.attributes).collect();
    attributes.iter_mut().for_each(|one| refer_value(&mut one.value));
    for one in &mut attributes {
        dictionary.string_table.push(std::mem::take(&mut one.key));
        one.key_strindex = i32::try_from(dictionary.string_table.len() - 1).unwrap();
    }
    let rows = dictionary.string_table.len();
    let path = "/v1development/profiles";
    let (status, body) = server.post(path, "application/x-protobuf", data.encode_to_vec()).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    for (program, wanted) in expected["export-0.bin"].as_object().unwrap() {
        let found = leaves(&server, "anonymous", program).await;
        assert_eq!(found.values().sum::<i64>(), wanted["samples"].as_i64().unwrap(), "{program}");
    }
    let resource = data.resource_profiles[0].resource.get_or_insert_default();
    let attribute = plumb_formats::otlp::message::KeyValue {
        key_strindex: i32::try_from(rows).unwrap(),
        ..Default::default()
    };
    resource.attributes.push(attribute);
    let (status, body) = server.post(path, "application/x-protobuf", data.encode_to_vec()).await;
    let body = String::from_utf8_lossy(&body);
    assert!(status == 400 && body.contains(&format!("no row {rows} in string_table")), "{body}");
}

/// Pyroscope rejects profiles without a period, so an event that is not a clock has a period of one count: its type is the same with and without.
#[tokio::test]
async fn a_period_of_one_of_what_is_counted_is_none() {
    use plumb_formats::otlp::message::{
        Dictionary, OtlpSample, Profile, ProfilesData, ResourceProfiles, ScopeProfiles, Stack, ValueType,
    };
    use prost::Message;
    let server = Server::new("otlp-period", ServerOptions::default());
    let profile = |type_strindex, period| {
        let kind = Some(ValueType { type_strindex, unit_strindex: 2 });
        let period_type = kind.filter(|_| period > 0);
        let samples = vec![OtlpSample { values: vec![7], ..OtlpSample::default() }];
        Profile { sample_type: kind, period_type, period, samples, ..Profile::default() }
    };
    let profiles = vec![profile(3, 0), profile(3, 1), profile(1, 1), profile(4, 100)];
    let data = ProfilesData {
        resource_profiles: vec![ResourceProfiles {
            resource: None,
            scope_profiles: vec![ScopeProfiles { scope: None, profiles }],
        }],
        dictionary: Some(Dictionary {
            string_table: ["", "cpu", "nanoseconds", "kernel_time", "wall"].map(str::to_owned).to_vec(),
            stack_table: vec![Stack::default()],
            ..Dictionary::default()
        }),
    };
    let path = "/v1development/profiles";
    assert_eq!(server.post(path, "application/x-protobuf", data.encode_to_vec()).await.0, 200);
    let (_, types) = server.query("ProfileTypes", &json!({})).await;
    let types = types["profileTypes"].as_array().unwrap();
    let mut ids: Vec<&str> = types.iter().map(|one| one["ID"].as_str().unwrap()).collect();
    ids.sort_unstable();
    let expected = [
        "kernel_time:kernel_time:nanoseconds::",
        "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        "wall:wall:nanoseconds:wall:nanoseconds",
    ];
    assert_eq!(ids, expected);
}

/// A recording of plumb's agent with one stack, sampled this many times, at this many a second.
fn recorded(samples: u64, hz: u64) -> (plumb_profile::Profile, plumb_formats::otlp::ResourceSet) {
    let (mut made, period_ns) = (Made::new(), 1_000_000_000 / hz);
    (0..samples).for_each(|_| _ = made.sample("shop/1/1", "main@shop", period_ns));
    let profile = made.profile;
    let process = profile.processes.iter().next().unwrap().0;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let set = plumb_formats::otlp::ResourceSet {
        resources: vec![vec![("service.name".to_owned(), "shop".to_owned())]],
        of_process: [(process, 0)].into(),
        time_unix_ns: u64::try_from(now).unwrap() - hz * 1_000_000_000,
        duration_ns: 1,
        period_ns,
        ..Default::default()
    };
    (profile, set)
}

async fn selected(server: &Server) -> Value {
    let path = "/api/v1/selection?query=%7Bservice_name%3D%22shop%22%7D&from=now-1h&until=now";
    let (status, body) = server.get(path).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

/// An agent lowers its rate if it takes too much: the number of samples can't be told from their times then.
#[tokio::test]
async fn samples_of_several_rates_are_counted() {
    use plumb_formats::otlp::{encode_by_resource, write};
    let server = Server::new("otlp-rates", ServerOptions::default());
    let path = "/v1development/profiles";
    let rates = [(970, 97), (1_105, 94), (450, 75)];
    for (samples, hz) in rates {
        let (profile, set) = recorded(samples, hz);
        let request = encode_by_resource(&profile, &set).bytes;
        assert_eq!(server.post(path, "application/x-protobuf", request).await.0, 200);
    }
    let answer = selected(&server).await;
    assert_eq!((&answer["selected"]["kept_samples"], &answer["warnings"]), (&json!(2_525), &json!([])));
    let sum: u64 = rates.iter().map(|(samples, hz)| samples * (1_000_000_000 / hz)).sum();
    assert_eq!(answer["selected"]["kept_weight"], json!(sum));
    // Exports have the numbers too.
    let export = "/api/v1/export?format=pprof&query=%7Bservice_name%3D%22shop%22%7D&from=now-1h&until=now";
    let (status, body) = server.get(export).await;
    assert_eq!(status, 200);
    let profile = plumb_formats::foreign::read(&body).unwrap();
    assert_eq!(profile.samples.len(), 2_525);
    // Samples with times are counted by them.
    let again = Server::new("otlp-times", ServerOptions::default());
    let (mut profile, set) = recorded(300, 99);
    profile.meta.start_unix_ns = set.time_unix_ns;
    let mut sent = Vec::new();
    write(&profile, &mut sent).unwrap();
    assert_eq!(again.post(path, "application/x-protobuf", sent).await.0, 200);
    let all = "/api/v1/selection?query=%7B%7D&from=now-1h&until=now";
    let answer: Value = serde_json::from_slice(&again.get(all).await.1).unwrap();
    assert_eq!((&answer["selected"]["kept_samples"], &answer["warnings"]), (&json!(300), &json!([])));
}

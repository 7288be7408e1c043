//! plumb's own API: tables for known stacks, and an answer for every path of the description.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::support::Server;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plumb_server::ServerOptions;
use serde_json::{Value, json};

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

/// A selector of one service, URL-encoded.
const API: &str = "query=%7Bservice_name%3D%22api%22%7D";

/// As `profilecli query profile` and `query go-pgo` ask.
#[tokio::test]
async fn stacks_come_as_pprof_too() {
    let server = server("api-pprof").await;
    let mut question = json!({
        "profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "labelSelector": "{service_name=\"api\"}",
        "start": (TIME - 60) * 1000, "end": (TIME + 60) * 1000,
    });
    let (status, whole) = server.query("SelectMergeProfile", &question).await;
    assert_eq!(status, 200, "{whole}");
    question["format"] = "PROFILE_FORMAT_PPROF".into();
    let (status, answer) = server.query("SelectMergeStacktraces", &question).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["pprof"]["profile"], whole);
    assert!(answer.get("flamegraph").is_none());
    question["stackTraceSelector"] = json!({"goPgo": {"keepLocations": 1}});
    let (status, answer) = server.query("SelectMergeStacktraces", &question).await;
    assert_eq!(status, 200, "{answer}");
    let samples = answer["pprof"]["profile"]["sample"].as_array().unwrap();
    let locations = |sample: &Value| sample["locationId"].as_array().unwrap().len();
    assert_eq!(samples.iter().map(locations).collect::<Vec<_>>(), [1, 1], "g and f");
    let values = samples.iter().map(|sample| sample["value"][0].as_str().unwrap().parse::<i64>().unwrap());
    assert_eq!(values.sum::<i64>(), 100_000_000);
}

/// As `profilecli query profile --function-names-only` asks: what is answered is a tree of the older API too.
#[tokio::test]
async fn calls_come_as_a_tree_too() {
    let server = server("api-tree").await;
    let question = json!({
        "profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "labelSelector": "{service_name=\"api\"}",
        "start": (TIME - 60) * 1000, "end": (TIME + 60) * 1000, "format": "PROFILE_FORMAT_TREE",
    });
    let (status, answer) = server.query("SelectMergeStacktraces", &question).await;
    assert_eq!(status, 200, "{answer}");
    let tree = STANDARD.decode(answer["tree"].as_str().unwrap()).unwrap();
    let path = format!("/ingest?name=again.alloc_space&from={TIME}&format=tree");
    assert_eq!(server.post(&path, "binary/octet-stream", tree).await.0, 200);
    let again = "type=memory:alloc_space:bytes::&query=%7Bservice_name%3D%22again%22%7D";
    let export = "export?format=folded&";
    let folded =
        |parameters: &str| format!("/api/v1/{export}from={}&until={}&{parameters}", TIME - 60, TIME + 60);
    let lines = |body: Vec<u8>| -> Vec<String> {
        let mut lines: Vec<String> = String::from_utf8(body).unwrap().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let (status, body) = server.get(&folded(again)).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    assert_eq!(lines(body), ["main;f 10000000", "main;f;f;g 40000000", "main;g 50000000"]);
}

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
    let of_f = get(&server, "series", "function=f&step=3600").await;
    assert_eq!(of_f[0]["points"][0]["value"].as_f64(), Some(5e7), "f calls itself and is counted once");
    assert_eq!(get(&server, "series", "function=nobody").await, json!([]));
}

/// Sum of the members of a list.
fn sum(list: &Value, value: impl Fn(&Value) -> f64) -> f64 {
    list.as_array().unwrap().iter().map(value).sum()
}

fn points(series: &Value) -> f64 {
    sum(series, |one| sum(&one["points"], |point| point["value"].as_f64().unwrap()))
}

/// Two processors are busy all the time, and sent in windows of 15 seconds.
#[tokio::test]
async fn no_step_has_more_processors_than_there_are() {
    let server = Server::new("api-steps", ServerOptions::default());
    for window in 0..40 {
        let path = format!("/ingest?name=api.cpu&from={}&sampleRate=100", TIME + 15 * window);
        assert_eq!(server.post(&path, "text/plain", "main 3000\n").await.0, 200);
    }
    for step in [1, 5, 7, 15, 20, 60] {
        // Begins and ends within windows.
        let range = format!("from={}&until={}", TIME + 4, TIME + 311);
        let (status, body) = server
            .get(&format!(
                "/api/v1/series?{range}&step={step}&type=process_cpu:cpu:nanoseconds:cpu:nanoseconds"
            ))
            .await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        let series: Value = serde_json::from_slice(&body).unwrap();
        let of_step = |point: &Value| point["value"].as_f64().unwrap() / 1e9 / step as f64;
        let points: Vec<f64> = series[0]["points"].as_array().unwrap().iter().map(of_step).collect();
        assert!(points.iter().all(|&busy| busy <= 2.000_001), "{step}: {points:?}");
        let within = &points[1..points.len() - 2];
        assert!(within.iter().all(|&busy| busy > 1.999), "{step}: {points:?}");
        assert_eq!(points.iter().sum::<f64>() * step as f64, 20.0 * 30.0, "what began in the range, whole");
    }
}

/// The truth is the list of what was sent.
#[tokio::test]
async fn all_answers_on_a_time_range_have_the_sum_of_its_profiles() {
    let server = Server::new("api-ranges", ServerOptions::default());
    // A profile every ten seconds, each with another sum.
    let sent: Vec<(i64, u64)> = (0..40).map(|number| (TIME + 10 * number, 1 + number as u64)).collect();
    for &(time, samples) in &sent {
        for (service, stack) in [("api", "main;f"), ("web", "main;g")] {
            let path = format!("/ingest?name={service}.cpu&from={time}&sampleRate=100");
            let (status, _) = server.post(&path, "text/plain", format!("{stack} {samples}\n")).await;
            assert_eq!(status, 200);
        }
    }
    // On a profile, between two, and within one step of a series.
    for (from, until) in [(0, 390), (100, 200), (95, 205), (101, 199), (203, 207), (390, 4000), (-4000, 0)] {
        let (from, until) = (TIME + from, TIME + until);
        let within = sent.iter().filter(|(time, _)| (from..=until).contains(time));
        let expected = 2.0 * within.map(|(_, samples)| *samples as f64 * 1e7).sum::<f64>();
        let range = format!("from={from}&until={until}");
        let answers = async |path: &str, parameters: &str| {
            let (status, body) = server.get(&format!("/api/v1/{path}?{range}&{parameters}")).await;
            assert!(status == 200 || expected == 0.0, "{path} {range}: {}", String::from_utf8_lossy(&body));
            serde_json::from_slice::<Value>(&body).unwrap_or_default()
        };
        let kind = "type=process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        let table = answers("functions", kind).await;
        let rows = sum(&table["rows"], |row| row["self"].as_f64().unwrap());
        assert_eq!((table["total"].as_f64().unwrap(), rows), (expected, expected), "{range}");
        for step in ["step=7", "step=86400", "by=service_name", "by=service_name&step=15", "function=main"] {
            let series = answers("series", &format!("{kind}&{step}")).await;
            assert_eq!(points(&series), expected, "{range} {step}");
        }
        let flame = answers("flame", kind).await;
        let total = flame["total"].as_str().map_or(0.0, |total| total.parse().unwrap());
        assert_eq!(total, expected, "{range}");
        let about = answers("selection", kind).await;
        assert_eq!(about["selected"]["kept_weight"].as_f64().unwrap_or(0.0), expected, "{range}");
    }
}

/// An agent's figures besides samples: capacity of its machine, wake-ups of a service, and observations.
fn figures(second: u64) -> Vec<u8> {
    use plumb_formats::otlp::{
        Figure, MACHINE_TIME, OBSERVATION, ResourceSet, WAKE_PERIOD, encode_by_resource,
    };
    let resource = |name: &str| vec![("service.name".to_owned(), name.to_owned())];
    let figure = |resource, name, unit, frame: &'static str, value| Figure {
        resource,
        name,
        unit,
        stack: vec![frame.into()],
        value,
        time_unix_ns: None,
    };
    let mut profile = plumb_profile::Profile::default();
    let (name, unit) = (profile.strings.add("cpu-clock"), profile.strings.add("ns"));
    profile.events.push(plumb_profile::Event { name, unit });
    let set = ResourceSet {
        resources: vec![resource("api"), resource("agent")],
        figures: vec![
            figure(0, WAKE_PERIOD, "nanoseconds", "wakes up", 1_001_000_000),
            figure(0, OBSERVATION, "count", "3 getdents64 of 8 KiB a scan", 3),
            figure(0, OBSERVATION, "count", "reads /proc", 7),
            figure(1, MACHINE_TIME, "nanoseconds", "agent", 1_000_000_000),
        ],
        time_unix_ns: (TIME as u64 + second) * 1_000_000_000,
        ..ResourceSet::default()
    };
    encode_by_resource(&profile, &set).bytes
}

#[tokio::test]
async fn findings_name_service_function_and_share_the_largest_first() {
    let server = server("api-findings").await;
    let found = get(&server, "findings", "threshold=0").await;
    let titles: Vec<&str> =
        found["findings"].as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap()).collect();
    let percent = |function: &str, percent: u32| format!("{function}: {percent}% of its CPU time");
    assert_eq!(titles, [percent("g", 90), percent("h", 100), percent("f", 10)]);
    assert_eq!(found["findings"][0]["cpu_ns"], json!(90_000_000));
    assert_eq!(found["findings"][0]["of_machine_percent"], Value::Null);
    assert_eq!((&found["services"], &found["cpu_ns"]), (&json!(2), &json!(170_000_000)));
    let evidence = &found["findings"][0]["evidence"];
    assert_eq!(
        (&evidence["selector"], &evidence["function"]),
        (&json!("{service_name=\"api\"}"), &json!("g"))
    );
    // The agents' figures are included.
    for second in [0, 15, 30] {
        let body = figures(second);
        let (status, body) = server.post("/v1development/profiles", "application/x-protobuf", body).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    }
    let found = get(&server, "findings", &format!("{API}&threshold=0")).await;
    let first = &found["findings"][0];
    assert_eq!(found["findings"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!(found["machine_ns"], json!(3_000_000_000_i64));
    assert_eq!((&first["of_machine_percent"], &first["period_ns"]), (&json!(3.0), &json!(1_001_000_000)));
    assert_eq!(first["title"], "g: 90% of its CPU time; the service wakes every 1.0 s");
    let details: Vec<&str> =
        first["details"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert_eq!(details[..2], ["reads /proc", "3 getdents64 of 8 KiB a scan"]);
}

/// A second of CPU time of a machine whose kernel and plumb use more of it than a service does, and a busier service without periodic wake-ups.
fn idle_machine(second: u64) -> Vec<u8> {
    use plumb_formats::otlp::{
        Figure, MACHINE_TIME, OBSERVATION, ResourceSet, WAKE_PERIOD, encode_by_resource,
    };
    use plumb_profile::{
        Address, AddressSpace, Dso, DsoKind, Event, Found, Frame, FrameKind, Process, Profile, Sample, Thread,
    };
    let mut profile = Profile::default();
    let (name, unit) = (profile.strings.add("cpu-clock"), profile.strings.add("ns"));
    let event = profile.events.push(Event { name, unit });
    let empty = profile.strings.empty();
    let mut set =
        ResourceSet { time_unix_ns: (TIME as u64 + second) * 1_000_000_000, ..ResourceSet::default() };
    let services = [
        ("observability", "/opt/plumb", 50_000_000),
        ("kernel", "[kernel.kallsyms]", 40_000_000),
        ("shop", "/srv/shop", 6_000_000),
        ("reader", "/srv/reader", 2_000_000),
        ("plumb-agent", "", 0),
    ];
    for (place, (service, path, weight)) in services.into_iter().enumerate() {
        set.resources.push(vec![("service.name".to_owned(), service.to_owned())]);
        if weight == 0 {
            continue;
        }
        let process = profile.processes.push(Process { pid: place as u32 + 10, ppid: 1, exe: empty });
        let thread = profile.threads.push(Thread { process, tid: place as u32 + 10, comm: empty });
        set.of_process.insert(process, place);
        let path = profile.strings.add(path);
        let (kind, addresses) = (DsoKind::File, AddressSpace::Svma);
        let dso = Some(profile.dsos.add(Dso { path, build_id: None, kind, addresses }));
        let kind = if service == "kernel" { FrameKind::Kernel } else { FrameKind::User };
        let (address, found) = (Address(64), Found::Sampled);
        let frame = profile.frames.add(Frame { kind, dso, address, is_return: false, found });
        let stack = profile.add_stack(&[frame]);
        // At a thousand samples a second.
        for _ in 0..weight / 1_000_000 {
            let weight = 1_000_000;
            profile.samples.push(Sample { time_ns: 0, thread, cpu: 0, event, stack, syscall: None, weight });
        }
    }
    let figure = |resource, name, frame: &'static str, value| Figure {
        resource,
        name,
        unit: "nanoseconds",
        stack: vec![frame.into()],
        value,
        time_unix_ns: None,
    };
    set.figures = vec![
        figure(3, WAKE_PERIOD, "wakes", 1_000_000_000),
        figure(3, OBSERVATION, "Each wake-up: 30 getdents64 of /proc, buffer 8 KiB", 1_000_000),
        figure(4, MACHINE_TIME, "plumb agent", 1_000_000_000),
    ];
    encode_by_resource(&profile, &set).bytes
}

#[tokio::test]
async fn a_service_with_a_habit_is_first_and_plumb_last() {
    let server = Server::new("api-rank", ServerOptions::default());
    for second in [0, 15, 30] {
        let body = idle_machine(second);
        let (status, body) = server.post("/v1development/profiles", "application/x-protobuf", body).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    }
    let found = get(&server, "findings", "").await;
    let mut services: Vec<(&str, &str)> = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["service"].as_str().unwrap(), one["owner"].as_str().unwrap()))
        .collect();
    services.dedup();
    let wanted = [("reader", "service"), ("shop", "service"), ("observability", "plumb")];
    assert_eq!(services, wanted, "{found}");
    assert_eq!((&found["own_cpu_ns"], &found["cpu_ns"]), (&json!(150_000_000), &json!(294_000_000)));
}

/// Of 64 profiles of two services, half of whose time is in `work`, a part is read; the sums include all.
#[tokio::test]
async fn findings_and_verdict_are_bounded_and_say_how() {
    let limited = |name: &str, limit: &dyn Fn(&mut ServerOptions)| {
        let mut options = ServerOptions::default();
        limit(&mut options);
        Server::new(name, options)
    };
    let servers = [
        ("rows", limited("api-bound-rows", &|options| options.query.rows = 40)),
        ("stacks", limited("api-bound-stacks", &|options| options.query.stacks = 1)),
        ("samples", limited("api-bound-samples", &|options| options.query.samples = 100)),
        ("time", limited("api-bound-time", &|options| options.query.examine = std::time::Duration::ZERO)),
        ("nothing", limited("api-bound-nothing", &|_| {})),
    ];
    for (reason, server) in servers {
        for second in 0..64 {
            for service in ["api", "web"] {
                let time = TIME - 32 + second;
                let path = format!("/ingest?name={service}.cpu&from={time}&sampleRate=100");
                let (status, _) =
                    server.post(&path, "text/plain", "main;work 5\nmain;rest 4\nmain 1\n").await;
                assert_eq!(status, 200);
            }
        }
        let found = get(&server, "findings", "").await;
        let reasons = |answer: &Value| -> Vec<String> {
            let bounds = answer["truncated"].as_array().unwrap();
            bounds.iter().map(|one| one["reason"].as_str().unwrap().to_owned()).collect()
        };
        // One of each service, except that the time is of all.
        let wanted = match reason {
            "nothing" => vec![],
            "time" => vec!["time"],
            other => vec![other; 2],
        };
        assert_eq!(reasons(&found), wanted, "{found}");
        assert_eq!(found["cpu_ns"], json!(2 * 64 * 100_000_000_i64), "{reason}");
        let examined = if reason == "time" { 1 } else { 2 };
        assert_eq!((&found["services"], &found["examined"]), (&json!(2), &json!(examined)), "{reason}");
        let verdict = get(&server, "verdict", API).await;
        assert_eq!(
            reasons(&verdict),
            // A verdict is of all rows, whose sums take no more memory.
            wanted[..wanted.len().min(1)]
                .iter()
                .filter(|one| !["time", "rows"].contains(*one))
                .copied()
                .collect::<Vec<_>>(),
            "{reason}"
        );
        let work =
            verdict["functions"].as_array().unwrap().iter().find(|one| one["function"] == "work").unwrap();
        let share = work["self"]["percent"].as_f64().unwrap();
        // Only that stack is left, or all; of thinned samples each stack has half.
        let expected = if reason == "stacks" { 100.0 } else { 50.0 };
        assert!((share - expected).abs() < 0.5, "{reason}: {share}");
        if reason == "rows" {
            let bound = &found["truncated"][0];
            let (taken, of) = (bound["taken"].as_u64().unwrap(), bound["of"].as_u64().unwrap());
            // A row for the time and one for the count.
            assert!(of == 2 * 3 * 64 && taken > 0 && taken <= 40, "{bound}");
            let said = bound["says"].as_str().unwrap();
            assert!(said.contains(&format!("{taken} of 384 rows were read")), "{said}");
        }
    }
}

/// Sends windows of a service of this version: as many samples of functions as `of` says for each.
async fn windows(
    server: &Server,
    service: &str,
    version: &str,
    windows: std::ops::Range<i64>,
    of: impl Fn(i64) -> [u32; 4],
) {
    for window in windows {
        let [price, ship, log, idle] = of(window);
        let body = format!(
            "main;handle;price_basket {price}\nmain;handle;price_basket;round {}\nmain;handle;ship {ship}\nmain;log {log}\nmain {idle}\n",
            price / 4
        );
        let name = format!("{service}.cpu%7Bservice_version%3D{version}%7D");
        let path = format!("/ingest?name={name}&from={}&sampleRate=100", TIME + 15 * window);
        assert_eq!(server.post(&path, "text/plain", body).await.0, 200);
    }
}

/// Three services are deployed at the same moment, and all have more to do from then on. In one a function is dearer.
#[tokio::test]
async fn a_deployment_that_makes_a_function_dearer_comes_first() {
    let server = Server::new("api-deployment", ServerOptions::default());
    let noise = |window: i64, salt: i64| ((window * 7919 + salt * 104_729) % 23) as u32;
    let load = |window: i64| if window < 40 { 10 } else { 13 };
    for (service, dearer) in [("shop", 138), ("cart", 100), ("mail", 100)] {
        let of = |window: i64| {
            let times = |part: u32, salt: i64| part * load(window) / 10 + noise(window, salt);
            let price = if window < 40 { 300 } else { 300 * dearer / 100 };
            [times(price, 1), times(400, 2), times(250, 3), times(150, 4)]
        };
        windows(&server, service, "1.0", 0..40, of).await;
        windows(&server, service, "1.1", 40..60, of).await;
    }
    let (status, body) = server.get(&format!("/api/v1/findings?from={TIME}&until={}", TIME + 15 * 60)).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    let found: Value = serde_json::from_slice(&body).unwrap();
    let changes: Vec<&Value> =
        found["findings"].as_array().unwrap().iter().filter(|one| one["kind"] == "change").collect();
    assert_eq!(changes.len(), 1, "{found}");
    let (first, change) = (&found["findings"][0], changes[0]);
    assert_eq!((first, &change["service"]), (change, &json!("shop")));
    let title = change["title"].as_str().unwrap();
    assert!(
        title.starts_with("version 1.1: price_basket") && (title.contains(" +3") || title.contains(" +4")),
        "{title}"
    );
    assert!(change["details"][0].as_str().unwrap().contains("before it version 1.0"), "{change}");
    assert_eq!(change["evidence"]["function"], "price_basket");
    // A later range has the newer version alone; the older one was there shortly before.
    let later = format!("/api/v1/findings?from={}&until={}", TIME + 15 * 42, TIME + 15 * 60);
    let found: Value = serde_json::from_slice(&server.get(&later).await.1).unwrap();
    assert_eq!(
        (&found["findings"][0]["kind"], &found["findings"][0]["service"]),
        (&json!("change"), &json!("shop"))
    );
    // An earlier range has one version.
    let (_, body) = server.get(&format!("/api/v1/findings?from={TIME}&until={}", TIME + 15 * 39)).await;
    let found: Value = serde_json::from_slice(&body).unwrap();
    assert!(found["findings"].as_array().unwrap().iter().all(|one| one["kind"] != "change"), "{found}");
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
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            match (method.as_str(), path.split('/').nth(3)) {
                // Tested in symbols.rs and tenants.rs.
                (_, Some("symbols" | "tenant")) => {}
                (_, Some("opened")) => opened(&server, method, path, operation).await,
                ("get", _) => queried(&server, &path.replace("{answer}", "function"), operation).await,
                _ => panic!("nothing tries {method} {path}"),
            }
        }
    }
}

/// A query answers for a time range, and rejects an invalid one.
async fn queried(server: &Server, path: &str, operation: &Value) {
    let parameters = operation["parameters"].as_array().unwrap();
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

/// A file is opened with the described type of body, and then answers under its ID.
async fn opened(server: &Server, method: &str, path: &str, operation: &Value) {
    let responses = operation["responses"].as_object().unwrap();
    let is_described = |status: axum::http::StatusCode| responses.contains_key(status.as_str());
    let kind = "application/octet-stream";
    let (status, body) = server.post("/api/v1/opened?name=a.folded", kind, "main;f 3\nmain;g 1\n").await;
    let entry: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((status.as_u16(), &entry["samples"], &entry["name"]), (201, &json!(4), &json!("a.folded")));
    if method == "post" {
        assert!(is_described(status) && operation["requestBody"]["content"][kind].is_object());
        let members: Vec<&String> = entry.as_object().unwrap().keys().collect();
        let described = description_of(server, "OpenedFile").await;
        assert_eq!(members, described["properties"].as_object().unwrap().keys().collect::<Vec<_>>());
        // A page of another site can send text without permission, and a letter is not a profile.
        for (kind, body) in [("text/plain", "main;f 3\n"), (kind, "Dear reader,\n")] {
            let (status, _) = server.post(path, kind, body).await;
            assert!(status == 400 && is_described(status), "{kind}: {status}");
        }
        return;
    }
    let at = |id: &str, answer: &str| path.replace("{id}", id).replace("{answer}", answer);
    let id = entry["id"].as_str().unwrap();
    for (path, wanted) in
        [(at(id, "functions"), 200), (at(id, "functions?colour=red"), 400), (at("0123", "functions"), 404)]
    {
        let (status, body) = server.get(&path).await;
        assert_eq!(status, wanted, "{path}: {}", String::from_utf8_lossy(&body));
        assert!(is_described(status), "{path}: {status}");
    }
}

async fn description_of(server: &Server, schema: &str) -> Value {
    let (_, body) = server.get("/api/v1/openapi.json").await;
    let description: Value = serde_json::from_slice(&body).unwrap();
    description["components"]["schemas"][schema].clone()
}

#[tokio::test]
async fn a_selection_is_answered_like_a_recording() {
    let server = server("api-selection").await;
    let ms = |samples: u64| json!(samples * 10_000_000);
    let about = get(&server, "selection", API).await;
    // The stacks came with their counts.
    let selected = &about["selected"];
    assert_eq!((&selected["kept_samples"], &selected["kept_weight"]), (&json!(10), &ms(10)));
    assert_eq!((&about["name"], &about["warnings"]), (&json!("{service_name=\"api\"}"), &json!([])));
    let table = get(&server, "selection/functions", &format!("{API}&focus=%5Ef%24")).await;
    let rows: Vec<(&str, &Value, &Value)> = table["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["sym"].as_str().unwrap(), &row["self_weight"], &row["children_weight"]))
        .collect();
    assert_eq!(rows, [("f", &ms(1), &ms(5)), ("main", &ms(0), &ms(5)), ("g", &ms(4), &ms(4))]);
    let g = get(&server, "selection/function", &format!("{API}&name=g")).await;
    assert_eq!(g["trees"][0]["nodes"][0]["children_weight"], ms(9));
    let web = "base-query=%7Bservice_name%3D%22web%22%7D";
    let diff = get(&server, "selection/diff", &format!("{API}&{web}&per=second")).await;
    assert_eq!((&diff["base"]["weight"], &diff["new"]["weight"]), (&ms(7), &ms(10)));
    let h = diff["rows"].as_array().unwrap().iter().find(|row| row["function"] == "h").unwrap();
    assert_eq!(h["share"], json!([1.0, 0.0]));
    let range = format!("from={}&until={}", TIME - 60, TIME + 60);
    for (path, status) in [
        ("flame?", 200),
        ("diff/flame?base-query=%7B%7D&", 200),
        ("explain?", 200),
        ("kernel?", 200),
        ("export?format=speedscope&", 200),
        ("listing?name=g&", 200),
        ("timeline?", 404),
        ("functions?colour=red&", 400),
    ] {
        let (answered, body) = server.get(&format!("/api/v1/selection/{path}{range}&{API}")).await;
        assert_eq!(answered.as_u16(), status, "{path}: {}", String::from_utf8_lossy(&body));
    }
    for (boxes, expected) in [("", json!([6, null])), ("boxes=3&", json!([5, 3]))] {
        let (_, body) = server.get(&format!("/api/v1/selection/flame?{boxes}{range}&{API}")).await;
        let header = body.split(|&byte| byte == b'\n').next().unwrap();
        let header: Value = serde_json::from_slice(header).unwrap();
        assert_eq!(json!([header["boxes"], header["leftOut"]]), expected, "{header}");
    }
    // A profile could name any file of the server's machine: lines have numbers, no text.
    let listing = get(&server, "selection/listing", &format!("{API}&name=g")).await;
    assert_eq!((&listing["samples"], &listing["instructions"]), (&json!(9), &json!([])));
    assert!(listing["lines"].as_array().unwrap().iter().all(|line| line["text"] == Value::Null), "{listing}");
    let nobody = get(
        &server,
        "selection",
        "query=%7Bservice_name%3D%22nobody%22%7D&type=process_cpu:cpu:nanoseconds:cpu:nanoseconds",
    )
    .await;
    assert_eq!(nobody["selected"]["samples"], 0);
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

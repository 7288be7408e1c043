//! A server, profiles pushed to it, and queries: the numbers that were sent.

#![cfg(feature = "server")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::serving::Serving;
use crate::spun::{folder, open_to_others, plumb, reported, succeeds, text};
use plumb_fixtures::{Requirement, needs_command};

/// 700 of 1,000 in work, which main calls.
const API: &str = "api;main;work 700\napi;main;rest;deep 300\n";
const BATCH: &str = "batch;main;sort 500\n";

/// A server that has both profiles.
fn served(name: &str) -> (PathBuf, Serving) {
    let folder = folder(name);
    std::fs::write(folder.join("api.folded"), API).expect("it can be written");
    std::fs::write(folder.join("batch.folded"), BATCH).expect("it can be written");
    let serving = Serving::start(&folder, &[]);
    for service in ["api", "batch"] {
        let file = format!("{service}.folded");
        let said = succeeds(&folder, &["push", &file, "--service", service, "--to", &serving.url]);
        assert!(said.contains(&format!("samples of {service}")), "{said}");
    }
    (folder, serving)
}

#[test]
fn what_was_pushed_is_what_query_shows() {
    let (folder, serving) = served("serve-query");
    let query = |words: &[&str]| succeeds(&folder, &[&["query", "--to", &serving.url], words].concat());
    assert_eq!(query(&["services"]), "api\nbatch\n");
    let functions = query(&["functions", "--query", "{service_name=\"api\"}"]);
    let row = |name: &str| -> Vec<String> {
        let line = functions.lines().find(|line| line.ends_with(name)).expect("it has a row");
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(row("work"), ["70.0%", "70.0%", "work"]);
    assert_eq!(row("main"), ["0.0%", "100.0%", "main"]);
    assert!(!functions.contains("sort"), "{functions}");
    let callers = query(&["callers", "rest"]);
    assert!(callers.contains("100.0%  main") && callers.contains("100.0%  deep"), "{callers}");
    let series = query(&["series"]);
    let shares: Vec<(&str, &str)> = series
        .lines()
        .skip(1)
        .map(|line| (line.split_whitespace().nth(1).unwrap_or(""), line.rsplit(' ').next().unwrap_or("")))
        .collect();
    assert_eq!(shares, [("66.7%", "api"), ("33.3%", "batch")]);
}

#[test]
fn files_of_a_store_are_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, serving) = served("serve-private");
    let store = folder.join("store");
    assert_eq!(open_to_others(&store), Vec::<PathBuf>::new(), "with a log");
    let flushed = Command::new("curl")
        .args(["-sf", "-o", "/dev/null", "-X", "POST", &format!("{}/api/v1/admin/flush", serving.url)])
        .status();
    if needs_command(Requirement::Tools, "curl") {
        assert!(flushed.is_ok_and(|status| status.success()));
        assert_eq!(open_to_others(&store), Vec::<PathBuf>::new(), "with a block");
    }
    drop(serving);
    // As a packager or an older version made it.
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let _again = Serving::start(&folder, &[]);
    let mode = std::fs::metadata(&store).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o750, "the group's access is its owner's choice");
}

#[test]
fn tokens_are_read_again_on_a_signal() {
    use std::os::unix::fs::PermissionsExt;
    if !needs_command(Requirement::Tools, "curl") {
        return;
    }
    let folder = folder("serve-reload");
    let tokens = folder.join("tokens");
    let write = |text: &str| {
        std::fs::write(&tokens, text).expect("it can be written");
        std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    };
    write("first-0123456789 read\n");
    let serving = Serving::start(&folder, &["--tokens", "tokens"]);
    let url = format!("{}/querier.v1.QuerierService/LabelNames", serving.url);
    let is_let_in = |token: &str| {
        let header = format!("Authorization: Bearer {token}");
        let answer = answered(&url, &["-H", "Content-Type: application/json", "-d", "{}", "-H", &header]);
        answer.starts_with("HTTP/1.1 200")
    };
    assert!(is_let_in("first-0123456789") && !is_let_in("second-0123456789"));
    write("second-0123456789 read\n");
    let killed = Command::new("kill").args(["-HUP", &serving.child.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    while !is_let_in("second-0123456789") {
        std::thread::yield_now();
    }
    assert!(!is_let_in("first-0123456789"));
}

/// The answer to a POST, with its headers.
fn answered(url: &str, options: &[&str]) -> String {
    let output = Command::new("curl").args(["-si", "-X", "POST"]).args(options).arg(url).output();
    text(&output.expect("curl runs").stdout)
}

#[test]
fn answers_say_that_profiles_are_missing_where_a_block_is_damaged() {
    if !needs_command(Requirement::Tools, "curl") {
        return;
    }
    let folder = folder("serve-missing");
    let serving = Serving::start(&folder, &[]);
    for (service, stacks) in [("api", API), ("batch", BATCH)] {
        let file = format!("{service}.folded");
        std::fs::write(folder.join(&file), stacks).expect("it can be written");
        succeeds(&folder, &["push", &file, "--service", service, "--to", &serving.url]);
        answered(&format!("{}/api/v1/admin/flush", serving.url), &[]);
    }
    drop(serving);
    let blocks = folder.join("store/blocks/anonymous/blocks");
    let mut blocks: Vec<_> = std::fs::read_dir(blocks).expect("there are blocks").flatten().collect();
    blocks.sort_by_key(std::fs::DirEntry::file_name);
    assert_eq!(blocks.len(), 2);
    std::fs::remove_file(blocks[0].path().join("series.parquet")).expect("it is there");
    let serving = Serving::start(&folder, &[]);
    let output = plumb(&folder, &["query", "--to", &serving.url, "services"]);
    let (services, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && services.lines().count() == 1, "{services}{said}");
    assert_eq!(said.matches("profiles are missing").count(), 1, "{said}");
    let url = format!("{}/querier.v1.QuerierService/LabelNames", serving.url);
    let json = ["-H", "Content-Type: application/json", "-d", "{}"];
    let answer = answered(&url, &json);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\nplumb-missing: 1"), "{answer}");
    let other = answered(&url, &[&json[..], &["-H", "X-Scope-OrgID: other"]].concat());
    assert!(!other.contains("plumb-missing"), "another tenant lacks nothing: {other}");
    let metrics = Command::new("curl").args(["-s", &format!("{}/metrics", serving.url)]).output();
    assert!(text(&metrics.expect("curl runs").stdout).contains("plumb_store_damaged_blocks 1"));
}

#[test]
fn what_a_server_selects_is_read_by_url_and_exported_in_every_format() {
    let (folder, serving) = served("serve-url");
    let url = format!("{}/?query={{service_name=\"api\"}}", serving.url);
    let report = reported(&folder, &url);
    let (own, with_children, _) = report["work"];
    assert_eq!((own, with_children, report["main"].1), (700, 700, 1000));
    for name in ["x.pb.gz", "x.speedscope.json", "x.firefox.json", "x.folded", "x.plumb"] {
        succeeds(
            &folder,
            &["query", "--to", &serving.url, "--query", "{service_name=\"api\"}", "export", "-o", name],
        );
        let folded = succeeds(&folder, &["fold", name]);
        let work: Vec<&str> = folded.lines().filter(|line| line.contains(";work ")).collect();
        assert!(work.len() == 1 && work[0].ends_with(" 700"), "{name}: {folded}");
    }
}

/// Requests of OpenTelemetry's profiler, gzipped and not: each timestamp of a sample is one sample of its program.
#[test]
fn requests_of_opentelemetry_are_pushed_as_they_are() {
    let folder = folder("serve-otlp");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/golden/otlp");
    let packed = std::fs::read(golden.join("export-0.bin.gz")).expect("it is there");
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&*packed).read_to_end(&mut unpacked).expect("it is gzipped");
    std::fs::write(folder.join("sent.bin"), unpacked).expect("it can be written");
    std::fs::write(folder.join("sent.bin.gz"), packed).expect("it can be written");
    let serving = Serving::start(&folder, &[]);
    let expected = std::fs::read(golden.join("expected.json")).expect("it is there");
    let expected: serde_json::Value = serde_json::from_slice(&expected).expect("it is JSON");
    let programs = expected["export-0.bin"].as_object().expect("it has programs");
    let said = succeeds(&folder, &["push", "sent.bin", "--to", &serving.url]);
    let query = |words: &[&str]| {
        succeeds(&folder, &[&["query", "--from", "1", "--to", &serving.url], words].concat())
    };
    for (program, of) in programs {
        assert!(said.contains(program.as_str()), "{said}");
        let selector = format!("{{service_name=\"{program}\"}}");
        let found: serde_json::Value =
            serde_json::from_str(&query(&["functions", "--json", "--query", &selector])).expect("it is JSON");
        let period = 1e9 / 97.0;
        let samples = found["total"].as_f64().expect("a number") / period;
        assert_eq!(samples.round(), of["samples"].as_f64().expect("a number"), "{program}");
    }
    let named = ["push", "sent.bin.gz", "--service", "shop", "--label", "region=eu", "--to", &serving.url];
    assert!(succeeds(&folder, &named).contains("profiles of shop to"), "one service");
    assert_eq!(query(&["services", "--query", "{region=\"eu\"}"]), "shop\n");
    // plumb's exports have no service; the program's name is used.
    std::fs::write(folder.join("api.folded"), API).expect("it can be written");
    succeeds(&folder, &["export", "api.folded", "-o", "own.otlp"]);
    assert!(
        succeeds(&folder, &["push", "own.otlp", "--to", &serving.url]).contains("sent 1 profile of own to")
    );
    let kind = plumb(&folder, &["push", "sent.bin", "--kind", "wall", "--to", &serving.url]);
    assert_eq!(kind.status.code(), Some(2));
    assert!(text(&kind.stderr).contains("leave out --kind"), "{}", text(&kind.stderr));
}

/// A receiver that accepts a request but not all of its profiles.
#[test]
fn profiles_that_a_receiver_rejects_are_told() {
    let folder = folder("serve-otlp-rejected");
    std::fs::write(folder.join("api.folded"), API).expect("it can be written");
    succeeds(&folder, &["export", "api.folded", "-o", "own.otlp"]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it listens"));
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("it is asked");
        let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let mut line = String::new();
            reader.read_line(&mut line).expect("it is text");
            let lower = line.to_ascii_lowercase();
            if let Some(number) = lower.strip_prefix("content-length:") {
                length = number.trim().parse().expect("a number");
            }
            head += &line;
        }
        reader.read_exact(&mut vec![0; length]).expect("the body comes");
        // partial_success { rejected_profiles: 1, error_message: "too old" }
        let body = b"\x0a\x0b\x08\x01\x12\x07too old";
        let length = body.len();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        stream.write_all(&[answer.as_bytes(), body].concat()).expect("it is read");
        head
    });
    let output = plumb(&folder, &["push", "own.otlp", "--to", &url]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("rejected 1 of the 1 profiles in own.otlp: too old"), "{said}");
    let head = receiver.join().expect("it was asked");
    assert!(head.starts_with("POST /v1development/profiles "), "{head}");
}

/// Text in the format of `perf script -F comm,pid,tid,time,period,event,ip,sym`: samples of CPU time, 600 of 1,000 in the allocator.
fn script() -> String {
    let mut text = String::new();
    for number in 0..1000 {
        let leaf =
            ["malloc", "malloc", "malloc", "free", "parse", "render", "malloc", "parse", "free", "malloc"];
        let (second, micro) = (number / 100, number % 100 * 10_000);
        text += &format!(
            "server  100/100 {second}.{micro:06}:   10000000 cpu-clock: \n\t    10 {} (/no/such/app)\n\t    20 handle (/no/such/app)\n\t    30 main (/no/such/app)\n\n",
            leaf[number % 10]
        );
    }
    text
}

/// Removes the wall-clock gain: a store doesn't know the duration of a recording.
fn without_elapsed(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.remove("elapsed_percent");
            fields.remove("gain_text");
            fields.values_mut().for_each(without_elapsed);
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(without_elapsed),
        _ => {}
    }
}

#[test]
fn the_verdict_on_what_was_pushed_is_that_of_explain() {
    let folder = folder("serve-verdict");
    std::fs::write(folder.join("api.folded"), API).expect("it can be written");
    std::fs::write(folder.join("app.txt"), script()).expect("it can be written");
    let serving = Serving::start(&folder, &[]);
    for (service, file) in [("api", "api.folded"), ("app", "app.txt")] {
        succeeds(&folder, &["push", file, "--service", service, "--to", &serving.url]);
        let json = |words: &[&str]| -> serde_json::Value {
            let mut report = serde_json::from_str(&succeeds(&folder, words)).expect("it is JSON");
            without_elapsed(&mut report);
            report
        };
        let explained = json(&["explain", "--json", file]);
        let query = format!("{{service_name=\"{service}\"}}");
        let told = json(&["query", "verdict", "--query", &query, "--json", "--to", &serving.url]);
        // The parts that a profile in the store still has: stacks, names, weights and the number of samples.
        for part in ["unit", "counted", "split", "functions", "causes", "verdict", "left_out", "lines"] {
            assert_eq!(told[part], explained[part], "{part} of {service}");
        }
        for part in ["samples", "nameless", "ten_percent_is", "complete_stacks_percent"] {
            assert_eq!(told["quality"][part], explained["quality"][part], "{part} of {service}");
        }
    }
    let shown =
        succeeds(&folder, &["query", "verdict", "--query", "{service_name=\"app\"}", "--to", &serving.url]);
    assert!(shown.contains("1000 samples"), "{shown}");
    let malloc = shown.lines().find(|line| line.ends_with("  malloc")).expect("it has a row");
    assert_eq!(malloc.split_whitespace().collect::<Vec<_>>(), ["50.0%", "50.0%", "malloc"]);
    // The suggested command gives the same, and more.
    let more =
        shown.lines().find_map(|line| line.strip_prefix("more  plumb explain ")).expect("it names one");
    let more = succeeds(&folder, &["explain", more.trim_matches('\'')]);
    assert!(more.contains("malloc") && more.contains("1000 samples"), "{more}");
}

/// Other commands show the same for a selection as for the file.
#[test]
fn trees_flame_graphs_and_differences_are_those_of_other_commands() {
    let (folder, serving) = served("serve-passed-on");
    let query = |words: &[&str]| succeeds(&folder, &[&["query", "--to", &serving.url], words].concat());
    let api = ["--query", "{service_name=\"api\"}"];
    let tree = query(&[&["tree"], &api[..]].concat());
    assert!(tree.contains("70.0") && tree.contains("work") && !tree.contains("sort"), "{tree}");
    query(&[&["flame", "-o", "x.html"], &api[..]].concat());
    let page = std::fs::read_to_string(folder.join("x.html")).expect("it is written");
    assert!(page.contains("<html"));
    let diff = query(&[&["diff", "--base-query", "{service_name=\"batch\"}"], &api[..]].concat());
    assert!(diff.contains("work") && diff.contains("sort"), "{diff}");
    // No profiles exist from before this hour.
    let output = plumb(&folder, &[&["query", "--to", &serving.url, "diff"], &api[..]].concat());
    assert!(text(&output.stderr).contains("no profiles match"), "{}", text(&output.stderr));
}

#[test]
fn findings_are_listed_with_the_command_that_shows_more() {
    let folder = folder("serve-findings");
    let serving = Serving::start(&folder, &[]);
    let empty = plumb(&folder, &["query", "findings", "--to", &serving.url]);
    assert!(text(&empty.stderr).contains("has no profiles yet"), "{}", text(&empty.stderr));
    std::fs::write(folder.join("server.txt"), script()).expect("it can be written");
    succeeds(&folder, &["push", "server.txt", "--service", "shop", "--to", &serving.url]);
    let found = succeeds(&folder, &["query", "findings", "--to", &serving.url]);
    assert!(found.starts_with("shop: ") && found.contains("of its CPU time"), "{found}");
    let more = found.lines().find(|line| line.contains("plumb explain")).expect("it says how to see more");
    let url = more.split('\'').nth(1).expect("the URL is quoted");
    assert!(succeeds(&folder, &["explain", url]).contains('%'));
    assert!(found.trim_end().ends_with("1 service, 10.000 s CPU time"), "{found}");
}

#[test]
fn errors_say_what_to_do() {
    let (folder, serving) = served("serve-errors");
    let refused = |words: &[&str]| {
        let output = plumb(&folder, words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        text(&output.stderr)
    };
    let nothing =
        refused(&["query", "functions", "--to", &serving.url, "--query", "{service_name=\"none\"}"]);
    assert!(nothing.contains("services that have some: api, batch"), "{nothing}");
    let nothing = refused(&["report", &format!("{}/?query={{service_name=\"none\"}}", serving.url)]);
    assert!(nothing.contains("no profiles match"), "{nothing}");
    let label = refused(&["query", "labels", "container_id", "--to", &serving.url]);
    assert!(label.contains("no profile has the label container_id; labels that some have: "), "{label}");
    let wrong = refused(&["query", "functions", "--to", &serving.url, "--query", "{service_name"]);
    assert!(wrong.contains("refused the request"), "{wrong}");
    let nobody = refused(&["push", "api.folded", "--to", "http://127.0.0.1:1"]);
    assert!(nobody.contains("http://127.0.0.1:1"), "{nobody}");
    let no_url = refused(&["push", "api.folded", "--to", "127.0.0.1:1"]);
    assert!(no_url.contains("http://127.0.0.1:4041"), "{no_url}");
    let missing = refused(&["push", "missing.pb.gz", "--to", &serving.url]);
    assert!(missing.contains("missing.pb.gz"), "{missing}");
    let wrong = |words: &[&str]| {
        let output = plumb(&folder, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        text(&output.stderr)
    };
    let callers = wrong(&["query", "callers", "--to", &serving.url]);
    assert!(callers.contains("plumb query callers FUNCTION"), "{callers}");
    let services = wrong(&["query", "services", "--limit", "3", "--to", &serving.url]);
    assert!(services.contains("plumb query services takes no --limit"), "{services}");
    let flame = wrong(&["query", "flame", "api", "--to", &serving.url]);
    assert!(flame.contains("takes no NAME, but got 'api'"), "{flame}");
    let symbols = wrong(&["push", env!("CARGO_BIN_EXE_plumb"), "--service", "api", "--to", &serving.url]);
    assert!(symbols.contains("leave out --service"), "{symbols}");
    let late = refused(&["query", "top", "--to", &serving.url, "--from", "now", "--until", "2023-11-14"]);
    assert!(late.contains("from is after until"), "{late}");
    let kind = refused(&["query", "top", "--to", &serving.url, "--type", "cpu"]);
    assert!(kind.contains("\"cpu\" is no profile type; selected are: process_cpu:"), "{kind}");
    let webhook =
        wrong(&["serve", "--listen", "127.0.0.1:0", "--no-agent", "--webhook", "chat.example/hook"]);
    assert!(webhook.contains("chat.example/hook is not a URL of a webhook"), "{webhook}");
    // A second server on the same store would overwrite the first one's data.
    let second = refused(&["serve", "--listen", "127.0.0.1:0", "--store", "store", "--no-agent"]);
    assert!(second.contains("store"), "{second}");
}

/// A self-signed certificate is trusted if given by option; otherwise the error suggests the option.
#[test]
fn a_server_with_a_certificate_of_ones_own_is_reached() {
    if !needs_command(Requirement::Tools, "openssl") {
        return;
    }
    let folder = folder("serve-tls");
    let script = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=plumb \
        -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE -keyout key.pem -out cert.pem && \
        echo 0123456789abcdef-of-the-test admin >tokens && echo 0123456789abcdef-of-the-test >token && chmod 600 tokens token key.pem";
    let made = Command::new("sh").args(["-c", script]).current_dir(&folder).output().expect("sh starts");
    assert!(made.status.success(), "{}", text(&made.stderr));
    std::fs::write(folder.join("api.folded"), API).expect("it can be written");
    let serving =
        Serving::start(&folder, &["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--tokens", "tokens"]);
    let access = ["--to", &serving.url, "--token", "token", "--ca-cert", "cert.pem"];
    succeeds(&folder, &[&["push", "api.folded", "--service", "api"][..], &access].concat());
    assert_eq!(succeeds(&folder, &[&["query", "services"][..], &access].concat()), "api\n");
    let tree = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["query", "tree", "--to", &serving.url])
        .envs([("PLUMB_TOKEN_FILE", "token"), ("PLUMB_CA_CERT", "cert.pem")])
        .current_dir(&folder)
        .output()
        .expect("plumb starts");
    assert!(text(&tree.stdout).contains("work"), "{}", text(&tree.stderr));
    let untrusted = plumb(&folder, &["query", "services", "--to", &serving.url, "--token", "token"]);
    let said = text(&untrusted.stderr);
    assert!(!untrusted.status.success() && said.contains("--ca-cert FILE or PLUMB_CA_CERT"), "{said}");
    let wrong = plumb(&folder, &[&["query", "services"][..], &access[..4], &["--ca-cert", "token"]].concat());
    assert!(text(&wrong.stderr).contains("it holds no certificate"), "{}", text(&wrong.stderr));
}

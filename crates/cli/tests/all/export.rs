//! `plumb export`: other tools read the same numbers as `plumb report` shows.
//!
//! Needs a C compiler, and each tool; without them, a test prints so and is skipped.

use crate::spun;
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::spun::{FUNCTIONS, folder, plumb, recorded, reported, succeeds, text};
use plumb_fixtures::{Requirement, skip};
use serde_json::Value;

/// Runs a tool in a directory, which has to succeed; `None`, after skipping, if it is not installed.
fn tool(folder: &Path, words: &[&str]) -> Option<String> {
    let requirement = match words[0] {
        "go" => Requirement::Go,
        "node" => Requirement::Node,
        "python3" => Requirement::Python,
        _ => Requirement::Tools,
    };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(folder).env("PPROF_TMPDIR", folder).stdin(Stdio::null());
    plumb_fixtures::probe::keep_go_cache(&mut command, folder);
    match command.output() {
        // The scripts of web/ exit with this status if npm's packages or a browser are missing.
        Ok(output) if words[0] == "node" && output.status.code() == Some(77) => {
            skip(requirement, text(&output.stdout));
            None
        }
        Ok(output) => {
            assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
            Some(text(&output.stdout))
        }
        Err(error) => {
            skip(requirement, format_args!("{}: {error}", words[0]));
            None
        }
    }
}

#[test]
fn pprof_reads_what_report_says() {
    let Some(folder) = recorded("export-pprof") else { return };
    succeeds(&folder, &["export", "-o", "stacks.pb.gz"]);
    let arguments = ["-top", "-unit=ns", "-nodefraction=0", "-edgefraction=0", "-symbolize=none"];
    let words = [&["go", "tool", "pprof"][..], &arguments, &["stacks.pb.gz"]].concat();
    let Some(top) = tool(&folder, &words) else { return };
    assert!(top.starts_with("File: stacks\n"), "{top}");
    assert!(top.contains("Type: cpu\n"), "{top}");
    let reported = reported(&folder, "profile.plumb");
    let all: u64 = reported.values().map(|spent| spent.0).sum();
    assert!(top.contains(&format!("of {all}ns total")), "{all}: {top}");
    let mut found = HashMap::new();
    for line in top.lines().skip_while(|line| !line.contains("flat%")).skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let weight = |word: &str| word.trim_end_matches("ns").parse::<u64>().unwrap_or(0);
        found.insert(words[5].to_owned(), (weight(words[0]), weight(words[3])));
    }
    for name in FUNCTIONS {
        let (own, total, _) = reported[name];
        assert_eq!(found[name], (own, total), "{name}: {top}");
    }
}

#[test]
fn callgrind_annotate_reads_what_report_says() {
    let Some(folder) = recorded("export-callgrind") else { return };
    succeeds(&folder, &["export", "-o", "stacks.callgrind"]);
    let annotate = |inclusive: &str| {
        let arguments = ["--auto=no", "--threshold=100", "--show-percs=no", inclusive, "stacks.callgrind"];
        tool(&folder, &[&["callgrind_annotate"][..], &arguments].concat())
    };
    let (Some(own), Some(total)) = (annotate("--inclusive=no"), annotate("--inclusive=yes")) else { return };
    let reported = reported(&folder, "profile.plumb");
    let all: u64 = reported.values().map(|spent| spent.0).sum();
    let number = |line: &str| {
        line.split_whitespace().next().and_then(|word| word.replace(',', "").parse::<u64>().ok())
    };
    let totals = own.lines().find(|line| line.ends_with("PROGRAM TOTALS")).and_then(number);
    assert_eq!(totals, Some(all), "{own}");
    // `1,234  file.c:function [object]`
    let costs = |text: &str| {
        let mut costs: HashMap<String, u64> = HashMap::new();
        for line in text.lines().filter(|line| line.contains(':') && line.contains(" [")) {
            let name = line.split(" [").next().and_then(|start| start.rsplit(':').next());
            if let (Some(cost), Some(name)) = (number(line), name) {
                *costs.entry(name.to_owned()).or_default() += cost;
            }
        }
        costs
    };
    let (own_costs, total_costs) = (costs(&own), costs(&total));
    for name in FUNCTIONS {
        let (self_weight, children, _) = reported[name];
        assert_eq!(own_costs.get(name).copied().unwrap_or(0), self_weight, "{name}: {own}");
        assert_eq!(total_costs.get(name), Some(&children), "{name}: {total}");
    }
}

#[test]
fn speedscope_gets_every_sample() {
    let Some(folder) = recorded("export-speedscope") else { return };
    succeeds(&folder, &["export", "-o", "stacks.speedscope.json"]);
    let written = std::fs::read_to_string(folder.join("stacks.speedscope.json")).expect("it was written");
    let file: Value = serde_json::from_str(&written).expect("it is JSON");
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = file["shared"]["frames"].as_array().expect("there are frames");
    let (mut all, mut inside) = (0, 0);
    for profile in file["profiles"].as_array().expect("there are profiles") {
        assert_eq!((&profile["type"], &profile["unit"]), (&"sampled".into(), &"nanoseconds".into()));
        let samples = profile["samples"].as_array().expect("there are samples");
        let weights = profile["weights"].as_array().expect("there are weights");
        assert_eq!(samples.len(), weights.len());
        let weights: Vec<u64> = weights.iter().filter_map(Value::as_u64).collect();
        assert_eq!(profile["endValue"], weights.iter().sum::<u64>());
        for (sample, weight) in samples.iter().zip(weights) {
            let place = |place: &Value| frames[place.as_u64().expect("a place") as usize]["name"].as_str();
            let names: Vec<&str> = sample.as_array().expect("a stack").iter().filter_map(place).collect();
            // Outermost first.
            all += weight;
            inside += if names.first() == Some(&"_start") && names.contains(&"main") { weight } else { 0 };
        }
    }
    let reported = reported(&folder, "profile.plumb");
    assert_eq!(all, reported.values().map(|spent| spent.0).sum::<u64>());
    assert!(inside * 10 > reported["main"].1 * 9, "{inside} of {all}");
}

/// speedscope's own readers of these formats; each saves its input in speedscope's format.
#[test]
fn speedscope_reads_what_report_says() {
    let Some(folder) = recorded("export-to-speedscope") else { return };
    // speedscope reads no inlined calls from pprof.
    succeeds(&folder, &["export", "--no-inline", "-o", "plain.pb.gz"]);
    let reported = reported(&folder, "plain.pb.gz");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/test/speedscope.mjs");
    for name in ["x.speedscope.json", "x.pb.gz", "x.callgrind", "x.folded", "x.perf.txt", "x.trace.json"] {
        succeeds(&folder, &["export", "--no-inline", "-o", name]);
        if tool(&folder, &["node", script, name, "saved.json"]).is_none() {
            return;
        }
        let saved = spun::reported(&folder, "saved.json");
        for function in ["main", "fib", "busy", "asks", "worker"] {
            let (own, total, samples) = reported[function];
            match name {
                "x.folded" => assert_eq!(saved[function].0, samples, "{name}: {function}"),
                // speedscope uses the time between samples.
                "x.perf.txt" => assert!(saved[function].1 > 0, "{name}: {function}"),
                // speedscope appends a slice's arguments to its name. Slices reach from sample to sample.
                "x.trace.json" => {
                    let start = format!("{function} {{");
                    let slices = saved.iter().filter(|(name, _)| name.starts_with(&start));
                    let found: u64 = slices.map(|(_, spent)| spent.1).sum();
                    let ratio = found as f64 / total as f64;
                    assert!((0.7..1.4).contains(&ratio), "{name}: {function}: {found} {total}");
                }
                // In that format a function is one entry, whoever calls it. A sample within pthread_create, which ends in a thread's start
                // function, leaves the thread without a root: speedscope then drops its time. (callgrind_annotate has
                // all of it, see above.)
                "x.callgrind" if ["busy", "worker"].contains(&function) => {
                    assert!(saved.get(function).is_none_or(|spent| spent.1 <= total), "{name}: {function}");
                }
                _ => assert_eq!((saved[function].0, saved[function].1), (own, total), "{name}: {function}"),
            }
        }
    }
}

/// The Firefox Profiler's own code, in its command-line version.
#[test]
fn the_firefox_profiler_reads_what_report_says() {
    let Some(folder) = recorded("export-firefox") else { return };
    succeeds(&folder, &["export", "-o", "x.firefox.json"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../web/node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js");
    if !script.exists() {
        skip(Requirement::Node, "profiler-cli is not installed (run `npm ci` in web/)");
        return;
    }
    let cli = |arguments: &[&str]| {
        let mut node = Command::new("node");
        node.arg(&script)
            .args(arguments)
            .args(["--session", "test"])
            .current_dir(&folder)
            .stdin(Stdio::null());
        node.env("PROFILER_CLI_SESSION_DIR", &folder).env("PROFILER_CLI_NO_SYMBOLICATE", "1");
        node.output().ok().filter(|output| output.status.success()).map(|output| text(&output.stdout))
    };
    // The first command starts a server process for the others, which may take longer than they wait.
    let loaded = cli(&["load", "x.firefox.json"]);
    let wait = || std::thread::sleep(Duration::from_millis(500));
    let list = (0..60).find_map(|_| cli(&["thread", "list", "--json"]).or_else(|| (wait(), None).1));
    let Some(list) = list else {
        skip(Requirement::Node, format_args!("profiler-cli doesn't run here: {loaded:?}"));
        return;
    };
    let list: Value = serde_json::from_str(&list).expect("it is JSON");
    let handles = list["threads"].as_array().expect("there are threads").iter();
    let handles: Vec<&str> = handles.filter_map(|thread| thread["threadHandle"].as_str()).collect();
    let tables: Vec<Option<String>> =
        handles.iter().map(|handle| cli(&["thread", "functions", "--json", "--thread", handle])).collect();
    cli(&["stop"]);
    let mut spent: HashMap<String, (u64, u64)> = HashMap::new();
    for table in tables {
        let table: Value =
            serde_json::from_str(&table.expect("each thread has a table")).expect("it is JSON");
        assert_eq!(table["weightType"], "tracing-ms");
        for function in table["functions"].as_array().expect("there are functions") {
            let ns = |key: &str| (function[key].as_f64().expect("milliseconds") * 1e6).round() as u64;
            let sum = spent.entry(function["name"].as_str().expect("a name").to_owned()).or_default();
            *sum = (sum.0 + ns("selfSamples"), sum.1 + ns("totalSamples"));
        }
    }
    let reported = reported(&folder, "profile.plumb");
    for function in FUNCTIONS {
        let (own, total, _) = reported[function];
        // Sums of fractions.
        let is_near = |found: u64, wanted: u64| found.abs_diff(wanted) < 1000;
        let found = spent[function];
        assert!(is_near(found.0, own) && is_near(found.1, total), "{function}: {found:?}, {own} {total}");
    }
}

#[test]
fn a_spreadsheet_gets_every_sample() {
    let Some(folder) = recorded("export-csv") else { return };
    succeeds(&folder, &["export", "-o", "stacks.csv"]);
    let script = "import csv, sys\n\
                  rows = list(csv.DictReader(open('stacks.csv', newline='')))\n\
                  times = [int(row['time_ns']) for row in rows]\n\
                  assert times == sorted(times)\n\
                  print(sum(int(row['weight']) for row in rows))\n\
                  print(sum(int(row['weight']) for row in rows if 'fib' in row['stack'].split(';')))\n\
                  print(sorted({row['comm'] for row in rows}))\n";
    let Some(sums) = tool(&folder, &["python3", "-c", script]) else { return };
    let reported = reported(&folder, "profile.plumb");
    let all: u64 = reported.values().map(|spent| spent.0).sum();
    assert_eq!(sums, format!("{all}\n{}\n['stacks', 'worker']\n", reported["fib"].1));
}

/// Required fields, nested slices, and no more time in a function than recorded. (Perfetto's own
/// reader is a download, not a package; speedscope's is tested above.)
#[test]
fn a_trace_has_slices_of_all_threads() {
    let Some(folder) = recorded("export-trace") else { return };
    succeeds(&folder, &["export", "-o", "stacks.trace.json"]);
    let written = std::fs::read(folder.join("stacks.trace.json")).expect("it was written");
    let file: Value = serde_json::from_slice(&written).expect("it is JSON");
    let mut open: HashMap<u64, Vec<(&str, f64)>> = HashMap::new();
    let mut threads = Vec::new();
    let (mut last, mut fib) = (HashMap::new(), 0.0);
    for event in file["traceEvents"].as_array().expect("there are events") {
        let tid = event["tid"].as_u64().expect("a thread");
        assert!(event["pid"].is_u64());
        let name = event["name"].as_str().expect("a name");
        let kind = event["ph"].as_str().expect("a kind");
        if kind == "M" {
            if name == "thread_name" {
                threads.extend(event["args"]["name"].as_str());
            }
            continue;
        }
        let time = event["ts"].as_f64().expect("microseconds");
        assert!(time >= *last.entry(tid).or_insert(time), "{event}");
        last.insert(tid, time);
        let open = open.entry(tid).or_default();
        match kind {
            "B" => open.push((name, time)),
            "E" => {
                let (begun, since) = open.pop().expect("what ends has begun");
                assert_eq!(begun, name);
                // Only the outermost of a recursion.
                if name == "fib" && open.iter().all(|(above, _)| *above != "fib") {
                    fib += time - since;
                }
            }
            other => panic!("{other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty));
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads, ["stacks", "worker"]);
    let reported = reported(&folder, "profile.plumb")["fib"].1 as f64 / 1e3;
    assert!((0.8..1.3).contains(&(fib / reported)), "{fib} {reported}");
}

#[test]
fn what_is_no_format_is_said() {
    let folder = folder("export-none");
    let output = plumb(&folder, &["export", "-o", "x.json", "none.plumb"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("--format"), "{}", text(&output.stderr));
}

#[test]
fn a_trace_without_times_is_refused() {
    let folder = folder("export-timeless");
    std::fs::write(folder.join("x.folded"), "main;work 3\nmain 2\n").expect("the folder is there");
    let output = plumb(&folder, &["export", "-o", "x.trace.json", "x.folded"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("needs timestamps"), "{}", text(&output.stderr));
}

//! Files of other tools as FILE: every command shows their content.
//!
//! Needs a C compiler, and each tool; without them, a test prints so and is skipped.

use crate::spun;
use std::process::Command;

use crate::spun::{FUNCTIONS, compiled, folder, plumb, recorded, reported, succeeds, text};
use plumb_fixtures::{Requirement, needs};
use serde_json::Value;

/// Reports of an exported file equal those of the recording.
#[test]
fn what_was_exported_reports_the_same() {
    let Some(folder) = recorded("import-exported") else { return };
    let recording = reported(&folder, "profile.plumb");
    for name in ["x.pb.gz", "x.speedscope.json", "x.firefox.json.gz", "x.perf.txt"] {
        succeeds(&folder, &["export", "-o", name]);
        // The format is recognised by content, not by name.
        std::fs::rename(folder.join(name), folder.join("some file")).expect("it was written");
        let back = reported(&folder, "some file");
        for function in FUNCTIONS {
            assert_eq!(back.get(function), recording.get(function), "{name}: {function}");
        }
    }
    // Folded stacks count samples.
    succeeds(&folder, &["export", "-o", "x.folded"]);
    let back = reported(&folder, "x.folded");
    for function in FUNCTIONS {
        let samples = recording[function].2;
        assert_eq!((back[function].0, back[function].2), (samples, samples), "{function}");
    }
}

/// Advice on recording the functions of a script is for recordings alone: a profile of another tool may have them, unmarked.
#[test]
fn a_profile_of_another_tool_is_not_to_be_recorded_otherwise() {
    let folder = folder("import-script");
    std::fs::write(
        folder.join("x.folded"),
        "python3;_PyEval_EvalFrameDefault;work 40\npython3;_PyEval_EvalFrameDefault 2\n",
    )
    .expect("it can be written");
    let report = succeeds(&folder, &["report", "x.folded"]);
    assert!(report.contains("work") && !report.contains("# Python:"), "{report}");
}

/// The hot spots are the same, and data missing in the file is reported as missing, not invented.
#[test]
fn what_was_exported_is_explained_with_what_it_lacks() {
    let Some(folder) = recorded("import-explained") else { return };
    let explained = |file: &str| -> Value {
        serde_json::from_str(&succeeds(&folder, &["explain", "--json", file])).expect("it is JSON")
    };
    let share = |report: &Value, name: &str| {
        let functions = report["functions"].as_array().expect("there is a list");
        let found = functions.iter().find(|one| one["function"] == name);
        found.map(|one| one["self_cost"]["samples"].as_u64().expect("a number"))
    };
    let recording = explained("profile.plumb");
    let lines = recording["lines"].as_array().expect("there is a list").len();
    assert!(FUNCTIONS.iter().any(|name| share(&recording, name).is_some()) && lines > 0, "{recording}");
    assert!(recording["counted"].is_null(), "{}", recording["counted"]);
    for (name, counted) in [
        ("x.pb.gz", None),
        ("x.perf.txt", None),
        ("x.firefox.json", Some("time")),
        ("x.speedscope.json", Some("time")),
        ("x.folded", Some("samples")),
    ] {
        succeeds(&folder, &["export", "-o", name]);
        let report = explained(name);
        assert_eq!(report["counted"].as_str(), counted, "{name}");
        for function in FUNCTIONS {
            assert_eq!(share(&report, function), share(&recording, function), "{name}: {function}");
        }
        assert!(report["time"]["class"].is_null() || counted.is_none(), "{name}: {}", report["time"]);
        if counted.is_some() {
            let screen = succeeds(&folder, &["explain", name]);
            assert!(!screen.contains("of processor time"), "{name}: nobody knows: {screen}");
            let text = succeeds(&folder, &["explain", "--full", name]);
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let (_, quality) = words.split_once("Quality of the data").expect("it is a section");
            assert!(quality.contains("unknown whether that is processor time"), "{name}: {quality}");
            assert!(quality.contains("which tell"), "{name}: the rest that is missing: {quality}");
            assert!(quality.contains(") of what the file counts"), "{name}: {quality}");
            assert!(!quality.contains("of processor time"), "{name}: nobody knows: {quality}");
        }
    }
    // Callers of the functions, which folded stacks have too.
    let folded = explained("x.folded");
    let callers = |report: &Value| report["functions"][0]["callers"].clone();
    assert!(callers(&folded)[0]["callers"].as_array().is_some_and(|list| !list.is_empty()), "{folded}");
}

/// Callgrind's output has costs of functions and no samples, pprof's message may have no value that counts them.
#[test]
fn folded_stacks_have_the_cost_where_a_file_has_no_samples() {
    let folder = folder("import-costs");
    let text = "# callgrind format\nevent: cpu-clock : cpu-clock (ns)\nevents: cpu-clock\nfn=main\n1 30000\ncfn=work\ncalls=1 1\n2 70000\n\nfn=work\n1 70000\n";
    std::fs::write(folder.join("x.callgrind"), text).expect("the disk has room");
    let pprof = b"\x0a\x04\x08\x01\x10\x02\x12\x05\x12\x03\xf0\xa2\x04\x32\x00\x32\x03cpu\x32\x0bnanoseconds";
    std::fs::write(folder.join("x.pb"), pprof).expect("the disk has room");
    for (file, stacks) in
        [("x.callgrind", "main 30000\nmain;work 70000\n"), ("x.pb", "[no stack recorded] 70000\n")]
    {
        assert_eq!(succeeds(&folder, &["fold", file]), stacks);
        assert_eq!(succeeds(&folder, &["export", "--format", "folded", "-o", "-", file]), stacks);
        let report = succeeds(&folder, &["report", file]);
        assert!(report.contains("# Samples:  unknown number of cpu-clock, 0.000 s"), "{report}");
    }
}

/// A file whose unit is not time is not treated as time.
#[test]
fn what_is_no_time_is_not_explained_as_such() {
    let folder = folder("import-no-time");
    let script = "app 1/1 [000] 1.000000: 1 page-faults:u: \n\t1000 main+0x0 (/app)\n\n";
    std::fs::write(folder.join("x"), script).expect("the folder is there");
    let output = plumb(&folder, &["explain", "x"]);
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("page-faults"), "{said}");
}

#[test]
fn every_command_takes_them() {
    let folder = folder("import-commands");
    std::fs::write(folder.join("x"), "sh;main;work_[k] 30\nsh;main 10\n").expect("the folder is there");
    for arguments in [
        &["report", "x"][..],
        &["report", "--top-down", "x"],
        &["report", "--callers", "work", "x"],
        &["procs", "x"],
        &["kernel", "x"],
        &["explain", "x"],
        &["explain", "--full", "x"],
        &["script", "x"],
        &["fold", "x"],
        &["flame", "-o", "x.html", "x"],
        &["flame", "-o", "x.svg", "x"],
        &["doctor", "x"],
        &["export", "-o", "x.pb.gz", "x"],
    ] {
        succeeds(&folder, arguments);
    }
    let report = succeeds(&folder, &["report", "x"]);
    assert!(report.contains("neither times"), "what isn't known is said: {report}");
    assert!(report.contains("complete stacks: unknown") && !report.contains("% complete"), "{report}");
    assert!(report.lines().any(|line| line.contains("75%") && line.contains("[k] work")), "{report}");
    assert_eq!(succeeds(&folder, &["fold", "--annotate", "x"]), "sh;main 10\nsh;main;work_[k] 30\n");
}

/// A profile by Go's own library, compared with `go tool pprof`.
#[test]
fn pprof_of_a_go_program_is_read_as_go_reads_it() {
    let folder = folder("import-go");
    let program = r#"package main
import ("os"; "runtime/pprof"; "time")
//go:noinline
func work(n int) (sum int) { for i := 0; i < n; i++ { sum += i * i % 7 }; return }
func main() {
    file, _ := os.Create("go.pb.gz")
    pprof.StartCPUProfile(file)
    for end := time.Now().Add(time.Second); time.Now().Before(end); { work(100000) }
    pprof.StopCPUProfile()
    file.Close()
    heap, _ := os.Create("heap.pb.gz")
    pprof.Lookup("heap").WriteTo(heap, 0)
    heap.Close()
}
"#;
    std::fs::write(folder.join("main.go"), program).expect("the folder is there");
    if !needs(Requirement::Go) {
        return;
    }
    let command = plumb_fixtures::probe::go().expect("it was found");
    let go = |arguments: &[&str]| {
        let mut go = Command::new(command);
        go.args(arguments).current_dir(&folder).env("PPROF_TMPDIR", &folder);
        go.env("GO111MODULE", "off");
        plumb_fixtures::probe::keep_go_cache(&mut go, &folder);
        let output = go.output().expect("it was found");
        assert!(output.status.success(), "go {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    go(&["run", "main.go"]);
    let top = go(&["tool", "pprof", "-top", "-unit=ns", "-nodefraction=0", "go.pb.gz"]);
    let found = reported(&folder, "go.pb.gz");
    let line = top.lines().find(|line| line.ends_with(" main.work") || line.ends_with(" main.work (inline)"));
    let line = line.unwrap_or_else(|| panic!("{top}"));
    let weights: Vec<u64> =
        line.split_whitespace().filter_map(|word| word.strip_suffix("ns")?.parse().ok()).collect();
    assert_eq!(weights, [found["main.work"].0, found["main.work"].1], "{line}");
    // The value types are events; the default comes first.
    let heap = succeeds(&folder, &["report", "--json", "heap.pb.gz"]);
    let heap: Value = serde_json::from_str(&heap).expect("it is JSON");
    let events: Vec<&str> = heap["reports"]
        .as_array()
        .expect("reports")
        .iter()
        .filter_map(|report| report["event"].as_str())
        .collect();
    assert_eq!(events.first(), Some(&"inuse_space"), "{events:?}");
    succeeds(&folder, &["report", "--event", "alloc_objects", "heap.pb.gz"]);
}

/// samply stores addresses, unless asked for names: they are looked up in the file with the given build ID.
#[test]
fn addresses_get_names_from_the_file_with_their_build_id() {
    let folder = folder("import-addresses");
    if !compiled(&folder, "tests/programs/stacks.c", "stacks") {
        return;
    }
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program)
            .args(arguments)
            .arg(folder.join("stacks"))
            .output()
            .expect("binutils are there");
        text(&output.stdout)
    };
    let symbols = run("nm", &[]);
    let fib = symbols.lines().find_map(|line| line.strip_suffix(" t fib")).expect("the program has it");
    let fib = u64::from_str_radix(fib, 16).expect("an address");
    let notes = run("readelf", &["-n"]);
    let build_id =
        notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).expect("gcc writes one");
    for (build_id, name) in [(build_id, "fib"), ("00112233445566778899aabbccddeeff00112233", "stacks+0x")] {
        let file = format!(
            r#"{{"meta": {{"preprocessedProfileVersion": 55, "interval": 1}},
                "libs": [{{"name": "stacks", "path": "{}", "codeId": "{build_id}"}}],
                "threads": [{{"name": "stacks", "pid": "1", "tid": 1, "stringArray": ["{fib:#x}"],
                  "samples": {{"length": 1, "stack": [0], "time": [1.5]}},
                  "stackTable": {{"length": 1, "frame": [0], "prefix": [null]}},
                  "frameTable": {{"length": 1, "address": [{fib}], "func": [0], "inlineDepth": [0]}},
                  "funcTable": {{"length": 1, "name": [0], "resource": [0]}},
                  "resourceTable": {{"length": 1, "lib": [0]}}}}]}}"#,
            folder.join("stacks").display()
        );
        std::fs::write(folder.join("samply.json"), file).expect("the folder is there");
        let spent = reported(&folder, "samply.json");
        assert!(spent.len() == 1 && spent.keys().all(|key| key.starts_with(name)), "{name}: {spent:?}");
    }
}

/// perf's text output of a perf.data, compared with the perf.data itself.
#[test]
fn what_perf_script_prints_is_read_as_its_recording() {
    if !needs(Requirement::PerfCommand) {
        return;
    }
    let folder = folder("import-perf-script");
    if !compiled(&folder, "tests/programs/stacks.c", "stacks") {
        return;
    }
    let perf = |arguments: &[&str]| {
        let output = Command::new("perf").args(arguments).current_dir(&folder).output();
        let output = output.expect("it was started before");
        assert!(output.status.success(), "perf {arguments:?}: {}", text(&output.stderr));
        output.stdout
    };
    let arguments =
        ["record", "-q", "-e", "cpu-clock", "-F", "999", "-g", "-o", "perf.data", "--", "./stacks"];
    perf(&arguments);
    let script = perf(&["script", "-i", "perf.data", "--no-inline"]);
    std::fs::write(folder.join("script.txt"), script).expect("the folder is there");
    let (data, script) = (reported(&folder, "perf.data"), reported(&folder, "script.txt"));
    let sum = |spent: &spun::Spent| spent.values().map(|spent| spent.0).sum::<u64>();
    assert_eq!(sum(&script), sum(&data));
    // Without inlined calls, which perf was told to omit.
    for function in ["fib", "asks"] {
        assert_eq!(script[function].2, data[function].2, "{function}");
    }
}

#[test]
fn what_cant_be_read_says_what_can() {
    let folder = folder("import-none");
    std::fs::write(folder.join("x"), "{\"a\": 1}").expect("the folder is there");
    let output = plumb(&folder, &["report", "x"]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.contains("x: JSON of an unknown kind") && message.contains("pprof"), "{message}");
}

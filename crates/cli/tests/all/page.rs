//! The page's server gives the same answers on a recording as the commands, and only to this user.
//!
//! The commands' own JSON is the reference: a selection given as options and as parameters must give equal numbers. Needs no privilege:
//! the recording is text in the format of `perf script`.

#![cfg(feature = "server")]

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use plumb_fixtures::{Requirement, needs};
use serde_json::Value;

/// A recording of two processes with three threads, a second long: stacks, leaf first, with a time in milliseconds.
fn recording(folder: &Path, name: &str, slow: u64) -> PathBuf {
    let mut text = String::new();
    let stacks: [(&str, u32, u32, &[&str]); 4] = [
        ("worker", 100, 101, &["parse", "handle", "main"]),
        ("worker", 100, 101, &["sort", "handle", "main"]),
        ("ui", 100, 102, &["paint", "loop", "main"]),
        ("child", 200, 200, &["copy", "main"]),
    ];
    for ms in 0..1000_u64 {
        let (comm, pid, tid, stack) = stacks[usize::try_from(ms * 7 % 10).unwrap_or(0).min(3)];
        // The second recording sorts more.
        let (comm, pid, tid, stack) = if ms % 10 < slow { stacks[1] } else { (comm, pid, tid, stack) };
        let _ = writeln!(text, "{comm} {pid}/{tid} [000] 7.{ms:03}000: 1000000 cpu-clock:");
        for (index, function) in stack.iter().enumerate() {
            let _ = writeln!(text, "\t{:x} {function} (/opt/app)", 0x1000 + 0x10 * index);
        }
        text.push('\n');
    }
    let path = folder.join(name);
    fs::write(&path, text).expect("the folder for tests can be written");
    path
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder for tests can be written");
    folder
}

/// A command's JSON output.
fn said(folder: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    let output =
        command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().expect("plumb runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {errors}"))
}

struct Served {
    child: Child,
    address: SocketAddr,
}

impl Served {
    fn new(folder: &Path, files: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command.arg("serve").args(files).args(["--listen", "127.0.0.1:0"]).current_dir(folder);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("plumb runs");
        let mut errors = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        while !line.contains("http://") {
            line.clear();
            let read = errors.read_line(&mut line).expect("plumb writes text");
            assert!(read > 0, "plumb serve ended early");
        }
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        Self { child, address }
    }

    /// Status, headers and body.
    fn ask(&self, request: &str) -> (u16, String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        stream.write_all(request.as_bytes()).expect("the server reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the server answers");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("headers end");
        let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, head, answer[end + 4..].to_vec())
    }

    fn get(&self, path: &str) -> (u16, String, Vec<u8>) {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address))
    }

    fn json(&self, path: &str) -> Value {
        let (status, _, body) = self.get(&format!("/api/v1/recordings{path}"));
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Selections as parameters and as options.
const SELECTIONS: [(&str, &[&str]); 6] = [
    ("", &[]),
    ("time=0.2-0.45", &["--time", "0.2-0.45"]),
    ("tid=101&time=-0.5", &["--tid", "101", "--time", "-0.5"]),
    ("comm=ui", &["--comm", "ui"]),
    ("focus=handle&ignore=sort", &["--focus", "handle", "--ignore", "sort"]),
    ("hide=%5Ehandle%24&pid=100", &["--hide", "^handle$", "--pid", "100"]),
];

/// The object without some fields.
fn without(mut value: Value, names: &[&str]) -> Value {
    if let Some(members) = value.as_object_mut() {
        names.iter().for_each(|name| _ = members.remove(*name));
    }
    value
}

#[test]
fn answers_are_what_commands_say_of_the_same_file() {
    let folder = folder("same");
    recording(&folder, "one.perf", 0);
    let served = Served::new(&folder, &["one.perf"]);
    for (parameters, options) in SELECTIONS {
        let ask = |path: &str, more: &str| served.json(&format!("/0/{path}?{parameters}&{more}"));
        let command = |words: &[&str]| said(&folder, &[words, &["one.perf", "--json"], options].concat());

        let report = command(&["report", "--sort", "dso,sym"]);
        let report = &report["reports"][0];
        let functions = ask("functions", "");
        assert!(functions["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{parameters}");
        for member in ["rows", "event", "unit", "samples", "weight", "kept_samples", "kept_weight"] {
            assert_eq!(functions[member], report[member], "{parameters}: {member}");
        }
        // The line above all views is of the same samples.
        let about = served.json(&format!("/0?{parameters}"));
        assert_eq!(about["selected"]["kept_samples"], functions["kept_samples"], "{parameters}");
        assert_eq!(about["target_cpu_ns"], functions["kept_weight"], "{parameters}");
        let kernel = ask("kernel", "");
        assert_eq!(about["selected"]["duration_ns"], kernel["duration_ns"], "{parameters}");
        for (direction, option) in [("top-down", "--top-down"), ("bottom-up", "--bottom-up")] {
            let tree = ask("tree", &format!("min=0&direction={direction}"));
            assert_eq!(tree["trees"], command(&["report", option, "--min", "0"])["reports"][0]["trees"]);
        }
        // Each thread's bins hold the weight in the report for the thread, whatever the time selection.
        let timeline = served.json(&format!("/0/timeline?{parameters}"));
        let sum =
            |row: &Value| row["bins"].as_array().into_iter().flatten().filter_map(Value::as_u64).sum::<u64>();
        for row in timeline["rows"].as_array().expect("there are rows") {
            assert_eq!(Some(sum(row)), row["weight"].as_u64(), "{parameters}");
        }
        let programs = command(&["procs"]);
        assert_eq!(ask("processes", ""), without(programs, &["advice"]), "{parameters}");
        let explained = command(&["explain"]);
        let ours = without(ask("explain", ""), &["left_out"]);
        assert_eq!(ours, without(explained, &["again", "left_out"]), "{parameters}");
        // The sentence of the terminal's report, word for word.
        let text = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(["explain", "one.perf"])
            .args(options)
            .current_dir(&folder)
            .output()
            .expect("plumb runs");
        let words = String::from_utf8_lossy(&text.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        let headline = ours["verdict"]["headline"].as_str().expect("there is a sentence");
        assert!(!headline.is_empty() && words.contains(headline), "{headline}: {words}");
    }
    let kernel = said(&folder, &["kernel", "one.perf", "--json"]);
    let rows = kernel["rows"].as_array().expect("there are rows").iter().cloned();
    let rows: Vec<Value> = rows.map(|row| without(row, &["calls", "errors", "wall_ns"])).collect();
    assert_eq!(served.json("/0/kernel?stacks=0")["rows"], Value::from(rows));
    let around = said(
        &folder,
        &["report", "one.perf", "--json", "--callers", "handle", "--callees", "handle", "--min", "0"],
    );
    assert_eq!(served.json("/0/function?name=handle&min=0")["trees"], around["reports"][0]["trees"]);
}

/// Waits of two threads, a second long: of one for a lock and the disk, of the other for a queue and a clock.
const WAITS: [(&str, u32, u64, &[&str]); 5] = [
    (
        "worker",
        101,
        30,
        &["schedule", "__mutex_lock", "vfs_lock", "entry_SYSCALL_64", "ioctl", "lock", "work", "main"],
    ),
    (
        "worker",
        101,
        10,
        &[
            "io_schedule",
            "folio_wait_bit_common",
            "filemap_read",
            "ksys_read",
            "entry_SYSCALL_64",
            "read",
            "load",
            "main",
        ],
    ),
    (
        "worker",
        101,
        7,
        &[
            "schedule",
            "do_nanosleep",
            "__x64_sys_nanosleep",
            "entry_SYSCALL_64",
            "nanosleep",
            "back_off",
            "main",
        ],
    ),
    (
        "pool",
        102,
        90,
        &[
            "schedule",
            "futex_wait",
            "do_futex",
            "__x64_sys_ioctl",
            "entry_SYSCALL_64",
            "pthread_cond_wait",
            "take",
            "loop",
        ],
    ),
    (
        "pool",
        102,
        95,
        &[
            "schedule",
            "ep_poll",
            "do_epoll_wait",
            "__x64_sys_epoll_wait",
            "entry_SYSCALL_64",
            "epoll_wait",
            "poll",
            "loop",
        ],
    ),
];

fn waits(folder: &Path, name: &str) {
    let mut text = String::new();
    for ms in (0..1000_u64).step_by(100) {
        for (comm, tid, length, stack) in WAITS {
            let _ = writeln!(text, "{comm} 100/{tid} [000] 7.{ms:03}000: {} off-cpu:", length * 1_000_000);
            for (index, function) in stack.iter().enumerate() {
                let is_kernel = index <= stack.iter().position(|one| one.starts_with("entry")).unwrap_or(0);
                let (base, file) = if is_kernel {
                    (0xffff_ffff_8100_0000, "[kernel.kallsyms]")
                } else {
                    (0x1000, "/opt/app")
                };
                let _ = writeln!(text, "\t{:x} {function} ({file})", base + 0x10 * index as u64);
            }
            text.push('\n');
        }
    }
    fs::write(folder.join(name), text).expect("the folder for tests can be written");
}

#[test]
fn waits_have_the_kinds_that_the_report_prints() {
    let folder = folder("waits");
    waits(&folder, "waits.perf");
    recording(&folder, "busy.perf", 0);
    let served = Served::new(&folder, &["waits.perf", "busy.perf"]);
    for (parameters, options) in
        [("", &[][..]), ("time=0-0.5", &["--time", "0-0.5"]), ("tid=101", &["--tid", "101"])]
    {
        let answer = served.json(&format!("/0/waits?{parameters}"));
        let report = said(&folder, &[&["report", "waits.perf", "--json"], options].concat());
        assert_eq!(answer["waits"], report["reports"][0]["waits"], "{parameters}");
        assert_eq!(answer["kept_weight"], report["reports"][0]["kept_weight"], "{parameters}");
        let kinds: Vec<_> = answer["waits"].as_array().into_iter().flatten().collect();
        assert!(kinds.iter().any(|kind| kind["kind"] == "lock" && kind["title"] == "locks and conditions"));
        // The kinds but idle add up to all that is kept.
        let busy = kinds.iter().filter(|kind| kind["kind"] != "idle");
        let sum: u64 = busy.filter_map(|kind| kind["weight"].as_u64()).sum();
        assert_eq!(answer["kept_weight"].as_u64(), Some(sum), "{answer}");
    }
    let answer = served.json("/0/waits");
    assert_eq!((&answer["idle_threads"], &answer["idle_names"]), (&1.into(), &serde_json::json!(["pool"])));
    let (status, _, body) = served.get("/api/v1/recordings/1/waits");
    let refusal = String::from_utf8_lossy(&body);
    assert!(status == 404 && refusal.contains("plumb record --off-cpu"), "{status}: {refusal}");
}

#[test]
fn answers_over_time_hold_what_is_selected() {
    let folder = folder("time");
    recording(&folder, "one.perf", 0);
    let served = Served::new(&folder, &["one.perf"]);
    let weight_of = |path: &str| {
        let map = served.json(path);
        let columns = map["columns"].as_array().into_iter().flatten();
        columns
            .flat_map(|column| column.as_array().into_iter().flatten())
            .filter_map(Value::as_u64)
            .sum::<u64>()
    };
    // Regardless of the time selection: times are selected there.
    assert_eq!(weight_of("/0/heatmap"), 1_000_000_000);
    assert_eq!(weight_of("/0/heatmap?tid=102&time=0-0.1&rows=7"), 100_000_000);
    let (status, _, body) = served.get("/api/v1/recordings/0/heatmap?by=latency");
    assert!(status == 400 && String::from_utf8_lossy(&body).contains("off-cpu"), "{status}");

    // A part of each second, as in a command. The recording starts at 7 s on its clock.
    let part = served.json("/0/functions?time=%400.2-0.45");
    assert_eq!(part["kept_weight"], 250_000_000);
    let report = said(&folder, &["report", "one.perf", "--json", "--sort", "dso,sym", "--time", "@0.2-0.45"]);
    assert_eq!(part["rows"], report["reports"][0]["rows"]);

    // Boxes in order of time: more of them than merged, from the same samples.
    let header = |path: &str| {
        let (_, _, body) = served.get(&format!("/api/v1/recordings/0{path}"));
        let line = body.split(|&byte| byte == b'\n').next().unwrap_or_default();
        serde_json::from_slice::<Value>(line).unwrap_or_default()
    };
    let (merged, timed) = (header("/flame"), header("/flame?order=time"));
    assert!(timed["boxes"].as_u64() > merged["boxes"].as_u64() && timed["timed"] == true, "{timed}");
    assert_eq!(timed["samples"], merged["samples"]);

    // A window of the timeline: the weight of its samples, in finer bins.
    let window = served.json("/0/timeline?bins=50&from_ns=200000000&until_ns=450000000");
    let bins =
        window["rows"].as_array().into_iter().flatten().filter_map(|row| row["bins"].as_array()).flatten();
    assert_eq!(bins.filter_map(Value::as_u64).sum::<u64>(), 250_000_000);
    assert_eq!((&window["from_ns"], &window["bin_ns"]), (&200_000_000.into(), &5_000_000.into()));

    // Threads beyond the first.
    let tids = |path: &str| {
        let rows = served.json(path)["rows"].as_array().cloned().unwrap_or_default();
        rows.iter().filter_map(|row| row["tid"].as_u64()).collect::<Vec<_>>()
    };
    let all = tids("/0/timeline");
    assert_eq!([tids("/0/timeline?threads=1"), tids("/0/timeline?skip=1")].concat(), all);
}

#[test]
fn counted_system_calls_are_shown_beside_recordings() {
    let folder = folder("calls");
    recording(&folder, "one.perf", 0);
    let counted = r#"{"version": 1, "command": ["app"], "duration_ns": 5, "kernel_named": true, "rows": [], "calls": [{"name": "read", "calls": 3, "errors": 0}]}"#;
    fs::write(folder.join("calls.json"), counted).expect("the folder for tests can be written");
    let served = Served::new(&folder, &["one.perf", "calls.json"]);
    let list = served.json("");
    assert_eq!(
        (&list["recordings"][0]["has_calls"], &list["recordings"][1]["has_calls"]),
        (&false.into(), &true.into())
    );
    assert_eq!(served.json("/1/calls")["counted"]["calls"][0]["calls"], 3);
    let of_samples = served.json("/0/calls");
    assert_eq!(of_samples["events"][0]["weight"], 1_000_000_000);
    assert!(of_samples["counted"].is_null() && of_samples["rows"].as_array().is_some_and(Vec::is_empty));
}

#[test]
fn what_changed_is_what_diff_says() {
    let folder = folder("diff");
    recording(&folder, "one.perf", 0);
    recording(&folder, "two.perf", 4);
    let served = Served::new(&folder, &["one.perf", "two.perf"]);
    assert_eq!(served.json("")["recordings"][1]["name"], "two.perf");
    let diff = said(&folder, &["diff", "one.perf", "two.perf", "--json"]);
    let ours = served.json("/1/diff?base=0");
    assert_eq!(ours["rows"], diff["rows"]);
    assert_eq!(ours["all"], diff["all"]);
    let sort = ours["rows"].as_array().and_then(|rows| rows.iter().find(|row| row["function"] == "sort"));
    assert_eq!(sort.map(|row| &row["mark"]), Some(&Value::from("more")));
    // Two intervals of one recording with the same work: no difference may be reported.
    let same = served.json("/0/diff?time=0.5-1&base-time=0-0.5");
    let marks = same["rows"].as_array().into_iter().flatten().map(|row| &row["mark"]);
    assert!(marks.clone().count() > 0 && marks.clone().all(|mark| mark == "noise"), "{same}");
    let (status, _, body) = served.get("/api/v1/recordings/0/diff");
    assert!(status == 400 && String::from_utf8_lossy(&body).contains("base"), "{status}");
}

#[test]
fn pictures_and_folded_stacks_are_those_of_commands() {
    let folder = folder("pictures");
    recording(&folder, "one.perf", 0);
    let served = Served::new(&folder, &["one.perf"]);
    for (format, words) in [
        ("svg", &["flame", "-o", "out.svg"][..]),
        ("html", &["flame", "-o", "out.html"]),
        ("folded", &["export", "-o", "out.folded"]),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        let command = command.args(words).args(["one.perf", "--tid", "101"]).current_dir(&folder);
        assert!(command.status().expect("plumb runs").success(), "{format}");
        let wanted = fs::read(folder.join(words[2])).expect("the command wrote it");
        let (status, _, body) = served.get(&format!("/api/v1/recordings/0/export?format={format}&tid=101"));
        assert!(status == 200 && body == wanted, "{format}: {status}");
    }
    let (status, ..) = served.get("/api/v1/recordings/0/export?format=svg&tid=1");
    assert_eq!(status, 400);
}

#[test]
fn downloads_hold_what_is_selected() {
    let folder = folder("export");
    recording(&folder, "one.perf", 0);
    let served = Served::new(&folder, &["one.perf"]);
    let wanted = said(&folder, &["report", "one.perf", "--json", "--tid", "101"]);
    for (format, file) in [
        ("plumb", "out.plumb"),
        ("pprof", "out.pb.gz"),
        ("firefox", "out.firefox.json"),
        ("speedscope", "out.speedscope.json"),
    ] {
        let (status, _, body) = served.get(&format!("/api/v1/recordings/0/export?format={format}&tid=101"));
        assert_eq!(status, 200, "{format}");
        fs::write(folder.join(file), body).expect("the folder can be written");
        let read = said(&folder, &["report", file, "--json", "--sort", "sym"]);
        let weight = read["reports"][0]["kept_weight"].as_u64();
        assert_eq!(weight, wanted["reports"][0]["kept_weight"].as_u64(), "{format}");
    }
}

#[test]
fn other_sites_and_other_users_get_nothing() {
    let folder = folder("guards");
    recording(&folder, "one.perf", 0);
    let served = Served::new(&folder, &["one.perf"]);
    let (status, head, _) = served.get("/");
    assert_eq!(status, 200);
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "nosniff",
        "same-origin",
        "no-referrer",
    ] {
        assert!(head.contains(header), "{header}: {head}");
    }
    assert!(!head.contains("access-control-allow-origin"), "{head}");
    let (status, _, body) =
        served.ask("GET /api/v1/recordings HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert_eq!(status, 403, "{}", String::from_utf8_lossy(&body));
    for (path, wanted) in [
        ("/api/v1/recordings/7", 404),
        ("/api/v1/recordings/..%2f..", 404),
        ("/api/v1/recordings/0/functions?tod=1", 400),
        ("/api/v1/recordings/0/functions?focus=(", 400),
        ("/api/v1/recordings/0/functions?time=2-1", 400),
        ("/api/v1/recordings/0/timeline?bins=0", 400),
        ("/api/v1/recordings/0/timeline?bins=99999999", 400),
        ("/api/v1/recordings/0/export?format=exe", 400),
        ("/api/v1/services", 404),
    ] {
        let (status, _, body) = served.get(path);
        assert_eq!(status, wanted, "{path}: {}", String::from_utf8_lossy(&body));
    }
    let post = format!(
        "POST /api/v1/recordings/0 HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        served.address
    );
    assert_eq!(served.ask(&post).0, 405);
    if !needs(Requirement::Root) {
        return;
    }
    // A shell of user nobody, on the same machine.
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}; printf 'GET /api/v1/recordings HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3",
        served.address.port()
    );
    let mut shell = Command::new("bash");
    let output =
        shell.args(["-c", &script]).current_dir("/").uid(65534).gid(65534).output().expect("there is a bash");
    let answer = String::from_utf8_lossy(&output.stdout);
    assert!(answer.starts_with("HTTP/1.1 403") && !answer.contains("one.perf"), "{answer}");
}

#[test]
fn recordings_are_served_on_this_machine_alone() {
    let folder = folder("open");
    recording(&folder, "one.perf", 0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    let output = command
        .args(["serve", "one.perf", "--listen", "0.0.0.0:0"])
        .current_dir(&folder)
        .output()
        .expect("plumb runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("ssh -L"), "{errors}");
}

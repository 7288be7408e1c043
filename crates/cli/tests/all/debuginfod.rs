//! Debug files from debuginfod servers: where `DEBUGINFOD_URLS` names one, and never without it.
//!
//! A server on this machine has the debug file of a stripped program. Needs a compiler, objcopy, curl and perf: where one is missing a test
//! prints so and is skipped.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use plumb_fixtures::{Requirement, compiles, needs, needs_command};

const SOURCE: &str = "static volatile unsigned sum;\n\
    __attribute__((noinline)) static void hidden_work(unsigned n) { for (unsigned i = 0; i < n; i++) sum += i * i; }\n\
    int main(void) { for (int i = 0; i < 300; i++) hidden_work(1000000); return 0; }\n";

/// The stripped program `work` in a directory of its own, and the bytes of its debug file.
fn stripped(name: &str) -> Option<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    std::fs::write(folder.join("work.c"), SOURCE).expect("the folder can be written");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g", "-Wl,--build-id", "-o", "work", "work.c"]).current_dir(&folder);
    let tools = [("objcopy", Requirement::Binutils), ("curl", Requirement::Tools)];
    if !compiles(&mut compiler) || !tools.into_iter().all(|(tool, of)| needs_command(of, tool)) {
        return None;
    }
    let objcopy = |arguments: &[&str]| {
        let done = Command::new("objcopy").args(arguments).current_dir(&folder).status();
        assert!(done.expect("it runs").success(), "{arguments:?}");
    };
    objcopy(&["--only-keep-debug", "work", "work.debug"]);
    objcopy(&["--strip-all", "work"]);
    let debug = std::fs::read(folder.join("work.debug")).expect("objcopy wrote it");
    for used in ["work.debug", "work.c"] {
        std::fs::remove_file(folder.join(used)).expect("it is there");
    }
    Some((folder, debug))
}

/// A server that answers each request with these bytes for the build ID of the program, otherwise with 404; the paths that it was asked for.
fn server(folder: &Path, debug: Vec<u8>) -> (String, Arc<Mutex<Vec<String>>>) {
    let id = build_id(&folder.join("work"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it listens"));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = stream;
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap_or(0);
            let line =
                String::from_utf8_lossy(&request[..length]).lines().next().unwrap_or_default().to_owned();
            let is_it = line.contains(&format!("/buildid/{id}/debuginfo"));
            let (status, body) = if is_it { ("200 OK", &debug[..]) } else { ("404 Not Found", &b""[..]) };
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
            noted.lock().expect("nobody panicked").push(line);
        }
    });
    (url, asked)
}

fn build_id(program: &Path) -> String {
    let notes = Command::new("readelf").arg("-n").arg(program).output().expect("binutils are here");
    let text = String::from_utf8_lossy(&notes.stdout).into_owned();
    text.split("Build ID: ")
        .nth(1)
        .expect("the linker made one")
        .trim()
        .lines()
        .next()
        .expect("a line")
        .to_owned()
}

/// Runs plumb with servers and a cache of its own.
fn plumb(folder: &Path, servers: Option<&str>, arguments: &[&str]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env("XDG_CACHE_HOME", folder.join("cache")).env_remove("DEBUGINFOD_CACHE_PATH");
    match servers {
        Some(urls) => command.env("DEBUGINFOD_URLS", urls),
        None => command.env_remove("DEBUGINFOD_URLS"),
    };
    let output = command.output().expect("plumb runs");
    let [out, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{arguments:?}: {errors}");
    (out, errors)
}

#[test]
fn a_report_of_perf_data_downloads_where_servers_are_named() {
    let Some((folder, debug)) = stripped("debuginfod-report") else { return };
    if !needs(Requirement::PerfCommand) {
        return;
    }
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock:u", "-o", "perf.data", "--", "./work"]).current_dir(&folder);
    assert!(perf.stdin(Stdio::null()).status().expect("perf runs").success());
    let (url, asked) = server(&folder, debug);
    let of_it = |lines: &Mutex<Vec<String>>| {
        let id = build_id(&folder.join("work"));
        lines.lock().expect("nobody panicked").iter().filter(|line| line.contains(&id)).count()
    };
    for servers in [None, Some("")] {
        let (report, _) = plumb(&folder, servers, &["report", "perf.data"]);
        assert!(!report.contains("hidden_work"), "{report}");
        assert_eq!(asked.lock().expect("nobody panicked").len(), 0, "nobody named a server");
    }
    let (report, errors) = plumb(&folder, Some(&url), &["report", "perf.data"]);
    assert!(report.contains("hidden_work"), "{report}{errors}");
    assert_eq!(of_it(&asked), 1);
    // The layout of debuginfod's own client, which gdb and perf use.
    let kept = folder.join("cache/debuginfod_client").join(build_id(&folder.join("work"))).join("debuginfo");
    assert!(kept.is_file(), "{}", kept.display());
    let before = asked.lock().expect("nobody panicked").len();
    let (report, _) = plumb(&folder, Some(&url), &["report", "perf.data"]);
    assert!(report.contains("hidden_work"), "{report}");
    assert_eq!(asked.lock().expect("nobody panicked").len(), before, "found and missing files are noted");
}

#[test]
fn a_recording_downloads_where_servers_are_named() {
    let Some((folder, debug)) = stripped("debuginfod-record") else { return };
    if !needs(Requirement::Perf) {
        return;
    }
    let (url, asked) = server(&folder, debug);
    plumb(&folder, None, &["record", "-q", "-o", "none.plumb", "--", "./work"]);
    assert_eq!(asked.lock().expect("nobody panicked").len(), 0, "nobody named a server");
    let (report, _) = plumb(&folder, None, &["report", "none.plumb"]);
    assert!(!report.contains("hidden_work"), "{report}");
    plumb(&folder, Some(&url), &["record", "-q", "-o", "some.plumb", "--", "./work"]);
    let (report, _) = plumb(&folder, None, &["report", "some.plumb"]);
    assert!(report.contains("hidden_work"), "{report}");
}

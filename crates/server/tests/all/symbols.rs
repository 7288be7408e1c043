//! Frames without names get them when their file is uploaded: the same names as addr2line's, also for profiles stored before.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Server;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use plumb_formats::otlp::message::{
    AnyValue, Attribute, Dictionary, KeyValue, Line as OtlpLine, Location, OneValue, OtlpFunction,
    OtlpMapping, OtlpSample, Profile, ProfilesData, Resource, ResourceProfiles, ScopeProfiles, Stack,
    ValueType,
};
use plumb_server::{BodyLimits, IngestLimits, ServerOptions};
use prost::Message;
use serde_json::{Value, json};

const PROGRAM: &str = "
static inline __attribute__((always_inline)) int inlined(int x) { volatile int y = x; return y * y; }
__attribute__((noinline)) int work(int x) { return inlined(x) + 1; }
int main(int argc, char **argv) { return work(argc); }
";

/// A program whose headers state addresses other than file offsets: its path and build ID.
fn program(name: &str) -> Option<(PathBuf, String)> {
    let folder: PathBuf = [env!("CARGO_TARGET_TMPDIR"), name].iter().collect();
    std::fs::create_dir_all(&folder).unwrap();
    let (source, file) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-g", "-no-pie", "-Wl,--build-id", "-o"]).args([&file, &source]);
    if !plumb_fixtures::compiles(&mut compiler) {
        return None;
    }
    let notes = output(Command::new("readelf").arg("-n").arg(&file));
    let build_id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap();
    Some((file, build_id.trim().to_owned()))
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Start address of a function, from nm.
fn start(file: &Path, function: &str) -> u64 {
    let symbols = output(Command::new("nm").arg(file));
    let line = symbols.lines().find(|line| line.ends_with(&format!(" {function}"))).unwrap();
    u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
}

/// The functions at an address, outermost first, from addr2line.
fn truth(file: &Path, address: u64) -> Vec<String> {
    let text =
        output(Command::new("addr2line").args(["-f", "-i", "-e"]).arg(file).arg(format!("{address:#x}")));
    let names: Vec<String> = text.lines().step_by(2).map(str::to_owned).collect();
    names.into_iter().rev().collect()
}

/// A request with one sample: main calls work. `offset`: addresses as they were in memory, where the file was mapped from that offset.
fn request(build_id: &str, at: [u64; 2], mapped: Option<(u64, u64)>) -> Vec<u8> {
    request_called(build_id, at, mapped, "")
}

/// Such a request, with this name for the function of the second address, unless it is empty.
fn request_called(
    build_id: &str,
    [main, work]: [u64; 2],
    mapped: Option<(u64, u64)>,
    called: &str,
) -> Vec<u8> {
    let text = |text: &str| Some(AnyValue { value: Some(OneValue::Text(text.into())) });
    let (memory_start, file_offset) = mapped.unwrap_or_default();
    let strings = [
        "",
        "samples",
        "count",
        "cpu",
        "nanoseconds",
        "/bin/program",
        "process.executable.build_id.gnu",
        called,
    ];
    let location = |address| Location { mapping_index: 1, address, ..Location::default() };
    let line = OtlpLine { function_index: 1, line: 0 };
    let lines = if called.is_empty() { Vec::new() } else { vec![line] };
    let dictionary = Dictionary {
        mapping_table: vec![
            OtlpMapping::default(),
            OtlpMapping {
                memory_start,
                memory_limit: if memory_start > 0 { memory_start + 0x10000 } else { 0 },
                file_offset,
                filename_strindex: 5,
                attribute_indices: vec![1],
            },
        ],
        location_table: vec![Location::default(), location(main), Location { lines, ..location(work) }],
        function_table: vec![
            OtlpFunction::default(),
            OtlpFunction { name_strindex: 7, system_name_strindex: 7, ..OtlpFunction::default() },
        ],
        string_table: strings.map(str::to_owned).to_vec(),
        attribute_table: vec![Attribute::default(), Attribute { key_strindex: 6, value: text(build_id) }],
        stack_table: vec![Stack::default(), Stack { location_indices: vec![2, 1] }],
        ..Dictionary::default()
    };
    let profile = Profile {
        sample_type: Some(ValueType { type_strindex: 1, unit_strindex: 2 }),
        period_type: Some(ValueType { type_strindex: 3, unit_strindex: 4 }),
        period: 1000,
        time_unix_nano: 1_700_000_000_000_000_000,
        samples: vec![OtlpSample { stack_index: 1, values: vec![1], ..OtlpSample::default() }],
        ..Profile::default()
    };
    let service = KeyValue { key: "service.name".into(), value: text("a"), ..KeyValue::default() };
    let data = ProfilesData {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource { attributes: vec![service] }),
            scope_profiles: vec![ScopeProfiles { profiles: vec![profile], ..ScopeProfiles::default() }],
        }],
        dictionary: Some(dictionary),
    };
    data.encode_to_vec()
}

async fn export(server: &Server, message: Vec<u8>) {
    let (status, body) = server.post("/v1development/profiles", "application/x-protobuf", message).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
}

/// The names of all stacks, root first.
async fn names(server: &Server) -> Vec<Vec<String>> {
    let path = "/api/v1/export?from=1699999999000&until=1700000001000&format=folded";
    let (status, body) = server.get(path).await;
    let body = String::from_utf8(body).unwrap();
    assert_eq!(status, 200, "{body}");
    let stacks = body.lines().map(|line| line.rsplit_once(' ').unwrap().0);
    stacks.map(|stack| stack.split(';').map(str::to_owned).collect()).collect()
}

async fn upload(server: &Server, build_id: &str, bytes: Vec<u8>) -> (StatusCode, String) {
    let request = Request::put(format!("/api/v1/symbols/{build_id}")).body(Body::from(bytes)).unwrap();
    let (status, body) = server.bytes(request).await;
    (status, String::from_utf8(body).unwrap())
}

async fn missing(server: &Server) -> Value {
    serde_json::from_slice(&server.get("/api/v1/symbols/missing").await.1).unwrap()
}

#[tokio::test]
async fn names_come_with_the_file_also_for_what_was_stored_before() {
    let Some((file, build_id)) = program("symbols-late") else { return };
    let server = Server::new("symbols-late-store", ServerOptions::default());
    let (main, work) = (start(&file, "main"), start(&file, "work"));
    let at = [main + 4, work + 4];
    export(&server, request(&build_id, at, None)).await;
    assert_eq!(names(&server).await, [at.map(|address| format!("program+{address:#x}"))]);
    assert_eq!(missing(&server).await, json!({"version": 1, "buildIds": [build_id]}));
    assert_eq!(server.get(&format!("/api/v1/symbols/{build_id}")).await.0, 404);

    let bytes = std::fs::read(&file).unwrap();
    assert_eq!(upload(&server, &build_id, bytes).await.0, 201);
    assert_eq!(server.get(&format!("/api/v1/symbols/{build_id}")).await.0, 204);
    assert_eq!(missing(&server).await["buildIds"], json!([]));
    let expected: Vec<String> = at.iter().flat_map(|&address| truth(&file, address)).collect();
    assert_eq!(expected, ["main", "work", "inlined"], "the compiler and addr2line");
    assert_eq!(names(&server).await, std::slice::from_ref(&expected));

    // Addresses of a process, with those of the mapping, are converted to file offsets: the code segment starts at the same page.
    let (base, mapped) = (0x40_0000, 0x7f00_0000_1000);
    let moved = at.map(|address| address - base - 0x1000 + mapped);
    export(&server, request(&build_id, moved, Some((mapped, 0x1000)))).await;
    assert!(names(&server).await.iter().all(|stack| *stack == expected));
}

/// A program, its stripped file, and its separated debug file, in every order: the best file so far names the frames.
#[tokio::test]
async fn a_file_that_names_less_replaces_none_that_names_more() {
    let Some((file, build_id)) = program("symbols-replaced") else { return };
    let at = ["main", "work"].map(|function| start(&file, function) + 4);
    let made = |tool: &str, arguments: &[&str], name: &str| {
        let to = file.with_file_name(name);
        output(Command::new(tool).args(arguments).arg(&file).arg(&to));
        std::fs::read(to).unwrap()
    };
    let full = std::fs::read(&file).unwrap();
    let stripped = made("objcopy", &["--strip-all"], "stripped");
    let functions = made("objcopy", &["--strip-debug"], "functions");
    let debug = made("objcopy", &["--only-keep-debug"], "debug");
    let all: Vec<String> = at.iter().flat_map(|&address| truth(&file, address)).collect();
    // Without symbols unwind information says where functions begin.
    let nameless: Vec<String> = at.iter().map(|address| format!("program+{:#x}", address - 4)).collect();
    let only_functions = ["main", "work"].map(str::to_owned).to_vec();
    // A file, the status of its upload, and the names after it.
    type Upload<'a> = (&'a Vec<u8>, u16, &'a Vec<String>);
    let orders: [&[Upload<'_>]; 5] = [
        &[(&full, 201, &all), (&stripped, 200, &all), (&full, 201, &all)],
        &[(&stripped, 201, &nameless), (&full, 201, &all), (&stripped, 200, &all)],
        &[(&debug, 201, &all), (&stripped, 200, &all), (&full, 201, &all)],
        &[(&functions, 201, &only_functions), (&stripped, 200, &only_functions), (&debug, 201, &all)],
        &[(&debug, 201, &all), (&functions, 200, &all)],
    ];
    for (number, order) in orders.into_iter().enumerate() {
        let server = Server::new(&format!("symbols-replaced-{number}"), ServerOptions::default());
        export(&server, request(&build_id, at, None)).await;
        for (step, (bytes, status, expected)) in order.iter().enumerate() {
            assert_eq!(upload(&server, &build_id, bytes.to_vec()).await.0, *status, "{number}: {step}");
            assert_eq!(names(&server).await, [(*expected).clone()], "{number}: {step}");
        }
    }
}

#[tokio::test]
async fn a_function_that_is_named_by_where_it_begins_gets_its_name_too() {
    let Some((file, build_id)) = program("symbols-unnamed") else { return };
    let server = Server::new("symbols-unnamed-store", ServerOptions::default());
    let (main, work) = (start(&file, "main"), start(&file, "work"));
    let called = format!("program+{work:#x}");
    export(&server, request_called(&build_id, [main + 4, work + 4], None, &called)).await;
    assert_eq!(names(&server).await, [[format!("program+{:#x}", main + 4), called]]);
    assert_eq!(missing(&server).await["buildIds"], json!([build_id]));
    assert_eq!(upload(&server, &build_id, std::fs::read(&file).unwrap()).await.0, 201);
    assert_eq!(names(&server).await, [["main", "work", "inlined"]]);
}

#[tokio::test]
async fn frames_of_a_stripped_file_are_named_by_where_their_functions_begin() {
    let Some((file, build_id)) = program("symbols-stripped") else { return };
    let server = Server::new("symbols-stripped-store", ServerOptions::default());
    let (main, work) = (start(&file, "main"), start(&file, "work"));
    output(Command::new("strip").arg(&file));
    assert_eq!(upload(&server, &build_id, std::fs::read(&file).unwrap()).await.0, 201);
    for offset in [2, 4] {
        export(&server, request(&build_id, [main + offset, work + offset], None)).await;
    }
    assert_eq!(names(&server).await, [[main, work].map(|start| format!("program+{start:#x}"))]);
}

#[tokio::test]
async fn what_is_not_the_file_is_refused() {
    let Some((file, build_id)) = program("symbols-refused") else { return };
    let options = ServerOptions {
        ingest: IngestLimits {
            symbols: BodyLimits { sent: 100_000, unpacked: 100_000, ..IngestLimits::default().symbols },
            ..IngestLimits::default()
        },
        ..ServerOptions::default()
    };
    let server = Server::new("symbols-refused-store", options);
    let bytes = std::fs::read(&file).unwrap();
    let (status, body) = upload(&server, "00ff00ff", bytes.clone()).await;
    assert!(status == 400 && body.contains(&build_id), "{status} {body}");
    let (status, body) = upload(&server, &build_id, bytes[..100].to_vec()).await;
    assert!(status == 400 && body.contains("no ELF file"), "{status} {body}");
    assert_eq!(upload(&server, &build_id, vec![0; 100_001]).await.0, 413);
    assert_eq!(upload(&server, "..%2f..%2fetc", bytes).await.0, 400);
    assert_eq!(missing(&server).await["buildIds"], json!([]));
}

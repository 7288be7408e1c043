//! A function is one thing everywhere: fold, report, explain, exports, the flame graph and the page give it the same name and the same samples, also
//! where no symbol names it. Where functions without a symbol begin is known from `nm`, before the file was stripped.

#![cfg(feature = "server")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::spun::{compiled, folded, folder, may_record, succeeds};
use plumb_fixtures::compiles;
use serde_json::{Value, json};

/// A library with functions that only itself knows, and one that it exports.
const LIBRARY: &str = "
#define HIDDEN __attribute__((noipa)) static unsigned long
HIDDEN multiplies(unsigned long x) { for (int i = 0; i < 3000; i++) x = x * 6364136223846793005UL + 1; return x; }
HIDDEN divides(unsigned long x) { for (int i = 1; i < 300; i++) x = x / i + i; return x; }
HIDDEN shifts(unsigned long x) { for (int i = 0; i < 2000; i++) x ^= x << 13, x ^= x >> 7; return x; }
unsigned long works(unsigned long x) { return multiplies(x) + divides(x) + shifts(x); }
";
const PROGRAM: &str = "
unsigned long works(unsigned long);
__attribute__((noipa)) static unsigned long own(unsigned long x) { for (int i = 0; i < 2000; i++) x = x * 3 + 1; return x; }
int main(void) { unsigned long x = 1; for (int i = 0; i < 60000; i++) x = works(own(x)); return x == 7; }
";
/// Functions of the library that lose their names.
const HIDDEN: [&str; 3] = ["multiplies", "divides", "shifts"];

/// Samples in functions themselves, by name.
type Own = BTreeMap<String, u64>;

fn compile(folder: &Path, arguments: &[&str], source: &str) -> bool {
    std::fs::write(folder.join("source.c"), source).expect("the folder can be written");
    compiles(Command::new("cc").args(["-O2", "source.c"]).args(arguments).current_dir(folder))
}

/// The names that the hidden functions have to have, as `nm` says where they begin.
fn expected(library: &Path) -> Vec<String> {
    let output = Command::new("nm").arg(library).output().expect("nm runs");
    let text = String::from_utf8(output.stdout).expect("nm prints text");
    let start = |name: &str| {
        let line = text.lines().find(|line| line.ends_with(&format!(" t {name}")));
        let digits = line.and_then(|line| line.split(' ').next()).unwrap_or_else(|| panic!("{name}: {text}"));
        u64::from_str_radix(digits, 16).expect("an address")
    };
    HIDDEN.iter().map(|name| format!("libworks.so+{:#x}", start(name))).collect()
}

fn own_of_rows(report: &Value) -> Own {
    let mut own = Own::new();
    for row in report["reports"][0]["rows"].as_array().expect("there are rows") {
        let samples = row["self_samples"].as_u64().expect("a number");
        *own.entry(row["sym"].as_str().expect("a name").into()).or_default() += samples;
    }
    own.retain(|_, samples| *samples > 0);
    own
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

fn of_fold(folder: &Path, file: &str) -> Own {
    let mut own = Own::new();
    for (stack, count) in folded(folder, file) {
        *own.entry(stack.rsplit(';').next().unwrap_or_default().into()).or_default() += count;
    }
    own
}

fn of_csv(folder: &Path, file: &str) -> Own {
    let text = succeeds(folder, &["report", "--csv", "--min", "0", file]);
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a line of names");
    let column = |name: &str| head.iter().position(|one| *one == name).expect("the column is there");
    let (samples, symbol) = (column("self_samples"), column("sym"));
    let mut own = Own::new();
    for line in lines {
        let count: u64 = line[samples].parse().expect("a number");
        *own.entry(line[symbol].into()).or_default() += count;
    }
    own.retain(|_, samples| *samples > 0);
    own
}

/// The innermost frames of a profile of speedscope, each sample of which weighs the same.
fn of_speedscope(folder: &Path, file: &str) -> Own {
    succeeds(folder, &["export", "-o", "out.speedscope.json", file]);
    let text = std::fs::read_to_string(folder.join("out.speedscope.json")).expect("it was written");
    let value = parsed(&text);
    let mut own = Own::new();
    for profile in value["profiles"].as_array().expect("there are profiles") {
        for stack in profile["samples"].as_array().expect("there are samples") {
            let frame = stack.as_array().and_then(|stack| stack.last()?.as_u64()).expect("a frame");
            let name = value["shared"]["frames"][frame as usize]["name"].as_str().expect("a name");
            *own.entry(name.into()).or_default() += 1;
        }
    }
    own
}

/// `plumb serve` of a file.
struct Served(Child, String);

impl Served {
    fn new(folder: &Path, file: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command.args(["serve", file, "--listen", "127.0.0.1:0"]).current_dir(folder);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("plumb runs");
        let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let line = lines.map_while(Result::ok).find(|line| line.contains("http://")).expect("an address");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        Self(child, address.expect("an address").to_owned())
    }

    fn get(&self, path: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.1).expect("the server listens");
        let request = format!(
            "GET /api/v1/recordings/0/{path} HTTP/1.0\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.1
        );
        stream.write_all(request.as_bytes()).expect("the server reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the server answers");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("headers end");
        answer.split_off(end + 4)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The boxes of a flame graph as the page gets them (`documents`: `flame/payload`).
fn of_flame(payload: &[u8]) -> Own {
    let end = payload.iter().position(|&byte| byte == b'\n').expect("a header");
    let header: Value = serde_json::from_slice(&payload[..end]).expect("it is JSON");
    let number = |name: &str| header[name].as_u64().expect("a number") as usize;
    let (frames, boxes) = (number("frames"), number("boxes"));
    let mut rest = payload[end + 1..].iter();
    let mut varint = || {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = *rest.next().expect("a column goes on");
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value as usize
    };
    let mut column = |length: usize| (0..length).map(|_| varint()).collect::<Vec<usize>>();
    let names = column(frames);
    let _dsos_files_kinds_and_depths = [column(frames), column(frames), column(frames), column(boxes)];
    let (labels, samples) = (column(boxes), column(boxes));
    let mut own = Own::new();
    for (label, samples) in labels.into_iter().zip(samples).filter(|(_, samples)| *samples > 0) {
        let name = header["strings"][names[label]].as_str().expect("a name");
        *own.entry(name.into()).or_default() += samples as u64;
    }
    own
}

/// Holds all that plumb says of a recording against what it folds it to, which is returned.
fn agreed(folder: &Path, file: &str) -> Own {
    let truth = of_fold(folder, file);
    let report = parsed(&succeeds(folder, &["report", "--json", "--min", "0", file]));
    assert_eq!(own_of_rows(&report), truth, "report --json");
    assert_eq!(of_csv(folder, file), truth, "report --csv");
    assert_eq!(of_speedscope(folder, file), truth, "export to speedscope");
    for name in ["out.pb.gz", "out.firefox.json"] {
        succeeds(folder, &["export", "-o", name, file]);
        let back = parsed(&succeeds(folder, &["report", "--json", "--min", "0", name]));
        assert_eq!(own_of_rows(&back), truth, "{name}");
    }
    let explained = parsed(&succeeds(folder, &["explain", "--json", file]));
    for function in explained["functions"].as_array().expect("there are functions") {
        let name = function["function"].as_str().expect("a name");
        let samples = function["self_cost"]["samples"].as_u64().expect("a number");
        assert_eq!(truth.get(name).copied().unwrap_or(0), samples, "explain: {name}");
    }
    let served = Served::new(folder, file);
    let rows: Value = serde_json::from_slice(&served.get("functions")).expect("it is JSON");
    assert_eq!(own_of_rows(&json!({"reports": [rows]})), truth, "the page's functions");
    assert_eq!(of_flame(&served.get("flame")), truth, "the flame graph");
    truth
}

#[test]
fn functions_of_a_stripped_library_are_the_same_everywhere() {
    let folder = folder("one-function-stripped");
    if !may_record()
        || !compile(&folder, &["-shared", "-fPIC", "-Wl,--build-id", "-o", "libworks.so"], LIBRARY)
        || !compile(&folder, &["-o", "program", "-L.", "-lworks", "-Wl,-rpath,$ORIGIN"], PROGRAM)
    {
        return;
    }
    let hidden = expected(&folder.join("libworks.so"));
    for file in ["libworks.so", "program"] {
        let status = Command::new("strip").arg(file).current_dir(&folder).status().expect("strip runs");
        assert!(status.success());
    }
    succeeds(&folder, &["record", "--quiet", "-o", "a.plumb", "--", "./program"]);
    let own = agreed(&folder, "a.plumb");
    let all: u64 = own.values().sum();
    for name in &hidden {
        let samples = own.get(name).copied().unwrap_or(0);
        assert!(samples * 50 > all, "{name} has {samples} of {all}: {own:?}");
        let annotated = succeeds(&folder, &["annotate", "--json", "a.plumb", name]);
        assert_eq!(parsed(&annotated)["function"].as_str(), Some(&**name));
    }
    let of_library = own.keys().filter(|name| name.starts_with("libworks.so+"));
    assert!(of_library.clone().all(|name| hidden.contains(name)), "{:?}", of_library.collect::<Vec<_>>());
}

#[test]
fn functions_with_names_are_the_same_everywhere() {
    let folder = folder("one-function-named");
    if !may_record() || !compiled(&folder, "tests/programs/stacks.c", "stacks") {
        return;
    }
    succeeds(&folder, &["record", "--quiet", "-o", "a.plumb", "--", "./stacks"]);
    let own = agreed(&folder, "a.plumb");
    assert!(own.contains_key("fib") && own.contains_key("mixed"), "inlined and not: {own:?}");
}

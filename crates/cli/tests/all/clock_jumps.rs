//! A server whose clock jumps while it serves: what it acknowledged is there, at the time that it had then or that the sender said, and
//! what it can't place it refuses.

#![cfg(feature = "server")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::spun::folder;
use plumb_fixtures::{Requirement, needs};

const DAY: i64 = 86_400;
const HOUR: i64 = 3600;

/// A server with a clock of its own. Ends with it.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--store", "store", "--no-agent"])
            .current_dir(folder);
        command.env("LD_PRELOAD", folder.join("clock.so")).env("CLOCK_FILE", folder.join("offset"));
        let mut child = command.stderr(Stdio::piped()).spawn().expect("plumb starts");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let first = lines.next().expect("it says where it listens").expect("it is text");
        let (_, address) = first.split_once("listening on http://").expect("it says where it listens");
        let address = address.to_owned();
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// The status and the body of the answer to a request.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let status =
            answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("it has a status");
        let (_, body) = answer.split_once("\r\n\r\n").expect("it has a body");
        (status, body.to_owned())
    }

    fn push(&self, name: &str, parameters: &str) -> (u16, String) {
        self.ask("POST", &format!("/ingest?name={name}.cpu{parameters}"), "main;work 1\n")
    }

    /// The seconds, since 1970, of the profiles of a service: of minutes that have some, the last second.
    fn times(&self, name: &str, now: i64) -> Vec<i64> {
        let (from, until) = (now - 3 * DAY, now + 3 * DAY);
        let query =
            format!("query=%7Bservice_name%3D%22{name}%22%7D&from={from}000&until={until}000&step=60");
        let (status, body) = self.ask("GET", &format!("/api/v1/series?{query}"), "");
        assert_eq!(status, 200, "{body}");
        let series: serde_json::Value = serde_json::from_str(&body).expect("it is JSON");
        let points = series[0]["points"].as_array().cloned().unwrap_or_default();
        let time =
            |point: &serde_json::Value| point["timestamp"].as_str().and_then(|text| text.parse::<i64>().ok());
        points.iter().map(|point| time(point).expect("it has a time") / 1000).collect()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_a_server_acknowledged_is_there_whatever_its_clock_says() {
    if !needs(Requirement::Cc) {
        return;
    }
    let folder = folder("clock-jumps");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/clock.c");
    let library = folder.join("clock.so");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(compiled.is_ok_and(|status| status.success()), "{} compiles", source.display());
    // Renamed into place, so that the server reads the old offset or the new one.
    let jump = |seconds: i64| {
        std::fs::write(folder.join("new"), seconds.to_string()).expect("it can be written");
        std::fs::rename(folder.join("new"), folder.join("offset")).expect("it can be renamed");
    };
    jump(0);
    let serving = Serving::start(&folder);
    let begin = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_secs();
    let begin = i64::try_from(begin).expect("it is not so late");
    let real = format!("&from={begin}");
    for (name, parameters) in [("first", ""), ("first_said", &*real)] {
        assert_eq!(serving.push(name, parameters).0, 200, "{name}");
    }
    assert_eq!(serving.ask("POST", "/api/v1/admin/flush", "").0, 200);
    // A day forward: what says its time keeps it.
    jump(DAY);
    for (name, parameters) in [("ahead", ""), ("ahead_said", &*real)] {
        assert_eq!(serving.push(name, parameters).0, 200, "{name}");
    }
    assert_eq!(serving.ask("POST", "/api/v1/admin/flush", "").0, 200);
    // An hour back: what says its time is of the future now, and is told so.
    jump(-HOUR);
    assert_eq!(serving.push("behind", "").0, 200);
    let (status, message) = serving.push("behind_said", &real);
    assert!(status == 400 && message.contains("in the future"), "{message}");
    assert_eq!(serving.ask("POST", "/api/v1/admin/compact", "").0, 200);
    let spent = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_secs();
        i64::try_from(now).expect("it is not so late") - begin
    };
    // As seen from memory, from blocks, and after a crash, by a clock that is right again.
    let hold = |serving: &Serving, when: &str| {
        for (name, offset) in
            [("first", 0), ("first_said", 0), ("ahead", DAY), ("ahead_said", 0), ("behind", -HOUR)]
        {
            let times = serving.times(name, begin);
            let most = begin + offset + spent() + 60;
            let is_there = times.len() == 1 && (begin + offset..=most).contains(&times[0]);
            assert!(is_there, "{name} {when}: {times:?}, not from {} to {most}", begin + offset);
        }
        assert_eq!(serving.times("behind_said", begin), [0_i64; 0], "{when}");
    };
    hold(&serving, "in memory and blocks");
    assert_eq!(serving.ask("POST", "/api/v1/admin/flush", "").0, 200);
    hold(&serving, "in blocks");
    assert_eq!(serving.push("last", "").0, 200);
    drop(serving);
    jump(0);
    let serving = Serving::start(&folder);
    assert_eq!(serving.ask("POST", "/api/v1/admin/compact", "").0, 200);
    hold(&serving, "after a crash");
    assert_eq!(serving.times("last", begin).len(), 1, "what was only in the log");
}

//! Profiles for Go's compiler, as `profilecli query go-pgo` asks for them: Go takes them, and finds the same calls hot, with the same weights, as in the profile
//! that its own library wrote and that was pushed.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Server, golden};
use axum::http::StatusCode;
use flate2::Compression;
use flate2::write::GzEncoder;
use plumb_fixtures::go::{self, Packages, hot_calls};
use plumb_fixtures::{Requirement, needs};
use plumb_server::ServerOptions;
use prost::Message;

/// Weights of calls as Go's compiler reads them: by caller, callee, and line of the call in the caller.
fn weights(folder: &Path, profile: &str) -> BTreeMap<String, i64> {
    let into = format!("{profile}.edges");
    go::run(folder, "local", &["tool", "preprofile", "-i", profile, "-o", &into]);
    let text = std::fs::read_to_string(folder.join(into)).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    let edge = |lines: &[&str]| {
        let (line, weight) = lines[2].split_once(' ').unwrap();
        (format!("{} {} {line}", lines[0], lines[1]), weight.parse().unwrap())
    };
    lines.chunks_exact(3).map(edge).collect()
}

/// A program with a profile of its own, `own.pprof`.
fn profiled() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("server-pgo");
    std::fs::create_dir_all(&folder).unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/programs/pgo");
    for file in ["main.go", "go.mod"] {
        std::fs::copy(Path::new(source).join(file), folder.join(file)).unwrap();
    }
    go::run(&folder, "local", &["build", "-pgo=off", "-o", "plain", "."]);
    assert!(Command::new("./plain").arg("own.pprof").current_dir(&folder).status().unwrap().success());
    folder
}

/// A request of `push.v1`.
#[derive(Clone, PartialEq, Message)]
struct Push {
    #[prost(message, repeated, tag = "1")]
    series: Vec<Series>,
}

#[derive(Clone, PartialEq, Message)]
struct Series {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Raw>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Raw {
    #[prost(bytes = "vec", tag = "1")]
    profile: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(message, optional, tag = "5")]
    pprof: Option<Pprof>,
}

#[derive(Clone, PartialEq, Message)]
struct Pprof {
    #[prost(bytes = "vec", tag = "1")]
    profile: Vec<u8>,
}

/// The profile at the time that the recorded question asks for: a second gzip member with the message's `time_nanos`, of which the last counts.
fn at_recorded_time(mut profile: Vec<u8>) -> Vec<u8> {
    let mut time = vec![9 << 3];
    prost::encoding::encode_varint(1_795_247_000_000_000_000, &mut time);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&time).unwrap();
    profile.extend(packed.finish().unwrap());
    profile
}

/// Pushes the program's profile and returns what a recorded question of `profilecli query go-pgo` is answered with.
async fn asked(profile: Vec<u8>) -> Vec<u8> {
    let server = Server::new("pgo", ServerOptions::default());
    let label = |name: &str, value: &str| Label { name: name.into(), value: value.into() };
    let labels = vec![label("__name__", "process_cpu"), label("service_name", "hot")];
    let samples = vec![Raw { profile: at_recorded_time(profile) }];
    let push = Push { series: vec![Series { labels, samples }] };
    assert_eq!(server.push(push.encode_to_vec()).await.0, StatusCode::OK);
    let path = "/querier.v1.QuerierService/SelectMergeStacktraces";
    let question = golden("profilecli-go-pgo.bin");
    let (status, answer) = server.post(path, "application/proto", question).await;
    assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&answer));
    Answer::decode(&answer[..]).unwrap().pprof.unwrap().profile
}

#[tokio::test]
async fn go_builds_with_what_is_answered_as_with_its_own_profile() {
    if !needs(Requirement::Go) {
        return;
    }
    let folder = profiled();
    let answer = asked(std::fs::read(folder.join("own.pprof")).unwrap()).await;
    std::fs::write(folder.join("default.pgo"), answer).unwrap();
    let own = hot_calls(&folder, "local", "own.pprof", Packages::Main);
    let asked = hot_calls(&folder, "local", "default.pgo", Packages::All);
    let mix = |call: &String| call.contains("call main.mix ") && call.contains("main.(*square).area");
    assert!(own.iter().any(mix), "{own:?}");
    assert_eq!(asked, own, "the same calls are inlined");
    // Go counts samples in its own profile and time in the answer, which has no numbers: 10 ms each.
    let (own, asked) = (weights(&folder, "own.pprof"), weights(&folder, "default.pgo"));
    let all: i64 = own.values().sum();
    let hot = |weights: &BTreeMap<String, i64>, period: i64| -> BTreeMap<String, i64> {
        let of_main = weights.iter().filter(|(call, _)| call.starts_with("main."));
        let of_main = of_main.filter(|(_, weight)| **weight * 100 >= all * period);
        of_main.map(|(call, weight)| (call.clone(), weight / period)).collect()
    };
    let own = hot(&own, 1);
    assert!(own.keys().any(|call| call.starts_with("main.(*square).area main.mix ")), "{own:?}");
    assert_eq!(hot(&asked, 10_000_000), own);
}

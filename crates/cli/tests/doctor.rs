//! `plumb doctor` on the machine that it runs on: what it says is JSON as documented, and nothing stays behind.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use plumb_fixtures::{Requirement, skip};

/// Directories below `folder` whose name begins like this.
fn called(folder: &Path, begin: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders
        .flat_map(|entry| {
            let own = entry.file_name().to_str().filter(|name| name.starts_with(begin)).map(str::to_owned);
            own.into_iter().chain(called(&entry.path(), begin)).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn everything_is_tried_and_nothing_left() {
    let mut plumb = Command::new(env!("CARGO_BIN_EXE_plumb"));
    let child = plumb.args(["doctor", "--json"]).stdout(Stdio::piped()).spawn().expect("plumb runs");
    let pid = child.id();
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", output.status);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert!(json["schema"].as_str().is_some_and(|schema| schema.starts_with("1.")), "{json}");
    let programs = json["programs"].as_array().expect("each feature was tried");
    let refused = |entry: &&serde_json::Value| {
        entry["says"].as_str().unwrap_or_default().starts_with("the kernel refuses the program")
    };
    let refused: Vec<_> = programs.iter().filter(refused).collect();
    assert!(refused.is_empty(), "docs/kernels.md names no kernel that refuses a program: {refused:?}");
    assert_eq!(called(Path::new("/sys/fs/cgroup"), &format!("plumb-{pid}-")), [""; 0]);
}

/// Root of a user namespace is an ordinary user.
#[test]
fn capabilities_of_a_user_namespace_do_not_count() {
    let namespace = ["--user", "--map-root-user"];
    let may = Command::new("unshare").args(namespace).arg("true").stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        skip(Requirement::Unprivileged, "no user namespace can be made");
        return;
    }
    let plumb = Command::new("unshare")
        .args(namespace)
        .args([env!("CARGO_BIN_EXE_plumb"), "doctor", "--json"])
        .output()
        .expect("it runs");
    let json: serde_json::Value = serde_json::from_slice(&plumb.stdout).expect("it is JSON");
    assert_eq!(json["host"]["is_in_user_namespace"], true);
    assert_eq!(json["host"]["capabilities"], serde_json::json!([]));
    let findings = json["findings"].as_array().expect("there are findings");
    let says = |what: &str| findings.iter().find(|finding| finding["what"] == what).map(|f| &f["says"]);
    assert!(says("BPF").is_some_and(|says| says.to_string().contains("user namespace")), "{findings:#?}");
}

#[test]
fn a_recording_has_findings_and_no_host() {
    let folder = std::env::temp_dir().join(format!("plumb-doctor-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let file = folder.join("a.folded");
    std::fs::write(&file, "main;work 3\n").expect("it is writable");
    let output = Command::new(env!("CARGO_BIN_EXE_plumb")).args(["doctor", "--json"]).arg(&file).output();
    let output = output.expect("plumb runs");
    std::fs::remove_dir_all(&folder).expect("it is ours");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let keys: BTreeSet<&str> = json.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys, BTreeSet::from(["findings", "plumb", "schema", "subject", "version"]));
}

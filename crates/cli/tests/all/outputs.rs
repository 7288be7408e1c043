//! Output files of commands: complete or not written at all, with the right permissions, and without output of the recorded command.
//!
//! Needs perf_event_open and a C compiler; without them, a test prints so and is skipped.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::spun::{folder, may_record, plumb, recorded, succeeds, text};

const OLD: &str = "what was there before";

/// Runs plumb with a limit of one KiB per file, as on an almost full disk.
fn plumb_without_room(folder: &Path, arguments: &[&str]) -> Output {
    // A write beyond the limit fails, instead of killing the process.
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_plumb")]).args(arguments);
    // The user's cache is redirected too.
    command.env("XDG_CACHE_HOME", folder.join("cache"));
    command.current_dir(folder).stdin(Stdio::null()).output().expect("there is a shell")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").mode() & 0o777
}

#[test]
fn a_full_disk_leaves_what_was_there() {
    if !may_record() {
        return;
    }
    let Some(folder) = recorded("outputs-full") else { return };
    fs::create_dir(folder.join("cache")).expect("the folder is there");
    let commands: [(&str, &[&str]); 12] = [
        ("flame.html", &["flame", "-o"]),
        ("flame.svg", &["flame", "-o"]),
        ("annotate.html", &["annotate", "fib", "--html", "-o"]),
        ("diff.html", &["diff", "profile.plumb", "profile.plumb", "-o"]),
        ("out.pb.gz", &["export", "-o"]),
        ("out.speedscope.json", &["export", "-o"]),
        ("out.csv", &["export", "-o"]),
        ("out.folded", &["export", "-o"]),
        ("out.callgrind", &["export", "-o"]),
        ("out.csv.gz", &["export", "-o"]),
        ("out.perf", &["export", "--format", "perf-script", "-o"]),
        ("stat.json", &["stat", "--json", "-n", "9", "-o"]),
    ];
    for (file, command) in commands {
        let path = folder.join(file);
        for old in [Some(OLD), None] {
            match old {
                Some(old) => fs::write(&path, old).expect("the folder is there"),
                None => fs::remove_file(&path).expect("it is there"),
            }
            let before = names(&folder);
            let rest: &[&str] = if command[0] == "stat" { &["--", "true"] } else { &[] };
            let arguments = [command, &[file], rest].concat();
            let output = plumb_without_room(&folder, &arguments);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
            assert!(said.contains(&format!("cannot write {file}: ")), "{arguments:?}: {said}");
            assert_eq!(fs::read_to_string(&path).ok().as_deref(), old, "{arguments:?}");
            assert_eq!(names(&folder), before, "{arguments:?}: nothing is left behind");
        }
        // With space it is written.
        fs::write(&path, OLD).expect("the folder is there");
        let rest: &[&str] = if command[0] == "stat" { &["--", "true"] } else { &[] };
        succeeds(&folder, &[command, &[file], rest].concat());
        assert!(fs::metadata(&path).expect("it is there").len() > 1024, "{file} has no room in a KiB");
        fs::remove_file(&path).expect("it is there");
    }
}

/// Recordings hold command lines, which may include passwords. Reports are made to be shared.
#[test]
fn recordings_are_their_owners_and_reports_everybodys() {
    if !may_record() {
        return;
    }
    let Some(folder) = recorded("outputs-modes") else { return };
    let recording = folder.join("profile.plumb");
    assert_eq!(mode(&recording), 0o600);
    fs::set_permissions(&recording, fs::Permissions::from_mode(0o644)).expect("it is ours");
    succeeds(&folder, &["record", "--quiet", "--", "./stacks"]);
    assert_eq!((mode(&recording), mode(&folder.join("profile.plumb.old"))), (0o600, 0o644));
    succeeds(&folder, &["explain", "-o", "explained.plumb", "--", "./stacks"]);
    assert_eq!(mode(&folder.join("explained.plumb")), 0o600);
    File::create(folder.join("any")).expect("the folder is there");
    for (file, command) in [("flame.svg", "flame"), ("out.csv", "export")] {
        succeeds(&folder, &[command, "-o", file]);
        assert_eq!(mode(&folder.join(file)), mode(&folder.join("any")), "{file}");
    }
}

#[test]
fn a_recording_on_standard_output_holds_nothing_of_the_command() {
    let folder = folder("outputs-stdout");
    if !may_record() {
        return;
    }
    // More than fits into a register, which is in a recording too.
    let printed = "printed by the command\n";
    let script = "set -- 'printed by the command'; echo \"$1\"; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; echo \"$1\"";
    for output in ["-", "/dev/stdout", "/dev/fd/1"] {
        let recorded = plumb(&folder, &["record", "-o", output, "--", "sh", "-c", script]);
        assert!(recorded.status.success(), "{}", text(&recorded.stderr));
        assert_eq!(text(&recorded.stderr).matches(printed).count(), 2, "{output}");
        assert!(recorded.stdout.starts_with(b"PK"), "{output}: it begins as a recording does");
        // A zip reader tolerates much; the file contains only the recording.
        let file = File::create(folder.join("there.plumb")).expect("the folder is there");
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command.args(["record", "-q", "-o", output, "--", "sh", "-c", script]).current_dir(&folder);
        let redirected = command.stdout(file).stdin(Stdio::null()).output().expect("plumb runs");
        assert!(redirected.status.success(), "{}", text(&redirected.stderr));
        let bytes = fs::read(folder.join("there.plumb")).expect("it is there");
        let is_mixed = bytes.windows(printed.len()).any(|bytes| bytes == printed.as_bytes());
        assert!(bytes.starts_with(b"PK") && !is_mixed, "{output}");
        succeeds(&folder, &["report", "there.plumb"]);
    }
    let links =
        ["/dev/stdout", "/dev/null"].map(|path| fs::symlink_metadata(path).map(|meta| meta.is_file()));
    assert!(
        links.into_iter().all(|is_file| is_file.is_ok_and(|is_file| !is_file)),
        "they are what they were"
    );
}

#[test]
fn a_result_on_standard_output_holds_nothing_of_the_command() {
    let folder = folder("outputs-stat");
    let output = plumb(&folder, &["stat", "--json", "-o", "-", "--", "echo", "printed"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(serde_json::from_slice::<serde_json::Value>(&output.stdout).is_ok(), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("printed"), "{}", text(&output.stderr));
    assert!(names(&folder).is_empty(), "{:?}", names(&folder));
    let refused = plumb(&folder, &["stat", "-o", "missing/file", "--", "touch", "ran"]);
    assert!(!refused.status.success() && !folder.join("ran").exists(), "{}", text(&refused.stderr));
}

#[test]
fn a_recording_through_a_link_leaves_the_link() {
    let folder = folder("outputs-link");
    if !may_record() {
        return;
    }
    fs::create_dir(folder.join("real")).expect("a folder");
    std::os::unix::fs::symlink("real/file.plumb", folder.join("link.plumb")).expect("a link");
    for _ in 0..2 {
        succeeds(&folder, &["record", "-q", "-o", "link.plumb", "--", "true"]);
    }
    assert!(fs::symlink_metadata(folder.join("link.plumb")).is_ok_and(|meta| meta.is_symlink()));
    assert_eq!(names(&folder.join("real")), ["file.plumb", "file.plumb.old"]);
    assert_eq!(names(&folder), ["link.plumb", "real"]);
}

#[test]
fn a_closed_standard_output_is_no_place_for_a_recording() {
    if !may_record() {
        return;
    }
    let folder = folder("outputs-closed");
    let run = |redirection: &str| {
        let script = format!("exec \"$0\" record -o - -- touch ran {redirection}");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_plumb")]).current_dir(&folder).stdin(Stdio::null());
        command.output().expect("there is a shell")
    };
    let closed = run(">&-");
    assert_eq!(closed.status.code(), Some(1), "{}", text(&closed.stderr));
    assert!(text(&closed.stderr).contains("standard output: it is closed"), "{}", text(&closed.stderr));
    assert!(!folder.join("ran").exists(), "that is known before anything runs");
    let nowhere = run(">/dev/null");
    assert!(nowhere.status.success(), "{}", text(&nowhere.stderr));
}

/// Rust's library opens `/dev/null` in its place, to which every write succeeds.
#[test]
fn who_has_no_standard_output_is_told() {
    if !may_record() {
        return;
    }
    let Some(folder) = recorded("outputs-closed") else { return };
    let run = |redirection: &str, arguments: &[&str]| {
        let script = format!("exec \"$@\" {redirection}");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_plumb")]).args(arguments);
        command.current_dir(&folder).stdin(Stdio::null()).output().expect("there is a shell")
    };
    for arguments in [&["report"][..], &["fold"], &["export", "-o", "-", "--format", "folded"]] {
        let closed = run(">&-", arguments);
        let said = text(&closed.stderr);
        assert_eq!(closed.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("standard output: it is closed"), "{arguments:?}: {said}");
        assert!(run(">/dev/null", arguments).status.success(), "{arguments:?}");
    }
}

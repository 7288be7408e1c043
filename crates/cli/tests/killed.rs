//! A recorder that is killed, or that outgrows its memory: what was recorded is there.
//!
//! Needs perf_event_open: where it is missing a test says so and does nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use plumb_fixtures::{Requirement, needs};

fn plumb(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// A folder for a test of this name, unless nothing can be recorded here.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder for tests can be written");
    needs(Requirement::Perf).then_some(folder)
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    plumb(folder, arguments).output().expect("plumb runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Counts for ever, and says who it is.
const BUSY: &str = "echo $$ > pid; while :; do i=$((i + 1)); done";

/// A recorder of [`BUSY`] that has written something of it.
fn recorder(folder: &Path) -> Child {
    let part = folder.join("x.plumb.part");
    let mut recorder = plumb(folder, &["record", "-q", "-o", "x.plumb", "--", "sh", "-c", BUSY])
        .spawn()
        .expect("plumb runs");
    let begin = Instant::now();
    // The first segment is of what there is after two seconds.
    while fs::metadata(&part).map_or(0, |meta| meta.len()) < 1000 {
        assert!(begin.elapsed() < Duration::from_secs(300), "nothing is kept");
        assert!(recorder.try_wait().expect("it can be asked").is_none(), "the recorder ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    recorder
}

fn end_target(folder: &Path) {
    let pid = fs::read_to_string(folder.join("pid")).expect("the target has said who it is");
    let killed = Command::new("kill").args(["-9", pid.trim()]).status().expect("kill runs");
    assert!(killed.success());
}

#[test]
fn what_a_killed_recorder_wrote_can_be_read() {
    let Some(folder) = folder("killed") else { return };
    let mut recorder = recorder(&folder);
    recorder.kill().expect("it runs");
    recorder.wait().expect("it has ended");
    end_target(&folder);
    let part = folder.join("x.plumb.part");
    assert_eq!(fs::metadata(&part).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert!(!folder.join("x.plumb").exists());
    let report = run(&folder, &["report", "x.plumb.part"]);
    assert!(report.status.success(), "{}", text(&report.stderr));
    assert!(text(&report.stderr).contains("was not finished"), "{}", text(&report.stderr));
    let folded = text(&run(&folder, &["fold", "x.plumb.part"]).stdout);
    assert!(folded.lines().count() > 0 && folded.contains("sh"), "{folded}");
    // Cut within its last segment, as by a recorder that was writing it, nothing may be left of one segment; but it is said.
    let bytes = fs::read(&part).expect("it is there");
    fs::write(folder.join("cut.part"), &bytes[..bytes.len() - 1]).expect("the folder can be written");
    let cut = run(&folder, &["report", "cut.part"]);
    assert!(text(&cut.stderr).contains("not finished"), "{}", text(&cut.stderr));

    // The next recording of that name moves it away, and leaves nothing behind but itself.
    let next = run(&folder, &["record", "-q", "-o", "x.plumb", "--", "true"]);
    assert!(next.status.success(), "{}", text(&next.stderr));
    assert_eq!(fs::read(folder.join("x.plumb.part.old")).expect("it was kept"), bytes);
    assert!(folder.join("x.plumb").exists() && !part.exists());
}

#[test]
fn two_recorders_of_one_file_do_not_meet() {
    let Some(folder) = folder("two") else { return };
    let mut first = recorder(&folder);
    let second = run(&folder, &["record", "-q", "-o", "x.plumb", "--", "true"]);
    assert!(second.status.success(), "{}", text(&second.stderr));
    assert!(folder.join("x.plumb.part").exists(), "it is the first one's");
    end_target(&folder);
    first.wait().expect("it ends with its target");
    let parts: Vec<_> =
        fs::read_dir(&folder).expect("it is there").flatten().map(|file| file.file_name()).collect();
    assert!(!parts.iter().any(|name| name.to_string_lossy().contains(".part")), "{parts:?}");
}

#[test]
fn an_unfinished_recording_is_named_where_there_is_no_other() {
    let Some(folder) = folder("unfinished") else { return };
    fs::write(folder.join("profile.plumb.part"), b"plumb journal 1\n").expect("the folder can be written");
    let report = run(&folder, &["report"]);
    assert!(text(&report.stderr).contains("profile.plumb.part"), "{}", text(&report.stderr));
    let report = run(&folder, &["report", "profile.plumb.part"]);
    assert!(text(&report.stderr).contains("no segment is whole"), "{}", text(&report.stderr));
}

#[test]
fn a_recording_that_outgrows_its_memory_is_whole() {
    let Some(folder) = folder("outgrown") else { return };
    // With the least memory some hundred samples are a part.
    let work = "i=0; while [ $i -lt 1500000 ]; do i=$((i + 1)); done";
    for output in ["x.plumb", "-"] {
        let arguments = ["record", "--max-memory", "1M", "-F", "2000", "-o", output, "--", "sh", "-c", work];
        let recorded = run(&folder, &arguments);
        assert!(recorded.status.success(), "{}", text(&recorded.stderr));
        if output == "-" {
            fs::write(folder.join("x.plumb"), &recorded.stdout).expect("the folder can be written");
        }
        let said = text(&recorded.stderr);
        assert!(said.contains("more than --max-memory 1 MiB"), "{said}");
        let samples =
            said.split(" samples").next().and_then(|text| text.rsplit(' ').next()).expect("it is said");
        let bytes = fs::read(folder.join("x.plumb")).expect("it is there");
        let major = text(&bytes[..bytes.len().min(1000)]);
        if samples.parse::<u64>().expect("a number") > 2000 {
            assert!(major.contains("\"major\": 2"), "{samples} samples, {major}");
        }
        let report = text(&run(&folder, &["report", "--json", "x.plumb"]).stdout);
        let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
        assert_eq!(report["reports"][0]["samples"].to_string(), samples, "{output}: {said}");
    }
}

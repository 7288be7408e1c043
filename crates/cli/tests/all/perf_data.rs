//! Other commands on a perf.data, as a user runs them. Needs perf; if it can't record, a test prints so and is
//! skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plumb_fixtures::{Requirement, needs};

/// An empty directory for a test of this name.
fn empty(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    folder
}

/// A perf.data with stack copies, in a directory for a test of this name.
fn perf_data(name: &str) -> Option<PathBuf> {
    let folder = empty(name);
    if !needs(Requirement::PerfCommand) {
        return None;
    }
    let data = folder.join("perf.data");
    let burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let recorded = Command::new("perf")
        .args(["record", "-q", "-e", "cpu-clock:u", "-F", "999", "--call-graph=dwarf,1024", "-o"])
        .arg(&data)
        .args(["--", "sh", "-c", burn])
        .stdin(Stdio::null())
        .output();
    let output = recorded.expect("it was started before");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(data)
}

fn report(data: &Path) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_plumb")).args(["report", "--json"]).arg(data).output();
    let output = output.expect("plumb runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

#[test]
fn stacks_of_another_architecture_are_not_read_as_those_of_this_one() {
    let Some(data) = perf_data("architecture") else { return };
    let own = report(&data);
    // Change the architecture name in perf's header.
    let mut bytes = std::fs::read(&data).expect("perf wrote it");
    let (here, there) = (b"x86_64\0\0", b"riscv64\0");
    let places: Vec<usize> =
        (0..bytes.len() - here.len()).filter(|&at| bytes[at..].starts_with(here)).collect();
    assert!(!places.is_empty(), "perf names the architecture");
    places.into_iter().for_each(|at| bytes[at..at + there.len()].copy_from_slice(there));
    std::fs::write(&data, bytes).expect("the folder is there");
    let other = report(&data);
    let samples =
        |report: &serde_json::Value| report["reports"][0]["kept_samples"].as_u64().expect("a count");
    assert!(samples(&own) > 0);
    assert_eq!(samples(&other), samples(&own), "every sample is counted");
    let causes = |report: &serde_json::Value| report["reports"][0]["cut_causes"].to_string();
    assert!(causes(&other).contains("other-architecture"), "it says why: {}", causes(&other));
    assert!(!causes(&own).contains("other-architecture"), "{}", causes(&own));
    assert_eq!(other["reports"][0]["complete_percent"], 0.0);
}

fn run(program: &str, arguments: &[&str], file: &Path) -> String {
    let output = Command::new(program).args(arguments).arg(file).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text")
}

/// Thread and time in us of each sample, as `perf script` prints them, in the order of the lines.
fn samples(text: &str) -> Vec<(u64, u64)> {
    let sample = |line: &str| {
        let (who, _) = line.split_once(": ")?;
        let mut words = who.split_whitespace().rev();
        let (seconds, fraction) = words.next()?.split_once('.')?;
        let tid = words.find(|word| !word.starts_with('['))?.parse().ok()?;
        Some((tid, seconds.parse::<u64>().ok()? * 1_000_000 + fraction.get(..6)?.parse::<u64>().ok()?))
    };
    text.lines().filter(|line| line.contains(" cpu-clock:u:")).filter_map(sample).collect()
}

/// Records processes on all processors by `perf record --threads`. `None`, after printing why, where this perf can't.
fn directory(name: &str) -> Option<PathBuf> {
    let folder = empty(name);
    if !needs(Requirement::PerfCommand) {
        return None;
    }
    let burn = "for n in 1 2 3 4; do (i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done) & done; wait";
    let recorded = Command::new("perf")
        .args(["record", "-q", "--threads", "-e", "cpu-clock:u", "-F", "999", "-g", "-o"])
        .arg(folder.join("recorded"))
        .args(["--", "sh", "-c", burn])
        .stdin(Stdio::null())
        .output()
        .expect("it was started before");
    if !recorded.status.success() {
        let why = String::from_utf8_lossy(&recorded.stderr);
        plumb_fixtures::skip(Requirement::PerfCommand, format_args!("no perf record --threads: {why}"));
        return None;
    }
    Some(folder.join("recorded"))
}

#[test]
fn a_directory_has_the_samples_that_perf_script_prints() {
    let Some(recorded) = directory("threads") else { return };
    let data = recorded.join("data");
    let perfs = run("perf", &["script", "-F", "comm,tid,time,event", "-i"], &recorded);
    let perfs = samples(&perfs);
    assert!(perfs.len() > 20, "{perfs:?}");
    for named in [&recorded, &data] {
        let mut ours = samples(&run(env!("CARGO_BIN_EXE_plumb"), &["script"], named));
        assert!(ours.is_sorted_by_key(|sample| sample.1), "merged by time");
        let mut perfs = perfs.clone();
        ours.sort_unstable();
        perfs.sort_unstable();
        assert_eq!(ours, perfs);
    }
    let counted = report(&recorded)["reports"][0]["kept_samples"].as_u64();
    assert_eq!(counted, Some(perfs.len() as u64));

    // Samples are missing with their file, and the header alone is refused.
    let rings = std::fs::read_dir(&recorded).expect("perf wrote it").flatten().map(|file| file.path());
    let mut rings: Vec<PathBuf> = rings.filter(|path| *path != data).collect();
    // All processes may have run on one processor.
    rings.sort_by_key(|path| path.metadata().map_or(0, |known| known.len()));
    if let [.., _, largest] = &rings[..] {
        std::fs::write(largest, b"").expect("the folder is there");
        assert!(report(&recorded)["reports"][0]["kept_samples"].as_u64() < counted);
    }
    let alone = recorded.with_file_name("alone");
    std::fs::copy(&data, &alone).expect("the folder is there");
    assert!(refusal(&alone).contains("name the whole directory"), "{}", refusal(&alone));
}

/// The error message of `plumb report FILE`.
fn refusal(file: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_plumb")).arg("report").arg(file).output();
    let output = output.expect("plumb runs");
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).expect("it is text")
}

#[test]
fn other_directories_are_refused_with_what_they_look_like() {
    type Files = &'static [(&'static str, &'static [u8])];
    let folder = empty("directories");
    let made = |name: &str, files: Files| {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).expect("the folder is there");
        for (name, bytes) in files {
            std::fs::write(folder.join(name), bytes).expect("the folder is there");
        }
        refusal(&folder)
    };
    let cases: [(&str, Files, &str); 6] = [
        ("nothing", &[], "an empty directory"),
        ("rings", &[("data.0", b""), ("data.1", b"")], "without the file `data`"),
        ("data", &[("data", b"a;b 3\n")], "recognizes no profile"),
        ("ctf", &[("metadata", b"/* CTF 1.8 */"), ("perf_stream_0", b"")], "a trace in CTF"),
        ("uftrace", &[("info", b"Ftrace!\0"), ("task.txt", b"")], "uftrace dump --chrome"),
        ("holds", &[("b.plumb", b"PK\x03\x04"), ("a", b"text")], "name a file in it, such as"),
    ];
    for (name, files, words) in cases {
        let said = made(name, files);
        assert!(said.contains(words) && said.contains(name), "{name}: {said}");
    }
}

/// The recording of `recorded/small.c` on aarch64, read with these arguments: exit status, output, errors.
fn of_aarch64(arguments: &[&str]) -> (bool, String, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let output = Command::new(env!("CARGO_BIN_EXE_plumb")).args(arguments).current_dir(folder).output();
    let output = output.expect("plumb runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn stacks_of_aarch64_are_unwound_and_named_by_the_files_of_symfs() {
    let (is_done, folded, errors) = of_aarch64(&["fold", "--symfs", ".", "aarch64.data.gz"]);
    assert!(is_done, "{errors}");
    let inner = "_start;middle.constprop.0;down.constprop.0;down.constprop.0;down.constprop.0;down.constprop.0;down.constprop.0;\
                 down.constprop.0;spin.constprop.0";
    let stacks: Vec<&str> = folded.lines().filter(|line| line.contains("spin")).collect();
    assert!(!stacks.is_empty() && stacks.iter().all(|line| line.contains(inner)), "{folded}");
    assert!(!folded.contains("could not be read"), "{folded}");
    let (is_done, listing, errors) =
        of_aarch64(&["annotate", "--symfs", ".", "--asm", "aarch64.data.gz", "spin.constprop.0"]);
    assert!(is_done && listing.contains("madd x0, x0, x3, x2"), "{listing}{errors}");
}

#[test]
fn without_the_recorded_files_the_next_step_is_named() {
    let (_, report, errors) = of_aarch64(&["report", "aarch64.data.gz"]);
    assert!(report.contains("file could not be read (/programs/small)"), "{report}{errors}");
    let (_, doctor, errors) = of_aarch64(&["doctor", "aarch64.data.gz"]);
    assert!(doctor.contains("--symfs DIR"), "{doctor}{errors}");
    // A file of that name with another build ID is not believed.
    let folder = empty("symfs");
    std::fs::copy(env!("CARGO_BIN_EXE_plumb"), folder.join("small")).expect("the folder is there");
    let folder = folder.to_str().expect("it is text");
    let (_, report, errors) = of_aarch64(&["report", "--symfs", folder, "aarch64.data.gz"]);
    assert!(report.contains("0% complete"), "{report}{errors}");
    let function = "0x210@small";
    let (is_done, listing, errors) =
        of_aarch64(&["annotate", "--symfs", folder, "aarch64.data.gz", function]);
    assert!(!is_done && errors.contains("--symfs DIR"), "{listing}{errors}");
}

#[test]
fn a_directory_that_is_none_is_refused() {
    for (wrong, reason) in [("nowhere", "no such directory"), ("small.c", "not a directory")] {
        let (is_done, report, errors) = of_aarch64(&["report", "--symfs", wrong, "aarch64.data.gz"]);
        assert!(!is_done && report.is_empty(), "{report}");
        assert!(errors.contains(wrong) && errors.contains(reason), "{errors}");
    }
}

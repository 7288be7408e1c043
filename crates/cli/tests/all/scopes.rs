//! `plumb record` of a cgroup, a tree of processes, and programs by name: exactly these processes are recorded.
//!
//! Needs root; without it, a test prints so and is skipped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use plumb_fixtures::{Requirement, copy_program, needs, skip};
use serde_json::Value;

/// Works until the file is removed.
const WORK: &str = "while [ -e go ]; do :; done";

/// A program that is killed at the end of the test, however that ends.
struct Running(Child);

impl Running {
    fn id(&self) -> u32 {
        self.0.id()
    }

    fn wait(&mut self) {
        self.0.wait().expect("it ends");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Directory of a test.
struct Place {
    folder: PathBuf,
}

impl Place {
    /// `None`, after saying why, if the machine can't be sampled. `name` is short: programs are named after it.
    fn new(name: &str) -> Option<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("scopes-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
        let place = Self { folder };
        if !needs(Requirement::WholeMachine) {
            return None;
        }
        std::fs::write(place.folder.join("go"), "").expect("the folder can be written");
        Some(place)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    fn plumb(&self, arguments: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_plumb"), arguments).output().expect("plumb runs")
    }

    /// A shell with another name that runs a script.
    fn shell(&self, name: &str, script: &str) -> Running {
        let program = self.folder.join(name);
        if !program.exists() {
            copy_program("/bin/sh", &program);
        }
        Running(self.command(&program.to_string_lossy(), &["-c", script]).spawn().expect("it runs"))
    }

    fn stop(&self) {
        std::fs::remove_file(self.folder.join("go")).expect("it is there until now");
    }

    /// Number of samples by thread name.
    fn comms(&self) -> Vec<(String, u64)> {
        let report = self.plumb(&["report", "--json", "--no-children", "--sort", "comm"]).stdout;
        let report: Value = serde_json::from_slice(&report).expect("it is JSON");
        let rows = report["reports"][0]["rows"].as_array().expect("there are rows").clone();
        let row = |row: &Value| Some((row["comm"].as_str()?.to_owned(), row["self_samples"].as_u64()?));
        rows.iter().map(|json| row(json).expect("it has both")).collect()
    }

    /// Samples per second of CPU time: the requested rate, unless the kernel allows less.
    fn rate(&self) -> f64 {
        let report = self.plumb(&["report", "--json"]).stdout;
        let report: Value = serde_json::from_slice(&report).expect("it is JSON");
        report["frequency_hz"].as_f64().expect("it is known")
    }

    fn wait_for(&self, file: &str) {
        while !self.folder.join(file).exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

/// Waits until a recorder has its events: one per CPU for its rings, and one that samples.
fn is_recording(recorder: &mut Child) {
    let cpus = plumb_fixtures::host::cpus();
    let folder = format!("/proc/{}/fd", recorder.id());
    let mut sleeps = 0;
    loop {
        let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        let events = links.filter(|link| link.as_os_str() == "anon_inode:[perf_event]").count();
        assert!(recorder.try_wait().expect("it can be waited for").is_none(), "it ended by itself");
        // Events are enabled right after the last one is opened, and then the recorder sleeps. A late recorder on a busy machine is runnable instead.
        std::thread::sleep(std::time::Duration::from_millis(50));
        let state = plumb_process::state(recorder.id(), recorder.id());
        sleeps = if events >= 2 * cpus && state == Some('S') { sleeps + 1 } else { 0 };
        if sleeps == 4 {
            return;
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Parses seconds such as `0m1.25s`.
fn seconds(text: &str) -> f64 {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m').expect("minutes and seconds");
    minutes.parse::<f64>().expect("a number") * 60.0 + seconds.parse::<f64>().expect("a number")
}

/// Both capture methods; the second has the requirements that `plumb doctor` lists.
const CAPTURES: [&str; 2] = ["perf", "bpf"];

#[test]
fn a_cgroup_is_recorded_and_nobody_else() {
    let Some(place) = Place::new("cgroup") else { return };
    let root = std::fs::read_to_string("/proc/self/mountinfo").expect("the kernel has it");
    let root = root.lines().find(|line| line.contains(" - cgroup2 ")).and_then(|line| line.split(' ').nth(4));
    let name = format!("test-of-plumb-{}", std::process::id());
    let cgroup = Path::new(root.unwrap_or("/sys/fs/cgroup")).join(&name);
    if let Err(error) = std::fs::create_dir(&cgroup) {
        skip(Requirement::Cgroup, format_args!("no cgroup can be made: {error}"));
        return;
    }
    // An empty set of followed processes does not mean all processes.
    if needs(Requirement::Bpf) {
        for command in [&["record", "--off-cpu"][..], &["trace"]] {
            let output = place.plumb(&[command, &["--cgroup", &name, "--duration", "0.5"]].concat());
            let said = text(&output.stderr);
            assert!(!output.status.success() && said.contains("no process in this cgroup"), "{said}");
        }
    }
    let mut inside = place.shell("inside", WORK);
    let mut outside = place.shell("outside", WORK);
    std::fs::write(cgroup.join("cgroup.procs"), inside.id().to_string()).expect("it can be moved there");
    for capture in CAPTURES {
        // By path and by name.
        for path in [&*cgroup.to_string_lossy(), &*name] {
            // On a busy machine it takes longer until there are some.
            let is_sampled = ["0.5", "2", "8"].iter().any(|lasts| {
                let output =
                    place.plumb(&["record", "--cgroup", path, "--capture", capture, "--duration", lasts]);
                assert!(output.status.success(), "{}", text(&output.stderr));
                let comms = place.comms();
                assert!(comms.iter().all(|(comm, _)| comm == "inside"), "{comms:?}");
                comms.iter().any(|&(_, samples)| samples > 5)
            });
            assert!(is_sampled, "{path} {capture}");
        }
    }
    // A service restarted by its manager enters the cgroup from outside.
    let mut joined = Vec::new();
    if needs(Requirement::Bpf) {
        for (command, shown) in
            [(&["record", "--off-cpu"][..], &["script"][..]), (&["trace", "-e", "clock_nanosleep"], &[])]
        {
            let options = [command, &["--cgroup", &name, "--duration", "6"]].concat();
            let recorder =
                place.command(env!("CARGO_BIN_EXE_plumb"), &options).stdout(Stdio::piped()).spawn();
            let recorder = recorder.expect("plumb runs");
            // The process starts before or with the recording: both are correct.
            std::thread::sleep(std::time::Duration::from_secs(2));
            let joins = place.shell("joins", "while [ -e go ]; do sleep 0.05; done");
            std::fs::write(cgroup.join("cgroup.procs"), joins.id().to_string())
                .expect("it can be moved there");
            let printed = text(&recorder.wait_with_output().expect("it ends").stdout);
            joined.push(joins);
            let seen = if shown.is_empty() { printed } else { text(&place.plumb(shown).stdout) };
            assert!(seen.contains("sleep"), "{command:?}: {seen}");
        }
    }
    place.stop();
    joined.iter_mut().for_each(Running::wait);
    inside.wait();
    outside.wait();
    std::fs::remove_dir(&cgroup).expect("it is empty");
    let output = place.plumb(&["record", "--cgroup", &name, "--duration", "0.5"]);
    assert!(text(&output.stderr).contains("no such cgroup"), "{}", text(&output.stderr));
}

#[test]
fn a_tree_is_recorded_until_its_last_process_ends() {
    let Some(place) = Place::new("tree") else { return };
    for capture in CAPTURES {
        std::fs::write(place.folder.join("go"), "").expect("the folder can be written");
        let mut other = place.shell("other", WORK);
        // A child that exists already; one that is started later, after its grandparent has ended, and outlives all.
        let child = "touch child; while [ -e root ]; do :; done; ./late -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'";
        for program in ["child-of", "late"] {
            copy_program("/bin/sh", place.folder.join(program));
        }
        std::fs::write(place.folder.join("root"), "").expect("the folder can be written");
        let script =
            format!("./child-of -c \"{}\" & while [ -e root ]; do :; done", child.replace('$', "\\$"));
        let mut tree = place.shell("tree", &script);
        place.wait_for("child");
        let pid = tree.id().to_string();
        let mut recorder = place
            .command(env!("CARGO_BIN_EXE_plumb"), &["record", "-q", "--tree", &pid, "--capture", capture])
            .spawn()
            .expect("plumb runs");
        is_recording(&mut recorder);
        // For up to a second, running processes are only inspected, for the tables that they need.
        std::thread::sleep(std::time::Duration::from_millis(1500));
        std::fs::remove_file(place.folder.join("root")).expect("it is there");
        tree.wait();
        assert!(recorder.wait().expect("it ends by itself").success());
        let comms = place.comms();
        let has = |name: &str| comms.iter().any(|(comm, samples)| comm == name && *samples > 0);
        assert!(has("tree") && has("child-of") && has("late"), "{capture}: {comms:?}");
        assert!(!has("other"), "{comms:?}");
        place.stop();
        other.wait();
        std::fs::remove_file(place.folder.join("child")).expect("it is there");
    }
}

#[test]
fn a_program_is_waited_for_and_followed_from_its_exec() {
    let Some(place) = Place::new("name") else { return };
    let path = place.folder.join("awaited");
    copy_program("/bin/sh", &path);
    for capture in CAPTURES {
        for name in ["awaited", &*path.to_string_lossy()] {
            std::fs::write(place.folder.join("go"), "").expect("the folder can be written");
            let stolen = plumb_fixtures::host::stolen();
            let mut other = place.shell("other", WORK);
            let mut recorder = place
                .command(
                    env!("CARGO_BIN_EXE_plumb"),
                    &["record", "--name", name, "--wait", "--capture", capture],
                )
                .stderr(Stdio::piped())
                .spawn()
                .expect("plumb runs");
            is_recording(&mut recorder);
            let burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; times > times";
            let mut program = place.shell("awaited", burn);
            program.wait();
            let output = recorder.wait_with_output().expect("it ends by itself");
            assert!(output.status.success(), "{}", text(&output.stderr));
            let comms = place.comms();
            let [(comm, samples)] = &comms[..] else { panic!("only one is waited for: {comms:?}") };
            assert_eq!(comm, "awaited");
            let stolen = plumb_fixtures::host::stolen() - stolen;
            // From its first instruction to its last, by the shell's own accounting, in hundredths of a second, without
            // time stolen by the host.
            let used = std::fs::read_to_string(place.folder.join("times")).expect("it was written");
            let used =
                used.lines().next().expect("the shell's own line").split(' ').map(seconds).sum::<f64>();
            let sampled = *samples as f64 / place.rate();
            let expected = (0.85 * used - 0.02)..(1.15 * used + stolen + 0.02);
            assert!(expected.contains(&sampled), "{samples} samples of {used} s, {stolen} s stolen");
            place.stop();
            other.wait();
        }
    }
}

#[test]
fn programs_that_run_are_found_by_name() {
    let Some(place) = Place::new("running") else { return };
    let mut both = [place.shell("found-twice", WORK), place.shell("found-twice", WORK)];
    let mut other = place.shell("other", WORK);
    let output = place.plumb(&["record", "--name", "found-twice", "--duration", "0.5"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = place.plumb(&["report", "--json", "--no-children", "--sort", "pid,comm"]).stdout;
    let report: Value = serde_json::from_slice(&report).expect("it is JSON");
    let rows = report["reports"][0]["rows"].as_array().expect("there are rows");
    let mut pids: Vec<u64> = rows.iter().filter_map(|row| row["pid"].as_u64()).collect();
    pids.sort_unstable();
    let mut expected: Vec<u64> = both.iter().map(|child| child.id().into()).collect();
    expected.sort_unstable();
    assert_eq!(pids, expected);
    place.stop();
    for child in both.iter_mut().chain([&mut other]) {
        child.wait();
    }
    let output = place.plumb(&["record", "--name", "found-twice", "--duration", "0.5"]);
    assert!(text(&output.stderr).contains("--wait"), "{}", text(&output.stderr));
    let output = place.plumb(&["record", "--tree", "4194999"]);
    assert!(text(&output.stderr).contains("no process 4194999"), "{}", text(&output.stderr));
}

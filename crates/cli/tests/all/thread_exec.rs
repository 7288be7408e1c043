//! A program that is exec'd by a thread other than the main thread stays the target, in every command that follows processes.
//!
//! Such a thread takes over the main thread's ID, whose kernel task is freed. Needs a C compiler, some tests BPF; without them, a test prints so
//! and is skipped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use plumb_fixtures::{Requirement, compiles, needs};
use serde_json::Value;

/// A directory with the program.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("thread-exec-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/thread_exec.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g", "-pthread", "-o"]).arg(folder.join("thread_exec")).arg(source);
    compiles(&mut compiler).then_some(folder)
}

fn command(folder: &Path, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.env_remove("LD_LIBRARY_PATH").args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// plumb's output.
fn plumb(folder: &Path, arguments: &[&str]) -> String {
    let output = command(folder, env!("CARGO_BIN_EXE_plumb"), arguments).output().expect("plumb runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The share of the recorded samples that contain a function.
fn share(folder: &Path, function: &str) -> f64 {
    let (mut has, mut all) = (0.0, 0.0);
    for line in plumb(folder, &["fold", "a.plumb"]).lines() {
        let (stack, weight) = line.rsplit_once(' ').expect("a stack and its weight");
        let weight: f64 = weight.parse().expect("a number");
        all += weight;
        has += if stack.contains(function) { weight } else { 0.0 };
    }
    has / all
}

fn has_shares(folder: &Path, wanted: &[(&str, f64)], how: &str) {
    for &(function, wanted) in wanted {
        let share = share(folder, function);
        assert!(
            (share - wanted).abs() < 0.08,
            "{how}: {function} has {share}, and worked {wanted} of the time"
        );
    }
}

/// Waits until a recorder has events, and has slept since.
fn is_recording(recorder: &mut Child) {
    let mut sleeps = 0;
    while sleeps < 10 {
        assert!(recorder.try_wait().expect("it can be waited for").is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(50));
        let files = std::fs::read_dir(format!("/proc/{}/fd", recorder.id())).into_iter().flatten().flatten();
        let links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        let is_open = links.filter(|link| link.to_string_lossy().starts_with("anon_inode:")).count() > 3;
        let is_asleep = plumb_process::state(recorder.id(), recorder.id()) == Some('S');
        sleeps = if is_open && is_asleep { sleeps + 1 } else { 0 };
    }
}

/// Both capture methods, where available.
fn captures() -> impl Iterator<Item = &'static str> {
    let can = [("perf", Requirement::Perf), ("bpf", Requirement::Bpf)];
    can.into_iter().filter(|&(_, needed)| needs(needed)).map(|(capture, _)| capture)
}

#[test]
fn samples_go_on_after_the_exec_and_in_later_children() {
    let Some(folder) = folder("record") else { return };
    let third = 1.0 / 3.0;
    let once = [("before_exec", third), ("after_exec", third), ("in_child", third)];
    let twice = [("before_exec", 0.5), ("after_exec", 0.25), ("in_child", 0.25)];
    for capture in captures() {
        for (how, wanted) in [("live", once), ("gone", once), ("twice", twice)] {
            let record = ["record", "-q", "--capture", capture, "-o", "a.plumb", "--", "./thread_exec", how];
            plumb(&folder, &record);
            has_shares(&folder, &wanted, &format!("{capture}, {how}"));
        }
    }
}

#[test]
fn each_life_has_its_processor_time() {
    let Some(folder) = folder("lives") else { return };
    if !needs(Requirement::Bpf) {
        return;
    }
    for how in ["live", "gone", "twice"] {
        plumb(&folder, &["record", "-q", "--capture", "bpf", "-o", "a.plumb", "--", "./thread_exec", how]);
        let report = plumb(&folder, &["procs", "--json", "a.plumb"]);
        let report: Value = serde_json::from_str(&report).expect("it is JSON");
        let programs = report["programs"].as_array().expect("there are programs");
        for program in programs.iter().filter(|program| program["self_samples"].as_u64() > Some(100)) {
            let [accounted, sampled] = ["accounted_ns", "self_weight"].map(|name| program[name].as_f64());
            let ratio = accounted.expect("it is known") / sampled.expect("it is a number");
            assert!((0.85..1.15).contains(&ratio), "{how}: {program}");
        }
    }
}

#[test]
fn threads_that_run_already_may_exec_as_well() {
    let Some(folder) = folder("attach") else { return };
    let third = 1.0 / 3.0;
    let options: [&[&str]; 2] = [&["-p"], &["--tree"]];
    for (capture, option) in captures().flat_map(|capture| options.map(|option| (capture, option))) {
        let _ = std::fs::remove_file(folder.join("go"));
        let mut target = command(&folder, "./thread_exec", &["wait"]).spawn().expect("it runs");
        let pid = target.id().to_string();
        let record = [&["record", "-q", "--capture", capture, "-o", "a.plumb"], option, &[&pid]].concat();
        let mut recorder =
            command(&folder, env!("CARGO_BIN_EXE_plumb"), &record).spawn().expect("plumb runs");
        is_recording(&mut recorder);
        std::fs::write(folder.join("go"), "").expect("the folder can be written");
        target.wait().expect("it ends");
        assert!(recorder.wait().expect("it ends with the target").success());
        let wanted = [("before_exec", third), ("after_exec", third), ("in_child", third)];
        has_shares(&folder, &wanted, &format!("{capture}, {option:?}"));
    }
}

#[test]
fn system_calls_are_counted_and_traced_after_the_exec() {
    let Some(folder) = folder("calls") else { return };
    if !needs(Requirement::Bpf) {
        return;
    }
    for how in ["live", "gone"] {
        let target = ["--", "./thread_exec", how];
        let report = plumb(&folder, &[&["kernel", "--calls", "--json"], &target[..]].concat());
        let report: Value = serde_json::from_str(&report).expect("JSON");
        assert!(report.to_string().contains("getppid"), "{how}: {report}");
        let traced = plumb(&folder, &[&["trace", "-e", "getppid"], &target[..]].concat());
        assert_eq!(traced.lines().filter(|line| line.contains("getppid(")).count(), 5000, "{how}");
        let record = ["record", "-q", "-e", "syscalls:sys_enter_getppid", "-o", "a.plumb"];
        plumb(&folder, &[&record[..], &target[..]].concat());
        let folded = plumb(&folder, &["fold", "a.plumb"]);
        let weights = folded.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
        assert_eq!(weights.sum::<u64>(), 5000, "{how}");
    }
    let _ = std::fs::remove_file(folder.join("go"));
    let mut target = command(&folder, "./thread_exec", &["wait"]).spawn().expect("it runs");
    let pid = target.id().to_string();
    let traced = std::fs::File::create(folder.join("traced")).expect("the folder can be written");
    let mut tracer = command(&folder, env!("CARGO_BIN_EXE_plumb"), &["trace", "-e", "getppid", "-p", &pid]);
    let mut tracer = tracer.stdout(traced).spawn().expect("plumb runs");
    is_recording(&mut tracer);
    std::fs::write(folder.join("go"), "").expect("the folder can be written");
    target.wait().expect("it ends");
    assert!(tracer.wait().expect("it ends with the target").success());
    let lines = std::fs::read_to_string(folder.join("traced")).expect("it was written");
    assert_eq!(lines.lines().filter(|line| line.contains("getppid(")).count(), 5000);
}

#[test]
fn time_off_the_processor_goes_on_after_the_exec() {
    let Some(folder) = folder("off-cpu") else { return };
    if !needs(Requirement::Bpf) {
        return;
    }
    plumb(&folder, &["record", "-q", "--off-cpu", "-o", "a.plumb", "--", "./thread_exec", "live"]);
    let folded = plumb(&folder, &["fold", "a.plumb"]);
    let slept = folded.lines().filter(|line| line.contains("usleep") && !line.contains("launch"));
    let slept: u64 = slept.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
    assert!(slept > 0, "{folded}");
}

//! `plumb stack` as a user runs it: the same stacks as gdb's, processes left as they were, errors.
//!
//! Needs gcc; comparisons need gdb. If ptrace is forbidden, a test prints so and is skipped.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::target::Target;
use plumb_fixtures::{Requirement, needs, skip};
use serde_json::Value;

/// State of the process' main thread.
fn state(target: &Target) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", target.pid())).expect("it runs");
    stat.rsplit_once(") ").expect("a state follows the name").1.chars().next().expect("it is there")
}

/// States of all its threads.
fn states(target: &Target) -> impl Iterator<Item = char> {
    threads(target).filter_map(|tid| {
        let stat = std::fs::read_to_string(format!("/proc/{}/task/{tid}/stat", target.pid())).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    })
}

fn signal(target: &Target, name: &str) {
    let done = Command::new("kill").args([name, &target.pid()]).status();
    assert!(done.expect("kill runs").success());
}

/// The program with waiting threads, once all have reached their places.
fn waiting(counter: Option<&Path>) -> Target {
    let program = built();
    let mut command = Command::new(program);
    let mut child = command.args(counter).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped"))
        .read_line(&mut line)
        .expect("it says something");
    assert_eq!(line, "ready\n");
    let target = Target(child);
    // The line is written when all have arrived, which is a moment before the last of them wait.
    wait_until("all threads but one wait", || {
        states(&target).filter(|&state| state == 'R').count() <= usize::from(counter.is_some())
    });
    target
}

fn built() -> PathBuf {
    static ONCE: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    ONCE.get_or_init(|| compiled("waiting", &["-O2", "-g", "-fomit-frame-pointer", "-pthread"])).clone()
}

/// A program of `tests/programs`, compiled with these options.
fn compiled(name: &str, options: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stack");
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    let source = format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let program = folder.join(name);
    let status = Command::new("gcc").args(options).arg("-o").arg(&program).arg(source).status();
    assert!(status.expect("gcc runs").success());
    program
}

fn threads(target: &Target) -> impl Iterator<Item = u64> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", target.0.id())).expect("it runs");
    tasks.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        // No machine is that slow; an endless wait would never say what it waits for.
        assert!(start.elapsed() < Duration::from_secs(300), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn plumb(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("plumb runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The process in `--json` output; `None` with a notice if ptrace is forbidden.
fn stack(target: &Target) -> Option<Value> {
    if !needs(Requirement::Ptrace) {
        return None;
    }
    let output = plumb(&["stack", "--json", "-p", &target.pid()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut all: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    Some(all["processes"][0].take())
}

/// Function names of a thread, innermost first.
fn names(thread: &Value) -> Vec<&str> {
    let frames = thread["frames"].as_array().expect("there are frames");
    frames.iter().map(|frame| frame["symbol"].as_str().unwrap_or("?")).collect()
}

/// Script for gdb that prints a line per frame: thread and program counter. Inlined calls, and callers that gdb infers from
/// tail calls, have no frame on the stack.
const GDB: &str = "python\n\
    for thread in gdb.selected_inferior().threads():\n\
    \x20   thread.switch()\n\
    \x20   frame = gdb.newest_frame()\n\
    \x20   while frame is not None:\n\
    \x20       if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):\n\
    \x20           print('frame', thread.ptid[1], frame.pc())\n\
    \x20       frame = frame.older()\n\
    end\n";

/// gdb's program counters by thread.
fn gdb(target: &Target) -> Option<BTreeMap<u64, Vec<u64>>> {
    let script = built().with_file_name("frames.gdb");
    std::fs::write(&script, GDB).expect("the folder is there");
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-ex", "set backtrace past-main on", "-ex", "set backtrace past-entry on"]);
    gdb.args(["-p", &target.pid(), "-x"]).arg(script);
    let Ok(output) = gdb.stdin(Stdio::null()).output() else {
        skip(Requirement::Gdb, "gdb does not run");
        return None;
    };
    if text(&output.stderr).contains("not supported in this copy") {
        skip(Requirement::Gdb, "gdb is without Python");
        return None;
    }
    let mut found: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for line in text(&output.stdout).lines().filter_map(|line| line.strip_prefix("frame ")) {
        let (thread, pc) = line.split_once(' ').expect("two numbers");
        let number = |word: &str| word.parse().expect("a number");
        found.entry(number(thread)).or_default().push(number(pc));
    }
    Some(found)
}

#[test]
fn every_thread_has_the_stack_that_gdb_sees() {
    let target = waiting(None);
    let Some(process) = stack(&target) else { return };
    let Some(truth) = gdb(&target) else { return };
    let threads = process["threads"].as_array().expect("there are threads");
    assert_eq!(threads.len(), 5);
    assert_eq!(truth.len(), 5, "gdb sees all threads");
    for thread in threads {
        let frames = thread["frames"].as_array().expect("there are frames");
        // gdb shows no address for the signal frame.
        let ours =
            frames.iter().filter(|frame| frame["inlined"] == false && frame["symbol"] != "__restore_rt");
        let address = |frame: &Value| {
            let text = frame["address"].as_str().expect("it is text").to_owned();
            u64::from_str_radix(&text[2..], 16).expect("it is hexadecimal")
        };
        let ours: Vec<u64> = ours.map(address).collect();
        let tid = thread["tid"].as_u64().expect("it is a number");
        assert_eq!(ours, truth[&tid], "{}: {:?}", thread["tid"], names(thread));
        assert_eq!(thread["complete"], true);
        assert_eq!(thread["state"], "S");
    }
}

#[test]
fn stacks_on_a_stack_of_their_own_and_beyond_large_frames_are_whole() {
    let target = waiting(None);
    let Some(process) = stack(&target) else { return };
    let threads = process["threads"].as_array().expect("there are threads");
    let with = |function: &str| {
        let mut found = threads.iter().map(names).filter(|names| names.contains(&function));
        found.next().unwrap_or_else(|| panic!("no thread is in {function}")).join(" ")
    };
    assert!(
        with("inner").contains("wait_for_ever inner middle outer calls start_thread"),
        "{}",
        with("inner")
    );
    assert!(with("large").contains("wait_for_ever large deep start_thread"));
    let interrupted = with("interrupted");
    assert!(interrupted.contains("wait_for_ever handler"), "{interrupted}");
    assert!(interrupted.contains("interrupted on_own_stack start_thread"), "{interrupted}");
    // The interrupted frame was found in the signal frame, all others by the files' unwind information.
    let mut struck = 0;
    for thread in threads {
        let frames = thread["frames"].as_array().expect("there are frames");
        for (index, frame) in frames.iter().enumerate() {
            let (found, trust) = (frame["found"].as_str(), frame["trust"].as_str());
            // Inlined calls have the same value as their frame.
            let expected = if found == Some("registers") { "certain" } else { "stated" };
            assert_eq!(trust, Some(expected), "{index}: {:?}", names(thread));
            assert!(index > 0 || found == Some("registers"));
            if found == Some("signal") {
                struck += 1;
                assert!(names(thread)[index..].contains(&"interrupted"), "{:?}", names(thread));
                assert!(names(thread)[..index].contains(&"handler"), "{:?}", names(thread));
            }
        }
    }
    assert_eq!(struck, 1);
    let outer = threads.iter().flat_map(|thread| thread["frames"].as_array().into_iter().flatten());
    let outer = outer.clone().find(|frame| frame["symbol"] == "outer").expect("it is inlined into calls");
    assert_eq!(outer["inlined"], true);
    assert!(outer["file"].as_str().is_some_and(|file| file.ends_with("waiting.c")));
    let shown = text(&plumb(&["stack", &target.pid()]).stdout);
    assert!(shown.contains("waiting.c:") && shown.contains("outer (inlined)"), "{shown}");
    assert_eq!(shown.matches(" [interrupted by a signal]").count(), 1, "{shown}");
}

#[test]
fn callers_of_code_without_rules_are_found_where_calls_confirm_them() {
    let flags = ["-O1", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let mut child =
        Command::new(compiled("unruled", &flags)).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped"))
        .read_line(&mut line)
        .expect("it says something");
    let target = Target(child);
    wait_until("it waits", || state(&target) == 'S');
    let Some(process) = stack(&target) else { return };
    let thread = &process["threads"][0];
    let found = names(thread).join(" ");
    assert!(found.contains("innermost deeper deeper deeper deeper main __libc_start"), "{found}");
    let guessed = |thread: &Value| {
        let frames = thread["frames"].as_array().expect("there are frames");
        let scan = frames.iter().find(|frame| frame["found"] == "scan").expect("frames are marked");
        assert_eq!(scan["trust"], "guessed");
        assert_eq!(
            frames.last().expect("there are some")["trust"],
            "guessed",
            "no further than those before"
        );
    };
    guessed(thread);
    let output = plumb(&["stack", "--scan", "--json", "-p", &target.pid()]);
    let scanned: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let thread = &scanned["processes"][0]["threads"][0];
    let found = names(thread).join(" ");
    assert!(found.contains("innermost deeper deeper deeper deeper main __libc_start"), "{found}");
    assert_eq!(thread["complete"], true);
    guessed(thread);
    let shown = text(&plumb(&["stack", "--scan", "-p", &target.pid()]).stdout);
    assert!(shown.contains("[guessed from the stack's words]"), "{shown}");
}

#[test]
fn a_thread_that_cannot_even_be_stopped_has_its_stack() {
    let program = compiled("uninterruptible", &["-O1", "-g"]);
    let target = Target(Command::new(program).spawn().expect("it starts"));
    wait_until("it waits for its child", || state(&target) == 'D');
    let Some(process) = stack(&target) else { return };
    let thread = &process["threads"][0];
    let found = names(thread).join(" ");
    assert!(found.contains("vfork innermost deeper deeper deeper deeper main __libc_start"), "{found}");
    assert_eq!((thread["complete"].as_bool(), state(&target)), (Some(true), 'D'));
    let shown = text(&plumb(&["stack", "-p", &target.pid()]).stdout);
    assert!(shown.contains("waiting uninterruptibly") && !shown.contains("guessed"), "{shown}");
}

/// Current count of the counting thread.
fn counted(file: &Path) -> u64 {
    let bytes = std::fs::read(file).expect("the program made it");
    u64::from_ne_bytes(*bytes.first_chunk().expect("it is a page"))
}

#[test]
fn a_running_process_runs_on_and_a_stopped_one_stays_stopped() {
    let counter = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stack-counter");
    let target = waiting(Some(&counter));
    let Some(process) = stack(&target) else { return };
    let running = process["threads"].as_array().expect("there are threads").iter();
    let running = running.clone().find(|thread| names(thread).contains(&"count")).expect("one counts");
    assert_eq!(running["kernel"].as_array().map(Vec::len), Some(0), "it does not wait");
    let before = counted(&counter);
    wait_until("it counts on", || counted(&counter) > before);
    signal(&target, "-STOP");
    wait_until("all of it is stopped", || states(&target).all(|state| state == 'T'));
    let process = stack(&target).expect("it worked before");
    let threads = process["threads"].as_array().expect("there are threads");
    assert!(threads.iter().all(|thread| thread["state"] == "T" && thread["complete"] == true));
    assert_eq!(state(&target), 'T');
    let before = counted(&counter);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(counted(&counter), before, "it must not run");
    signal(&target, "-CONT");
    wait_until("it runs again", || counted(&counter) > before);
}

#[test]
fn a_process_runs_on_whenever_plumb_is_killed() {
    let counter = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stack-counter-killed");
    let target = waiting(Some(&counter));
    if stack(&target).is_none() {
        return;
    }
    for (round, signal) in ["-KILL", "-INT", "-TERM"].iter().cycle().take(60).enumerate() {
        let mut plumb = Command::new(env!("CARGO_BIN_EXE_plumb"));
        plumb.args(["stack", "-p", &target.pid()]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut plumb = plumb.spawn().expect("plumb runs");
        std::thread::sleep(Duration::from_micros(100 * round as u64));
        let _ = Command::new("kill").args([*signal, &plumb.id().to_string()]).stderr(Stdio::null()).status();
        plumb.wait().expect("it ends");
        let before = counted(&counter);
        wait_until("it counts on", || counted(&counter) > before);
        wait_until("the main thread waits as before", || state(&target) == 'S');
    }
}

#[test]
fn what_cannot_be_shown_is_said() {
    // The highest possible PID is 2^22.
    let output = plumb(&["stack", "-p", "4194999"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("there is no process 4194999"));
    let output = plumb(&["stack"]);
    assert_eq!(output.status.code(), Some(2));
    let target = waiting(None);
    if stack(&target).is_none() {
        return;
    }
    let output = plumb(&["stack", "--json", "-p", &format!("4194999,{}", target.pid())]);
    assert_eq!(output.status.code(), Some(1), "one of them is not there");
    let all: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert!(all["processes"][0]["error"].is_string());
    assert_eq!(all["processes"][1]["threads"].as_array().map(Vec::len), Some(5), "the other is shown");
}

#[test]
fn a_process_under_a_debugger_is_told_by_the_debuggers_number() {
    let target = waiting(None);
    if stack(&target).is_none() {
        return;
    }
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-p", &target.pid(), "-ex", "shell sleep 600"]).stdin(Stdio::null());
    let Ok(gdb) = gdb.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        skip(Requirement::Gdb, "gdb does not run");
        return;
    };
    let gdb = Target(gdb);
    wait_until("gdb has it", || state(&target) == 't');
    let output = plumb(&["stack", "-p", &target.pid()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains(&format!("process {}", gdb.pid())), "{}", text(&output.stderr));
}

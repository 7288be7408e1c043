//! `plumb record` as a user runs it: exit statuses, files, signals, messages.
//!
//! Needs perf_event_open; without it, a test prints so and is skipped.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use plumb_fixtures::{Requirement, needs};

fn plumb(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// A directory for a test of this name; `None` if recording is not possible.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    needs(Requirement::Perf).then_some(folder)
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    plumb(folder, arguments).output().expect("plumb runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_exit_status_is_the_commands() {
    let Some(folder) = folder("status") else { return };
    assert_eq!(run(&folder, &["record", "--", "sh", "-c", "exit 5"]).status.code(), Some(5));
    assert_eq!(run(&folder, &["record", "sh", "-c", "kill -9 $$"]).status.code(), Some(137));
    let missing = run(&folder, &["record", "--", "no-such-command-anywhere"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(text(&missing.stderr).contains("no-such-command-anywhere"), "{}", text(&missing.stderr));
}

#[test]
fn variables_before_the_command_are_its_environment() {
    let Some(folder) = folder("variables") else { return };
    let output = run(&folder, &["record", "PLUMB_X=a b", "sh", "-c", "echo \"$PLUMB_X\""]);
    assert_eq!(text(&output.stdout), "a b\n");
    let output = run(&folder, &["record", "PLUMB_X=c", "--", "sh", "-c", "echo \"$PLUMB_X\""]);
    assert_eq!(text(&output.stdout), "c\n");
}

#[test]
fn a_program_whose_name_is_no_text_has_names() {
    let Some(folder) = folder("no-text") else { return };
    if !needs(Requirement::Cc) {
        return;
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/spends.c");
    let program = folder.join(OsStr::from_bytes(b"bad-\xff\xfe"));
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread", source, "-o"]).arg(&program);
    assert!(compiler.status().expect("it runs").success());
    let output = run(&folder, &["record", "--", "sh", "-c", "exec ./bad-* 200 10"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = text(&run(&folder, &["report", "--sort", "sym"]).stdout);
    assert!(report.contains("computes"), "{report}");
}

#[test]
fn a_full_disk_is_told_of_and_the_recording_is_elsewhere() {
    let Some(folder) = folder("full") else { return };
    for quiet in [&[][..], &["-q"]] {
        let arguments = [&["record", "-o", "/dev/full"], quiet, &["--", "true"]].concat();
        let output = plumb(&folder, &arguments).env("TMPDIR", &folder).output().expect("plumb runs");
        let errors = text(&output.stderr);
        assert!(errors.contains("No space left") && errors.contains("the recording is in"), "{errors}");
        let files = std::fs::read_dir(&folder).expect("it is there").flatten();
        let names: Vec<PathBuf> = files.map(|file| file.path()).collect();
        let [file] = &names[..] else { panic!("{names:?}") };
        assert!(errors.contains(&*file.to_string_lossy()), "{errors}");
        std::fs::remove_file(file).expect("it is there");
    }
}

#[test]
fn an_older_recording_is_kept() {
    let Some(folder) = folder("older") else { return };
    run(&folder, &["record", "true"]);
    let first = std::fs::read(folder.join("profile.plumb")).expect("it was written");
    run(&folder, &["record", "true"]);
    assert_eq!(std::fs::read(folder.join("profile.plumb.old")).expect("it was kept"), first);
    let names: Vec<_> =
        std::fs::read_dir(&folder).expect("it is there").flatten().map(|e| e.file_name()).collect();
    assert_eq!(names.len(), 2, "nothing else is left behind: {names:?}");
}

#[test]
fn the_headline_goes_to_stderr_without_a_live_line() {
    let Some(folder) = folder("headline") else { return };
    let burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let output = run(&folder, &["record", "--", "sh", "-c", burn]);
    let said = text(&output.stderr);
    assert!(output.stdout.is_empty());
    for word in [" samples in ", " lost", "% of stacks complete", "plumb report"] {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
    assert!(!said.contains('\r') && !said.contains('\x1b'), "{said}");
    let quiet = run(&folder, &["record", "-q", "--", "sh", "-c", burn]);
    assert!(quiet.stderr.is_empty(), "{}", text(&quiet.stderr));
    let report = run(&folder, &["report"]);
    assert!(text(&report.stdout).contains("sh"), "{}", text(&report.stdout));
}

#[test]
fn a_folder_that_is_not_there_is_told_before_the_command_runs() {
    let Some(folder) = folder("unwritable") else { return };
    let output = run(&folder, &["record", "-o", "missing/x.plumb", "--", "touch", "ran"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("missing/x.plumb"));
    assert!(!folder.join("ran").exists());
}

#[test]
fn a_directory_is_refused_and_left_where_it_is() {
    let Some(folder) = folder("directory") else { return };
    std::fs::create_dir(folder.join("kept")).expect("the folder is there");
    std::fs::write(folder.join("kept/file"), "kept").expect("the folder is there");
    for output in ["kept", "kept/", "new/", "."] {
        let recorded = run(&folder, &["record", "-o", output, "--", "touch", "ran"]);
        let said = text(&recorded.stderr);
        assert_eq!(recorded.status.code(), Some(1), "{said}");
        assert!(said.contains("is a directory; name a file"), "{said}");
    }
    assert_eq!(std::fs::read_to_string(folder.join("kept/file")).expect("it is there"), "kept");
    let names: Vec<_> =
        std::fs::read_dir(&folder).expect("it is there").flatten().map(|e| e.file_name()).collect();
    assert_eq!(names, ["kept"], "nothing was run or moved");
}

#[test]
fn a_recording_goes_through_a_pipe() {
    let Some(folder) = folder("pipe") else { return };
    let burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let mut recorder = plumb(&folder, &["record", "-o", "-", "--", "sh", "-c", burn])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("plumb runs");
    let pipe = recorder.stdout.take().expect("it is piped");
    let report = plumb(&folder, &["report", "-"]).stdin(pipe).output().expect("plumb runs");
    assert!(recorder.wait().expect("it ends").success());
    assert!(text(&report.stdout).contains("% complete"), "{}{}", text(&report.stdout), text(&report.stderr));
    assert!(std::fs::read_dir(&folder).expect("it is there").next().is_none(), "nothing else is written");
}

#[test]
fn a_signal_to_the_recorder_ends_the_command_and_keeps_the_recording() {
    let Some(folder) = folder("signal") else { return };
    let script = "touch ready; while :; do :; done";
    let mut child = plumb(&folder, &["record", "-q", "--", "sh", "-c", script]).spawn().expect("plumb runs");
    while !folder.join("ready").exists() {
        assert!(child.try_wait().expect("it can be waited for").is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(kill.expect("kill runs").success());
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(143));
    let report = run(&folder, &["report"]);
    assert!(report.status.success(), "{}", text(&report.stderr));
}

#[test]
fn a_command_ends_with_its_recording_when_the_time_is_up() {
    let Some(folder) = folder("duration") else { return };
    // A child of a shell, which would keep the pipe of its output open; and one that waits forever.
    for script in ["sleep 100000; :", "mkfifo never; read line < never"] {
        let output = run(&folder, &["record", "--duration", "0.2", "--", "sh", "-c", script]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(run(&folder, &["report"]).status.success());
    }
    let words = ["trace", "--duration", "0.2", "--", "sleep", "100000"];
    assert!(!needs(Requirement::Bpf) || run(&folder, &words).status.success());
}

#[test]
fn a_command_that_refuses_to_end_is_named_and_left() {
    let Some(folder) = folder("refuses") else { return };
    let script = "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done";
    let mut command = plumb(&folder, &["record", "--duration", "0.5", "--", "sh", "-c", script]);
    // The left processes keep them open.
    let said = std::fs::File::create(folder.join("said")).expect("the folder can be written");
    let status = command.stdout(Stdio::null()).stderr(said).status().expect("plumb runs");
    let pid = std::fs::read_to_string(folder.join("pid")).expect("the command wrote it");
    let kill = Command::new("kill").args(["-KILL", pid.trim()]).status();
    assert!(kill.expect("kill runs").success(), "it was left alone");
    let said = std::fs::read_to_string(folder.join("said")).expect("it was written");
    assert!(status.success() && said.contains("sh has not ended"), "{said}");
}

#[test]
fn nothing_to_record_is_said() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let output = run(folder, &["record"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nothing to record"));
    // The highest possible PID is 2^22.
    let output = run(folder, &["record", "-p", "4194999"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("4194999"));
}

#[test]
fn a_program_deleted_while_it_runs_keeps_its_names() {
    let Some(folder) = folder("deleted") else { return };
    // Half a second of CPU time: the recorder opens mapped files ten times a second.
    let source = "#include <time.h>\n\
                  __attribute__((noinline)) void spin_here(void) {\n\
                  for (volatile long i = 0; i < 1000000; i++) ;\n}\n\
                  int main(void) { while (clock() < CLOCKS_PER_SEC / 2) spin_here(); }\n";
    std::fs::write(folder.join("gone.c"), source).expect("the folder is there");
    let built = Command::new("gcc").args(["-O2", "-g", "gone.c", "-o", "gone"]).current_dir(&folder).status();
    assert!(built.is_ok_and(|status| status.success()), "gcc builds it");
    // The file may be deleted only once the program runs.
    let script = "./gone & until [ \"$(cat /proc/$!/comm)\" = gone ]; do :; done; rm ./gone; wait";
    let recorded = run(&folder, &["record", "--", "sh", "-c", script]);
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let report = text(&run(&folder, &["report", "--comm", "gone", "--no-children"]).stdout);
    assert!(report.contains("spin_here"), "{report}");
}

#[test]
fn a_program_in_a_memory_file_has_its_names() {
    let Some(folder) = folder("memory-file") else { return };
    // The program continues as a copy of itself that no path leads to, as runc does.
    let source = "#define _GNU_SOURCE\n\
                  #include <fcntl.h>\n#include <sys/mman.h>\n#include <sys/sendfile.h>\n\
                  #include <time.h>\n#include <unistd.h>\n\
                  __attribute__((noinline)) void spin_here(void) {\n\
                  for (volatile long i = 0; i < 1000000; i++) ;\n}\n\
                  int main(int count, char **arguments) {\n\
                  int own = open(\"/proc/self/exe\", O_RDONLY), copy = memfd_create(\"own\", MFD_CLOEXEC);\n\
                  while (count == 1 && sendfile(copy, own, 0, 1 << 20) > 0) ;\n\
                  if (count == 1) fexecve(copy, (char *[]){\"own\", \"again\", 0}, (char *[]){0});\n\
                  while (clock() < CLOCKS_PER_SEC / 2) spin_here();\n}\n";
    std::fs::write(folder.join("copies.c"), source).expect("the folder is there");
    let built =
        Command::new("gcc").args(["-O2", "-g", "copies.c", "-o", "copies"]).current_dir(&folder).status();
    assert!(built.is_ok_and(|status| status.success()), "gcc builds it");
    for capture in ["perf", "bpf"] {
        if capture == "bpf" && !needs(Requirement::Bpf) {
            continue;
        }
        let recorded = run(&folder, &["record", "--capture", capture, "--", "./copies"]);
        assert!(recorded.status.success(), "{}", text(&recorded.stderr));
        let report = text(&run(&folder, &["report", "--dso", "memfd:own"]).stdout);
        assert!(report.contains("spin_here") && report.contains("_start"), "{capture}: {report}");
    }
}

#[test]
fn a_machine_says_how_long_it_was_idle() {
    if !needs(Requirement::WholeMachine) {
        return;
    }
    let Some(folder) = folder("machine") else { return };
    let before = machine_busy_seconds();
    let output = run(&folder, &["record", "-a", "--duration", "1"]);
    let busy = machine_busy_seconds() - before;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = run(&folder, &["report", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("it is JSON");
    let idle = report["reports"][0]["idle_percent"].as_f64().expect("it is known of a machine");
    let cpus = plumb_fixtures::host::cpus() as f64;
    // The recorder works on after the recording, which is in the machine's accounting and not in its own.
    assert!(idle >= 100.0 - busy / cpus * 100.0 - 10.0 && idle <= 100.0, "idle {idle}%, {busy} s busy");
}

/// CPU time of the machine since its start except idle time, from the first line of /proc/stat in hundredths of a second.
fn machine_busy_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("the kernel has it");
    let fields: Vec<f64> =
        stat.split_whitespace().skip(1).take(7).map(|field| field.parse().expect("a number")).collect();
    (fields[0] + fields[1] + fields[2] + fields[5] + fields[6]) / 100.0
}

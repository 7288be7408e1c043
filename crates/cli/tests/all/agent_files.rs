//! An agent that runs for months: libraries are replaced while programs use them, as by an upgrade, and are in directories readable only by their
//! user. Their stacks are complete and named even so.
//!
//! Needs root, BPF and a C compiler; without them, the test prints so and is skipped.

#![cfg(all(feature = "agent", feature = "server"))]

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::agents::{CPU, Running, free_address, serve, stored_functions};
use crate::spun::folder;
use plumb_fixtures::{Requirement, compiles, needs};
use serde_json::Value;

const LIBRARY: &str = "
__attribute__((noinline)) static void SPINS(void) { for (volatile long i = 0; i < 1000000; i++) ; }
void run_a_while(void) { SPINS(); __asm__ volatile(\"\"); }
";

const PROGRAM: &str = "
#include <dlfcn.h>
#include <unistd.h>
typedef void (*function)(void);
static function from(const char *path) { return (function)dlsym(dlopen(path, RTLD_NOW), \"run_a_while\"); }
int main(void) {
    function kept = from(\"./kept.so\"), gone = from(\"./gone.so\");
    unlink(\"gone.so\");
    for (;;) kept(), gone();
}
";

/// Builds the program and its libraries in a directory that only another user can read. False: no compiler.
fn make(folder: &Path) -> bool {
    std::fs::create_dir(folder).expect("there is room");
    std::fs::write(folder.join("library.c"), LIBRARY).expect("it can be written");
    std::fs::write(folder.join("program.c"), PROGRAM).expect("it can be written");
    let compiled = |arguments: &[&str]| {
        compiles(Command::new("cc").current_dir(folder).args(["-O1", "-g", "-Wl,--build-id"]).args(arguments))
    };
    let library = |name: &str| {
        let (names, file) = (format!("-DSPINS=spin_in_{name}"), format!("{name}.so"));
        compiled(&["-shared", "-fPIC", &names, "-o", &file, "library.c"])
    };
    let is_made = library("kept") && library("gone") && compiled(&["-o", "replaced", "program.c", "-ldl"]);
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).expect("it is ours");
    chown(folder, Some(65_534), Some(65_534)).expect("root may");
    is_made
}

/// The server's figure for a function; 0 if it has no such function.
fn of_function(all: &Value, name: &str, key: &str) -> f64 {
    let row = all["rows"].as_array().and_then(|rows| rows.iter().find(|row| row["function"] == name));
    row.and_then(|row| row[key].as_f64()).unwrap_or(0.0)
}

#[test]
fn libraries_that_no_path_leads_to_have_stacks_and_names() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-files");
    let private = folder.join("private");
    if !make(&private) {
        return;
    }
    let (address, url) = free_address();
    let _server = serve(&folder, &address);
    let program = Command::new(private.join("replaced")).current_dir(&private).spawn().expect("it starts");
    let _program = Running(program);
    let (_agent, _log) =
        Running::agent(&folder, &["agent", "--to", &url, "--spool", "spool", "--interval", "1"]);
    let functions = || stored_functions(&folder, &url, CPU, "{service_name=\"replaced\"}");
    let share = |name: &str, key: &str| {
        let all = functions();
        of_function(&all, name, key) / all["total"].as_f64().unwrap_or(f64::MAX)
    };
    let begin = Instant::now();
    let is_whole = || {
        share("main", "total") > 0.9
            && ["spin_in_kept", "spin_in_gone"].iter().all(|name| share(name, "self") > 0.3)
    };
    while !is_whole() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{:#}", functions());
        std::thread::sleep(Duration::from_millis(500));
    }
}

const SHORT: &str = "
#include <time.h>
__attribute__((noinline)) static void spin_and_go(void) {
    struct timespec now;
    do for (volatile long i = 0; i < 1000000; i++) ;
    while (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), now.tv_nsec < 300000000);
}
int main(void) { spin_and_go(); return 0; }
";

/// Runs of 0.3 s of a program whose file is deleted after each of them, as in a container, the second half in mount namespaces of their own.
fn runs_and_goes(folder: &Path) {
    for run in 0..6 {
        let own = folder.join(format!("run{run}"));
        std::fs::create_dir(&own).expect("there is room");
        let script = match run {
            0..3 => "cp ../short gone && ./gone",
            _ => "mount -t tmpfs none . && cp ../short ../run$0/gone && ../run$0/gone",
        };
        let mut command = match run {
            0..3 => Command::new("sh"),
            _ => {
                let mut command = Command::new("unshare");
                command.args(["-m", "sh"]);
                command
            }
        };
        let status = command.args(["-ec", script, &run.to_string()]).current_dir(&own).status();
        assert!(status.is_ok_and(|status| status.success()), "{script}");
        std::fs::remove_dir_all(&own).expect("it is ours");
    }
}

#[test]
fn programs_that_are_gone_with_their_files_have_names() {
    if !needs(Requirement::Root) || !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder("agent-files-gone");
    std::fs::write(folder.join("short.c"), SHORT).expect("it can be written");
    let words = ["-O1", "-Wl,--build-id", "-o", "short", "short.c"];
    if !compiles(Command::new("cc").current_dir(&folder).args(words)) {
        return;
    }
    let (address, url) = free_address();
    let _server = serve(&folder, &address);
    let words = ["agent", "--to", &url, "--spool", "spool", "--interval", "2", "--max-cpu", "100%"];
    let (_agent, mut log) = Running::agent(&folder, &words);
    log.until(" window ");
    runs_and_goes(&folder);
    let begin = Instant::now();
    let functions = || stored_functions(&folder, &url, CPU, "{service_name=\"gone\"}");
    let is_named = |all: &Value| {
        let total = all["total"].as_f64().unwrap_or(0.0);
        total > 1.7e9 && of_function(all, "spin_and_go", "total") > 0.98 * total
    };
    // A file that was replaced before its window was sent is uploaded when the server asks for it.
    while !is_named(&functions()) {
        assert!(begin.elapsed() < Duration::from_secs(120), "{:#}", functions());
        std::thread::sleep(Duration::from_millis(500));
    }
}

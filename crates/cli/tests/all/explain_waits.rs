//! `plumb explain -- COMMAND` reports the waits of a program that mostly waits, and leaves signals to the right recording.
//!
//! Needs BPF and a C compiler; without them, a test prints so and is skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::spun::succeeds;
use plumb_fixtures::{Requirement, compiles, needs};

const SOURCE: &str = "
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void wait_long(void) { usleep(400000); }
__attribute__((noinline)) void wait_short(void) { usleep(60000); }
int main(int count, char **words) {
    int rounds = count > 1 ? atoi(words[1]) : 6;
    for (int i = 0; i < rounds; i++) { wait_short(); wait_long(); }
    return 0;
}
";

fn folder(name: &str) -> Option<PathBuf> {
    if !needs(Requirement::Bpf) {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("explain-waits-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    std::fs::write(folder.join("waits.c"), SOURCE).expect("the folder for tests can be written");
    let mut compiler = Command::new("cc");
    compiler.args(["-g", "-O1", "-o"]).arg(folder.join("waits")).arg(folder.join("waits.c"));
    compiles(&mut compiler).then_some(folder)
}

/// The lines below the heading of waits.
fn waits(screen: &str) -> Vec<&str> {
    screen
        .lines()
        .skip_while(|line| !line.starts_with("Waits, "))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .collect()
}

#[test]
fn a_program_that_waits_is_told_for_what() {
    let Some(folder) = folder("told") else { return };
    let screen = succeeds(&folder, &["explain", "--", "./waits"]);
    let listed = waits(&screen).join(" ");
    assert!(listed.contains("clock_nanosleep") && listed.contains("wait_long (waits.c:4)"), "{screen}");
    assert!(!screen.contains("record --off-cpu"), "it is known already: {screen}");
    // A busy program is not recorded a second time.
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let screen = succeeds(&folder, &["explain", "--", "sh", "-c", busy]);
    assert_eq!(waits(&screen), [""; 0], "{screen}");
}

#[test]
fn a_signal_ends_both_recordings() {
    let Some(folder) = folder("signal") else { return };
    let mut target = Command::new(folder.join("waits")).arg("1000").spawn().expect("it starts");
    let mut plumb = Command::new(env!("CARGO_BIN_EXE_plumb"));
    plumb.current_dir(&folder).args(["explain", "-p", &target.id().to_string()]);
    let child = plumb.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("plumb starts");
    // Time for the second recording to start, so that it could take the signal.
    std::thread::sleep(Duration::from_millis(4000));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("plumb ends");
    let _ = target.kill();
    let _ = target.wait();
    let screen = String::from_utf8_lossy(&output.stdout);
    // The program may not have run when a sample was taken.
    let titles = ["Hotspots of waits\n", "Hotspots of a program that was never seen to run\n"];
    assert!(titles.iter().any(|title| screen.starts_with(title)), "{screen}");
    assert!(
        waits(&screen).join(" ").contains("wait_long"),
        "{screen}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_lock_that_is_held_across_a_read_is_told_from_one_that_is_not() {
    let Some(folder) = folder("lock") else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/lock_across_read.c");
    let mut compiler = Command::new("cc");
    if !compiles(compiler.args(["-g", "-O1", "-pthread", "-o"]).arg(folder.join("asks")).arg(source)) {
        return;
    }
    let screen = |words: &[&str]| succeeds(&folder, &[&["explain", "--", "./asks"], words].concat());
    let held = screen(&[]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(held.contains("holds a lock that others wait for while it reads or writes: "), "{held}");
    assert!(
        held.contains("from ask (lock_across_read.c:") && held.contains(" in pthread_mutex_lock"),
        "{held}"
    );
    let short = screen(&["short"]);
    assert!(!short.contains("holds a lock"), "{short}");
}

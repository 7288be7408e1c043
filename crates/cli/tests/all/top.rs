//! `plumb top` as a user runs it: tables as text, and keys on a terminal, provided by `script` (util-linux).
//!
//! Needs perf_event_open, gcc and script; without them, a test prints so and is skipped.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use crate::typed::Terminal;
use plumb_fixtures::{Requirement, compiles, needs};

/// Spends 70% of its CPU time in one function and 30% in another by its own clock, forever or for a number of seconds, and
/// prints the amounts.
const SPLIT: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double cpu(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}
// Durations vary: a program that alternates in step with the sampler's timer is sampled at the same point for seconds.
static unsigned seed = 1;
static long some(void) { seed = seed * 1103515245 + 12345; return 100000 + (seed >> 12); }
__attribute__((noinline)) void seventy(void) { for (volatile long i = some(); i > 0; i--); }
__attribute__((noinline)) void thirty(void) { for (volatile long i = some(); i > 0; i--); }
int main(int argc, char **argv) {
    double limit = argc > 1 ? atof(argv[1]) : 1e9, a = 0, b = 0;
    while (a + b < limit) {
        double start = cpu();
        if (a * 3 <= b * 7) { seventy(); a += cpu() - start; }
        else { thirty(); b += cpu() - start; }
    }
    fprintf(stderr, "%.2f\n", a / (a + b) * 100);
}
"#;

fn plumb() -> &'static str {
    env!("CARGO_BIN_EXE_plumb")
}

/// A directory for a test of this name with the program in it; `None` if recording is not possible.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    std::fs::write(folder.join("split.c"), SPLIT).expect("the folder is there");
    if !compiles(Command::new("gcc").args(["-O2", "split.c", "-o", "split"]).current_dir(&folder)) {
        return None;
    }
    needs(Requirement::Perf).then_some(folder)
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(plumb());
    command.arg("top").args(arguments).current_dir(folder).stdin(Stdio::null()).output().expect("plumb runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The self share of a function, in the last table or on the screen: the second of two shares in its line.
fn share(text: &str, function: &str) -> Option<f64> {
    let line = text.lines().rev().find(|line| line.split_whitespace().any(|word| word == function))?;
    line.split_whitespace().nth(1)?.strip_suffix('%')?.parse().ok()
}

/// Asserts that the two functions have nearly all of the time, and the first this share of theirs.
///
/// Interrupts arrive while either runs, also for other programs (a busy disk's took 4%): the table attributes them to the kernel,
/// not to a function.
fn assert_split(text: &str, seventy_wanted: f64) {
    let (seventy, thirty) = (share(text, "seventy"), share(text, "thirty"));
    let (seventy, thirty) = (seventy.expect("it is shown"), thirty.expect("it is shown"));
    assert!(seventy + thirty > 80.0, "{text}");
    assert!((seventy / (seventy + thirty) * 100.0 - seventy_wanted).abs() < 5.0, "{seventy_wanted}: {text}");
}

#[test]
fn tables_have_the_shares_that_the_program_measured() {
    let Some(folder) = folder("top-batch") else { return };
    let output = run(&folder, &["-b", "--window", "all", "--rows", "0", "-i", "0.5", "--", "./split", "2"]);
    let (tables, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}");
    let truth: f64 = said.lines().last().and_then(|line| line.parse().ok()).expect("the program says it");
    assert_split(&tables, truth);
    let last = tables.split("\n\n").last().expect("there is a table");
    let own: f64 = last
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            line.split_whitespace()
                .nth(1)
                .and_then(|share| share.strip_suffix('%')?.parse::<f64>().ok())
                .expect("a share")
        })
        .sum();
    assert!((own - 100.0).abs() < 0.02, "own shares add up: {own}");
    for fact in [" samples", " lost", "% of a CPU", "window ", "coverage "] {
        assert!(last.contains(fact), "{fact}: {last}");
    }
}

#[test]
fn the_first_table_has_names() {
    let Some(folder) = folder("top-names") else { return };
    // Many kernel functions are sampled in the one interval that is printed.
    let output = run(
        &folder,
        &[
            "-b",
            "-n",
            "1",
            "-i",
            "0.5",
            "--rows",
            "0",
            "--",
            "sh",
            "-c",
            "while :; do ls -l /usr/bin >/dev/null; done",
        ],
    );
    let table = text(&output.stdout);
    assert!(table.contains("samples"), "{table}{}", text(&output.stderr));
    // The kernel may hide addresses from users other than root.
    let has_names =
        std::fs::read_to_string("/proc/kallsyms").is_ok_and(|text| !text.starts_with("0000000000000000 "));
    let nameless: Vec<_> = table.lines().filter(|line| line.contains("[kernel.kallsyms]+0x")).collect();
    assert!(!has_names || nameless.is_empty(), "{nameless:#?}");
}

#[test]
fn sampling_goes_on_while_nobody_reads() {
    let Some(folder) = folder("top-blocked") else { return };
    // Thousands of lines per table fill the pipe long before the program ends, which is reported on standard error.
    let mut top = Command::new(plumb())
        .args(["top", "-b", "-i", "0.1", "--window", "all", "--rows", "0", "--view", "symbols"])
        .args([
            "--",
            "sh",
            "-c",
            "for i in 1 2 3 4 5 6 7 8; do ls -R /usr/share/ /usr/lib >/dev/null; done; ./split 2",
        ])
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("plumb runs");
    // After plumb's messages on what this user can't see.
    let stderr = BufReader::new(top.stderr.take().expect("it is piped"));
    let mut lines = stderr.lines().map(|line| line.expect("it can be read"));
    assert!(lines.any(|line| line.parse::<f64>().is_ok()), "the program says what it did as it ends");
    let output = top.wait_with_output().expect("it ends");
    let tables = text(&output.stdout);
    assert!(tables.len() > 64 << 10, "the pipe was full: {}", tables.len());
    let last = tables.split("\n\n").last().expect("there is a table");
    let facts = last.lines().next().expect("it has a head");
    assert!(facts.contains(", 0 lost"), "{facts}");
    // The last two seconds are included.
    let samples: u64 =
        facts.split_whitespace().nth(1).and_then(|count| count.parse().ok()).expect("a number");
    assert!(samples > 1900, "{facts}");
    assert!(share(last, "main").is_some(), "{last}");
}

#[test]
fn as_many_tables_come_as_were_asked_for_and_the_command_ends() {
    let Some(folder) = folder("top-count") else { return };
    for view in ["executables", "processes", "symbols", "stacks"] {
        let output = run(&folder, &["-b", "-n", "2", "-i", "0.3", "--view", view, "--", "./split"]);
        let tables = text(&output.stdout);
        assert_eq!(tables.matches(" samples, ").count(), 2, "{tables}");
        assert!(tables.contains("split"), "{view}: {tables}");
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn the_commands_end_is_tops() {
    let Some(folder) = folder("top-status") else { return };
    let output = run(&folder, &["-b", "sh", "-c", "echo hidden; echo shown >&2; exit 5"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(!text(&output.stdout).contains("hidden") && text(&output.stderr).contains("shown"));
    assert_eq!(run(&folder, &["-b", "no-such-command-anywhere"]).status.code(), Some(127));
}

#[test]
fn without_a_terminal_batch_is_named() {
    let output = run(Path::new("."), &["true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("--batch"), "{}", text(&output.stderr));
}

#[test]
fn keys_show_functions_stacks_and_programs_and_the_terminal_comes_back() {
    let Some(folder) = folder("top-keys") else { return };
    let line = format!("{} top --window all -- ./split", plumb());
    let Some(mut terminal) = Terminal::run(&folder, (24, 80), &line) else { return };
    // The program keeps its shares by its own clock; 1,000 samples suffice to measure them within 5%: more than
    // three standard errors.
    let has_seen = |screen: &str| {
        let samples = screen
            .split_whitespace()
            .zip(screen.split_whitespace().skip(1))
            .find(|(_, word)| *word == "samples");
        samples.and_then(|(number, _)| number.parse::<u64>().ok()).is_some_and(|number| number >= 1000)
    };
    let screen = terminal.until(|screen| has_seen(screen) && share(screen, "thirty").is_some());
    assert_split(&screen, 70.0);
    assert!(
        screen.contains("plumb ") && screen.contains("% of a CPU") && screen.contains(" lost"),
        "{screen}"
    );
    terminal.press("t");
    terminal.until(|screen| screen.contains("▾ main") || screen.contains("▸ main"));
    terminal.press("e");
    terminal.until(|screen| {
        screen.contains("Executable") && (screen.contains("100%") || screen.contains("100.0%"))
    });
    terminal.press("\r");
    terminal.until(|screen| screen.contains("> split"));
    terminal.press("/thirt");
    terminal.until(|screen| screen.contains("thirty") && !screen.contains("seventy"));
    terminal.press("\x1b");
    terminal.until(|screen| screen.contains("seventy"));
    terminal.press(" ");
    terminal.until(|screen| screen.contains("[paused]"));
    terminal.press("w");
    terminal.until(|screen| screen.contains("profile.plumb written"));
    terminal.press("q");
    let (before, after) = terminal.end();
    assert_eq!(before, after);
    let report = Command::new(plumb()).args(["report", "--sort", "sym"]).current_dir(&folder).output();
    let report = text(&report.expect("plumb runs").stdout);
    assert_split(&report, 70.0);
}

#[test]
fn a_small_terminal_without_colours_is_given_back_on_a_signal() {
    let Some(folder) = folder("top-term") else { return };
    let mut split = Command::new(folder.join("split")).spawn().expect("it was built");
    let line = format!("NO_COLOR=1 {} top -p {} & echo $! > pid; fg %1", plumb(), split.id());
    // In an interactive shell, the ID of a background job is known.
    let line = format!("set -m; {line}");
    let Some(mut terminal) = Terminal::run(&folder, (15, 40), &line) else {
        split.kill().and_then(|()| split.wait()).expect("it runs");
        return;
    };
    terminal.until(|screen| share(screen, "seventy").is_some() && screen.contains(" lost"));
    let pid = std::fs::read_to_string(folder.join("pid")).expect("the shell wrote it");
    let kill = Command::new("kill").args(["-TERM", pid.trim()]).status();
    assert!(kill.is_ok_and(|status| status.success()));
    let all = Arc::clone(&terminal.seen);
    let (before, after) = terminal.end();
    split.kill().and_then(|()| split.wait()).expect("it runs");
    assert_eq!(before, after);
    let all = text(&all.lock().expect("nobody panics with it").1);
    for colour in ["\x1b[31m", "\x1b[32m", "38;5;1", "38;5;2"] {
        assert!(!all.contains(colour), "{colour:?} in {all:?}");
    }
}

/// Processes whose command line has this word.
fn running(word: &str) -> usize {
    let has_word = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(word) && line.starts_with(plumb().as_bytes())
    };
    std::fs::read_dir("/proc").expect("it is there").flatten().filter(has_word).count()
}

#[test]
fn it_ends_when_its_terminal_is_taken_away() {
    let Some(folder) = folder("top-gone") else { return };
    let word = format!("gone-{}.plumb", std::process::id());
    // A command that ignores the signal: it continues, and so does its recording, for longer than the display waits for a key.
    let line = format!("{} top -o {word} -- sh -c 'trap \"\" HUP TERM; sleep 3; sleep 1'", plumb());
    let Some(mut terminal) = Terminal::run(&folder, (24, 80), &line) else { return };
    terminal.until(|screen| screen.contains("% of a CPU"));
    assert_eq!(running(&word), 1);
    drop(terminal);
    let begin = std::time::Instant::now();
    while running(&word) > 0 {
        // Without this exit, top would wait for keys forever.
        assert!(begin.elapsed().as_secs() < 300, "it still runs");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// With `--duration`, the display ends with a last table, and so does the command.
#[test]
fn top_ends_after_its_duration_with_the_command() {
    let Some(folder) = folder("top-duration") else { return };
    let ended = folder.join("ended");
    let script = format!("trap 'touch {}; exit' TERM; while :; do sleep 0.1; done", ended.display());
    let args = ["top", "--batch", "--duration", "1", "--", "sh", "-c", &script];
    let output = Command::new(plumb()).args(args).output().expect("plumb runs");
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("# "), "{}", text(&output.stdout));
    // The end of the pipe shows that the command has ended.
    assert!(ended.exists(), "it was told to end");
}

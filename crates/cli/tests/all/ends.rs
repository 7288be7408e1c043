//! Ends of a recording of a command: effects of Ctrl-C and other signals, signal settings that the command inherits, and processes left behind.
//!
//! Needs perf_event_open, and `env` of coreutils 8.31; without them, a test prints so and is skipped.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::spun::{folder, may_record, plumb, succeeds, text};
use crate::typed::Terminal;
use plumb_fixtures::{Requirement, needs, skip};

/// Counts interrupts, and exits with 7 at the second.
const SECOND: &str =
    "trap 'n=$((n+1)); if [ $n = 2 ]; then exit 7; fi' INT; n=0; : > ready; while :; do sleep 0.02; done";
/// Does not end on an interrupt.
const NEVER: &str = "trap ':' INT; : > ready; while :; do sleep 0.02; done";

/// plumb as started at a terminal, even if these tests run in the background.
fn in_foreground(folder: &Path, arguments: &[&str]) -> Option<Command> {
    let knows =
        Command::new("env").args(["--default-signal=INT,QUIT", "true"]).stderr(Stdio::null()).status();
    if !knows.is_ok_and(|status| status.success()) {
        skip(Requirement::Tools, "env knows no --default-signal");
        return None;
    }
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,QUIT,HUP", env!("CARGO_BIN_EXE_plumb")]).args(arguments);
    command.current_dir(folder).stdin(Stdio::null());
    Some(command)
}

/// plumb with these signals ignored, as `nohup` and a shell's `&` do.
fn with_ignored(folder: &Path, signals: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("trap '' {signals}; exec \"$@\""), "sh"]).args(arguments);
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// Waits until a condition holds, on however slow a machine.
fn until(child: &mut Child, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed().as_secs() < 300, "it never came");
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn said(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("said")).unwrap_or_default()
}

/// Runs plumb and interrupts it once after each of these messages. Returns its exit status.
fn interrupted(folder: &Path, arguments: &[&str], times: &[&str]) -> Option<i32> {
    let mut command = in_foreground(folder, arguments)?;
    let file = std::fs::File::create(folder.join("said")).expect("the folder is there");
    let mut child = command.stdout(Stdio::null()).stderr(file).spawn().expect("it runs");
    until(&mut child, || folder.join("ready").exists());
    for says in times {
        send(&child, "INT");
        if !says.is_empty() {
            until(&mut child, || said(folder).contains(says));
        }
    }
    child.wait().expect("it ends").code()
}

/// Commands that take a command, with their arguments. `trace` needs BPF.
const COMMANDS: [(&str, &[&str]); 5] = [
    ("record", &["record", "-q", "-o", "there.plumb"]),
    ("stat", &["stat"]),
    ("kernel", &["kernel", "-o", "there.plumb"]),
    ("top", &["top", "--batch"]),
    ("trace", &["trace", "-e", "%net"]),
];

fn can_run(folder: &Path, arguments: &[&str]) -> bool {
    if !needs(match arguments[0] {
        "trace" => Requirement::Bpf,
        "kernel" => Requirement::KernelSamples,
        _ => Requirement::Perf,
    }) {
        return false;
    }
    let output = plumb(folder, &[arguments, &["--", "true"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    let _ = std::fs::remove_file(folder.join("there.plumb"));
    true
}

#[test]
fn a_command_that_handles_ctrl_c_is_waited_for() {
    for (name, arguments) in COMMANDS {
        let folder = folder(&format!("ends-second-{name}"));
        if !can_run(&folder, arguments) {
            continue;
        }
        let arguments = [arguments, &["--", "sh", "-c", SECOND]].concat();
        let Some(code) = interrupted(&folder, &arguments, &["Ctrl-C 2 times more kills it", ""]) else {
            return;
        };
        assert_eq!(code, 7, "{name}: the command's: {}", said(&folder));
        assert!(said(&folder).contains("waiting for sh to end"), "{name}: {}", said(&folder));
        if arguments.contains(&"-o") {
            succeeds(&folder, &["report", "there.plumb"]);
        }
    }
}

#[test]
fn the_third_ctrl_c_kills() {
    for (name, arguments) in COMMANDS {
        let folder = folder(&format!("ends-third-{name}"));
        if !can_run(&folder, arguments) {
            continue;
        }
        let arguments = [arguments, &["--", "sh", "-c", NEVER]].concat();
        let says = ["Ctrl-C 2 times more kills it", "Ctrl-C once more kills it", ""];
        let Some(code) = interrupted(&folder, &arguments, &says) else { return };
        assert_eq!(code, 128 + 9, "{name}: {}", said(&folder));
        if arguments.contains(&"-o") {
            succeeds(&folder, &["report", "there.plumb"]);
        }
    }
}

/// An interrupt that is typed reaches the command from the terminal, and only from there.
#[test]
fn ctrl_c_on_a_terminal_reaches_the_command_once() {
    let folder = folder("ends-typed");
    if !may_record() || in_foreground(&folder, &[]).is_none() {
        return;
    }
    let plumb = env!("CARGO_BIN_EXE_plumb");
    std::fs::write(
        folder.join("script"),
        "trap 'echo caught >> caught' INT\n: > ready\nwhile :; do sleep 0.02; done\n",
    )
    .expect("the folder is there");
    // The shell gets it as well, and goes on.
    let line = format!(
        "trap : INT; env --default-signal=INT {plumb} record -o there.plumb -- sh script; echo status $?"
    );
    let Some(mut terminal) = Terminal::run(&folder, (24, 120), &line) else { return };
    terminal.until(|_| folder.join("ready").exists());
    let caught = || std::fs::read_to_string(folder.join("caught")).unwrap_or_default();
    terminal.press("\x03");
    terminal.until(|screen| screen.contains("2 times more kills it"));
    assert_eq!(caught(), "caught\n", "by the terminal alone");
    terminal.press("\x03");
    terminal.until(|screen| screen.contains("once more kills it"));
    terminal.press("\x03");
    terminal.until(|screen| screen.contains("status 137"));
    terminal.end();
    succeeds(&folder, &["report", "there.plumb"]);
}

/// A program sees the same signal settings as without plumb.
#[test]
fn a_command_inherits_what_plumb_was_started_with() {
    let folder = folder("ends-inherits");
    let seen = |signals: &str, arguments: &[&str]| {
        let shows = ["grep", "-E", "^Sig(Blk|Ign|Cgt):", "/proc/self/status"];
        let output = with_ignored(&folder, signals, &[arguments, &shows].concat()).output().expect("it runs");
        // Signals above 31 are used by the C library itself in programs with threads.
        let of_kernel = |line: &str| {
            let (what, set) = line.split_once(':').expect("it is one");
            (what.to_owned(), u64::from_str_radix(set.trim(), 16).expect("a set") & 0x7fff_ffff)
        };
        text(&output.stdout).lines().map(of_kernel).collect::<Vec<_>>()
    };
    let plumb = env!("CARGO_BIN_EXE_plumb");
    for signals in ["USR1", "INT QUIT", "HUP", "CHLD", "PIPE", "INT QUIT HUP TERM CHLD PIPE"] {
        let alone = seen(signals, &[]);
        assert_eq!(alone.len(), 3, "{alone:?}");
        for (name, arguments) in COMMANDS {
            if !["record", "stat"].contains(&name) || !can_run(&folder, arguments) {
                continue;
            }
            let arguments = [&[plumb], arguments, &["--"]].concat();
            assert_eq!(seen(signals, &arguments), alone, "{name} with {signals} ignored");
        }
    }
}

#[test]
fn the_exit_status_is_the_commands_where_nobody_wanted_to_know() {
    let folder = folder("ends-children");
    for (name, arguments) in COMMANDS {
        if !can_run(&folder, arguments) {
            continue;
        }
        let arguments = [&[env!("CARGO_BIN_EXE_plumb")], arguments, &["--", "sh", "-c", "exit 5"]].concat();
        let status = with_ignored(&folder, "CHLD INT QUIT", &arguments).output().expect("it runs").status;
        assert_eq!(status.code(), Some(5), "{name}");
    }
}

/// As `plumb record ... & ... kill -INT $!` in a script: the command ignores SIGINT as plumb did, and must end even so.
#[test]
fn an_interrupt_that_somebody_sends_ends_what_runs_in_the_background() {
    let folder = folder("ends-background");
    if !may_record() {
        return;
    }
    let script = ": > ready; while :; do sleep 0.02; done";
    let arguments = [env!("CARGO_BIN_EXE_plumb"), "record", "-q", "--", "sh", "-c", script];
    let mut child = with_ignored(&folder, "INT QUIT", &arguments).spawn().expect("it runs");
    until(&mut child, || folder.join("ready").exists());
    send(&child, "INT");
    assert_eq!(child.wait().expect("it ends").code(), Some(128 + 15));
    succeeds(&folder, &["report"]);
}

/// The process IDs of those left, written by themselves.
fn pids(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("pids")).expect("they wrote it");
    let mut pids: Vec<u32> = text.lines().map(|pid| pid.parse().expect("a pid")).collect();
    pids.sort_unstable();
    pids.iter().map(u32::to_string).collect()
}

fn kill(pids: &[String]) {
    let _ = Command::new("kill").arg("-9").args(pids).status();
}

#[test]
fn who_goes_on_after_the_command_is_named() {
    let folder = folder("ends-daemon");
    if !may_record() {
        return;
    }
    // The daemon's parent ends before the command does, as is usual for daemons.
    let daemon = "sh -c 'sleep 1000 > /dev/null 2>&1 & echo $! >> pids'";
    for (name, arguments) in COMMANDS {
        // Without a cgroup, the command's descendants are not followed.
        if !can_run(&folder, arguments) || name == "stat" && !needs(Requirement::Cgroup) {
            continue;
        }
        for count in [1, 2] {
            let _ = std::fs::remove_file(folder.join("pids"));
            let script = format!("{}; exit 3", vec![daemon; count].join("; "));
            let output = plumb(&folder, &[arguments, &["--", "sh", "-c", &script]].concat());
            let (left, said) = (pids(&folder), text(&output.stderr));
            kill(&left);
            assert_eq!(output.status.code(), Some(3), "{name}: {said}");
            assert!(said.contains("of sh still ran when that ended"), "{name}: {said}");
            let named =
                if count == 1 { format!("(pid {})", left[0]) } else { format!("(pids {})", left.join(", ")) };
            assert!(said.contains(&named), "{name}: {left:?}: {said}");
            assert!(said.contains(&format!("plumb record --tree {}", left[0])), "{name}: {said}");
        }
    }
    let waited = plumb(&folder, &["record", "--", "sh", "-c", "sleep 0.1 & wait"]);
    assert!(!text(&waited.stderr).contains("still ran"), "{}", text(&waited.stderr));
}

//! Stacks of processes whose memory differs from their files: text moved to anonymous memory, a main thread that has ended, return
//! addresses replaced by a probe, calls from a page of the kernel.
//!
//! Needs perf_event_open and a C compiler, some tests BPF and root; without them, a test prints so and is skipped.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::spun::{compiled, folded, folder, may_record, plumb, succeeds, text};
use crate::target::Target;
use plumb_fixtures::{Requirement, needs, needs_command, skip};

/// Capture methods that work here.
fn captures() -> impl Iterator<Item = &'static str> {
    ["perf", "bpf"].into_iter().filter(|&capture| capture != "bpf" || needs(Requirement::Bpf))
}

/// Number of samples with these functions in this order, and of all samples in any of them.
fn share(folder: &Path, file: &str, functions: &str) -> (u64, u64) {
    let innermost = functions.rsplit(';').next().expect("there is one");
    let (mut right, mut all) = (0, 0);
    for (stack, count) in folded(folder, file) {
        if !stack.contains(innermost) {
            continue;
        }
        all += count;
        if stack.contains(functions) {
            right += count;
        } else {
            println!("{stack} {count}");
        }
    }
    (right, all)
}

fn holds(folder: &Path, file: &str, functions: &str, what: &str) {
    let (right, all) = share(folder, file, functions);
    assert!(all > 20 && right * 100 >= all * 95, "{what}: {right} of {all}");
}

#[test]
fn text_that_was_moved_to_memory_is_the_files() {
    let folder = folder("copied-text");
    if !may_record() || !compiled(&folder, "tests/programs/copied_text.c", "copied") {
        return;
    }
    for way in ["moved", "written", "shared"] {
        for capture in captures() {
            succeeds(
                &folder,
                &["record", "--user-only", "--capture", capture, "-o", "r.plumb", "--", "./copied", way],
            );
            holds(&folder, "r.plumb", "main;afterwards;middle;leaf", &format!("{way}, {capture}"));
        }
    }
}

#[test]
fn text_that_had_been_moved_before_is_the_files() {
    let folder = folder("copied-text-before");
    if !may_record() || !compiled(&folder, "tests/programs/copied_text.c", "copied") {
        return;
    }
    for way in ["moved", "written", "shared"] {
        for capture in captures() {
            let command = Command::new(folder.join("copied")).args([way, "300"]).stdin(Stdio::null()).spawn();
            let target = Target(command.expect("it runs"));
            let is_moved = || {
                let maps =
                    std::fs::read_to_string(format!("/proc/{}/maps", target.pid())).unwrap_or_default();
                let code: Vec<&str> =
                    maps.lines().filter(|line| line.contains(" r-xp ") || line.contains(" r-xs ")).collect();
                code.iter().any(|line| line.contains("memfd:text") || line.split_whitespace().count() == 5)
            };
            while !is_moved() {
                std::thread::yield_now();
            }
            let attach = ["--capture", capture, "--duration", "2", "-p", &target.pid(), "-o", "r.plumb"];
            succeeds(&folder, &[&["record", "--user-only"], &attach[..]].concat());
            holds(&folder, "r.plumb", "main;afterwards;middle;leaf", &format!("{way}, {capture}"));
            if needs(Requirement::Ptrace) {
                let stack = succeeds(&folder, &["stack", "-p", &target.pid()]);
                assert!(stack.contains("afterwards") && stack.contains("main"), "{way}: {stack}");
            }
        }
    }
}

#[test]
fn compiled_code_beside_a_program_is_not_the_programs() {
    let folder = folder("beside-text");
    if !may_record() || !compiled(&folder, "tests/programs/copied_text.c", "copied") {
        return;
    }
    for capture in captures() {
        let command =
            ["record", "--user-only", "--capture", capture, "-o", "r.plumb", "--", "./copied", "beside"];
        succeeds(&folder, &command);
        let (mut made, mut all) = (0, 0);
        for (stack, count) in folded(&folder, "r.plumb") {
            let Some((_, inner)) = stack.split_once(";calls_made") else { continue };
            all += count;
            made += if inner.starts_with(";[anon]+0x") && !inner.contains("copied]") { count } else { 0 };
        }
        assert!(all > 50 && made * 100 >= all * 90, "{capture}: {made} of {all}");
    }
}

#[test]
fn a_process_without_its_main_thread_is_as_any_other() {
    let folder = folder("leader-exits");
    if !may_record() || !compiled(&folder, "tests/programs/leader_exits.c", "leaves") {
        return;
    }
    let target = Target(Command::new(folder.join("leaves")).spawn().expect("it runs"));
    while plumb_process::state(target.0.id(), target.0.id()) != Some('Z') {
        std::thread::yield_now();
    }
    for capture in captures() {
        for whom in ["-p", "--tree"] {
            let attach = ["--capture", capture, "--duration", "2", whom, &target.pid(), "-o", "r.plumb"];
            succeeds(&folder, &[&["record", "--user-only"], &attach[..]].concat());
            holds(&folder, "r.plumb", "run;middle;leaf", &format!("{whom}, {capture}"));
        }
    }
    if needs(Requirement::Ptrace) {
        let stack = succeeds(&folder, &["stack", "-p", &target.pid()]);
        assert!(stack.contains("middle") && stack.contains("run"), "{stack}");
    }
}

/// Probes on functions, as other tracers set them.
struct Probes(String);

impl Probes {
    /// Sets probes on the entries (`p`) or returns (`r`) of these functions of a program. `None`, after skipping, if that is not possible.
    fn on(program: &Path, kind: char, functions: &[&str]) -> Option<Self> {
        const EVENTS: &str = "/sys/kernel/tracing/uprobe_events";
        if !needs(Requirement::Root) || !needs_command(Requirement::Binutils, "nm") {
            return None;
        }
        let names = Command::new("nm").arg(program).output().expect("nm runs");
        let names = text(&names.stdout);
        let group = format!("plumbtest{}", std::process::id());
        let mut lines = String::new();
        for function in functions {
            let line =
                names.lines().find(|line| line.ends_with(&format!(" T {function}"))).expect("a function");
            let address = line.split(' ').next().expect("an address");
            lines += &format!("{kind}:{group}/{function} {}:0x{address}\n", program.display());
        }
        if let Err(error) = std::fs::write(EVENTS, &lines) {
            skip(Requirement::Root, format!("{EVENTS}: {error}"));
            return None;
        }
        let probes = Self(group);
        std::fs::write(probes.enable(), "1").expect("probes can be enabled");
        Some(probes)
    }

    fn enable(&self) -> String {
        format!("/sys/kernel/tracing/events/{}/enable", self.0)
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        let _ = std::fs::write(self.enable(), "0");
        let _ = std::fs::write("/sys/kernel/tracing/uprobe_events", format!("-:{}/\n", self.0));
    }
}

/// The kernel knows the return address that a probe has replaced.
#[test]
fn returns_that_are_probed_lead_to_their_callers() {
    let folder = folder("probed-returns");
    if !may_record() || !needs(Requirement::Bpf) || !compiled(&folder, "tests/programs/probed.c", "probed") {
        return;
    }
    for functions in [&["probed"][..], &["leaf", "probed", "outer"], &["twice"]] {
        let Some(_probes) = Probes::on(&folder.join("probed"), 'r', functions) else { return };
        succeeds(&folder, &["record", "--user-only", "--capture", "bpf", "-o", "r.plumb", "--", "./probed"]);
        holds(&folder, "r.plumb", "main;twice;outer;probed;leaf", &format!("{functions:?}"));
    }
}

/// The kernel executes a copy of the probed instruction elsewhere, and knows whose it is.
#[test]
fn time_in_a_probe_is_its_functions() {
    let folder = folder("stepped");
    if !may_record() || !needs(Requirement::Bpf) || !compiled(&folder, "tests/programs/stepped.c", "stepped")
    {
        return;
    }
    let Some(_probes) = Probes::on(&folder.join("stepped"), 'p', &["stepped"]) else { return };
    succeeds(&folder, &["record", "--capture", "bpf", "-o", "r.plumb", "--", "./stepped"]);
    let (mut right, mut all) = (0, 0);
    for (stack, count) in folded(&folder, "r.plumb") {
        all += count;
        right += if stack.contains(";main;calls;stepped") { count } else { 0 };
    }
    // The first samples are copies of stacks: the recorder does not have the kernel's table yet.
    assert!(all > 500 && right * 100 >= all * 85, "{right} of {all}");
}

#[test]
fn who_calls_the_vsyscall_page_is_its_caller() {
    let folder = folder("vsyscall");
    if !may_record() || !compiled(&folder, "tests/programs/vsyscall.c", "old") {
        return;
    }
    let tried = Command::new(folder.join("old")).arg("once").status().expect("it runs");
    if !tried.success() {
        skip(Requirement::Kernel, "this kernel has no vsyscall page");
        return;
    }
    for capture in captures() {
        let output = plumb(&folder, &["record", "--capture", capture, "-o", "r.plumb", "--", "./old"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let (mut whole, mut all) = (0, 0);
        for (stack, count) in folded(&folder, "r.plumb") {
            all += count;
            whole += if stack.contains(";main;asks") { count } else { 0 };
        }
        assert!(all > 50 && whole * 100 >= all * 90, "{capture}: {whole} of {all}");
    }
}

/// If /proc belongs to another pid namespace, an ID means another process there.
#[test]
fn numbers_of_processes_that_mean_others_in_proc_are_refused() {
    if !needs(Requirement::Root) || !needs_command(Requirement::Tools, "unshare") {
        return;
    }
    let plumb = env!("CARGO_BIN_EXE_plumb");
    for command in [&["record", "--duration", "0.1", "-o", "/dev/null", "-p", "1"][..], &["stack", "-p", "1"]]
    {
        let inside = [&["--pid", "--fork", "--", plumb], command].concat();
        let output = Command::new("unshare").args(inside).output().expect("unshare runs");
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains("another pid namespace"), "{command:?}: {said}");
    }
}

/// The file with their functions is in a mount namespace that is gone when the recording ends.
#[test]
fn containers_that_end_soon_have_their_functions() {
    let needed = [Requirement::Root, Requirement::Perf, Requirement::Cc];
    if !needed.into_iter().all(needs) || !needs_command(Requirement::Tools, "unshare") {
        return;
    }
    let folder = folder("short-containers");
    assert!(compiled(&folder, "tests/programs/copied_text.c", "copied"));
    std::fs::create_dir(folder.join("inside")).expect("a folder in the folder");
    let inside = "mount -t tmpfs none inside && cd inside && objcopy --only-keep-debug ../copied copied.debug \
                  && objcopy -S --add-gnu-debuglink=copied.debug ../copied program && exec ./program written 0.2";
    let containers = format!("for i in 1 2 3 4 5; do unshare --mount sh -c '{inside}' || exit 1; done");
    for capture in captures() {
        let options = ["record", "--user-only", "--capture", capture, "-o", "r.plumb", "--"];
        succeeds(&folder, &[&options, &["sh", "-c", &containers][..]].concat());
        holds(&folder, "r.plumb", "main;afterwards;middle;leaf", capture);
        let all: u64 = folded(&folder, "r.plumb").into_iter().map(|(_, count)| count).sum();
        let (named, _) = share(&folder, "r.plumb", "main;afterwards;middle;leaf");
        assert!(named * 100 > all * 85, "{capture}: {named} of {all}");
    }
}

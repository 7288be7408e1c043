//! Stacks of Go programs: goroutines, the runtime's own stacks, and calls between Go and C.
//!
//! Needs Go and perf_event_open, and for the second test root; without them, a test prints so and is skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plumb_fixtures::{Requirement, needs, probe::go};

/// Outermost frames of goroutines and of the runtime's stacks.
const ROOTS: [&str; 5] =
    ["runtime.goexit", "runtime.mcall", "runtime.morestack", "runtime.mstart", "runtime.rt0_go"];

/// Run time of the program in milliseconds: longer if a busy machine left too few samples.
const LASTS: [&str; 3] = ["2500", "8000", "25000"];

/// A program with known call chains (from the unwinder's tests); `None` without Go.
fn program() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../unwind/tests/programs/goroutines.go");
    let program = folder.join("goroutines");
    // Stripped, like shipped programs.
    build(&folder, |command| {
        command.args(["build", "-ldflags=-w", "-o"]).arg(&program).arg(&source).env("CGO_ENABLED", "0");
    })
    .then_some(program)
}

/// A program that calls C and is called back, linked by the C linker; `None` without Go or a C compiler.
fn crossing(name: &str, flags: &str) -> Option<PathBuf> {
    if !needs(Requirement::Cc) {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let program = folder.join(name);
    build(&folder, |command| {
        command.args(["build", flags, "-o"]).arg(&program).arg(".").env("CGO_ENABLED", "1");
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/cgo"));
    })
    .then_some(program)
}

/// Builds with Go. Returns false without Go.
fn build(folder: &Path, configure: impl Fn(&mut Command)) -> bool {
    if !needs(Requirement::Go) {
        return false;
    }
    let mut command = Command::new(go().expect("it was found"));
    command.env("GOCACHE", folder.join("cache")).env("GOPATH", folder.join("path")).env("HOME", folder);
    // The sources may belong to another user, which git rejects.
    command.env("GOFLAGS", "-buildvcs=false");
    configure(&mut command);
    let status = command.env("GOTOOLCHAIN", "local").status();
    assert!(status.is_ok_and(|status| status.success()), "it builds");
    true
}

/// The stacks of the program's samples, innermost first, without kernel frames, from the first run with enough samples, otherwise the
/// last. `None` if it can't be recorded this way.
fn record(
    program: &Path,
    capture: &str,
    is_enough: impl Fn(&[Vec<String>]) -> bool,
) -> Option<Vec<Vec<String>>> {
    let mut stacks = Vec::new();
    for lasts in LASTS {
        stacks = record_for(program, capture, lasts)?;
        if is_enough(&stacks) {
            break;
        }
        println!("{} samples in {lasts} ms are too few, or of too little", stacks.len());
    }
    Some(stacks)
}

fn record_for(program: &Path, capture: &str, lasts: &str) -> Option<Vec<Vec<String>>> {
    if !needs(if capture == "bpf" { Requirement::Bpf } else { Requirement::Perf }) {
        return None;
    }
    let file = program.with_extension(capture);
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command
        .args(["record", "--user-only", "--capture", capture, "-o"])
        .arg(&file)
        .arg("--")
        .arg(program)
        .arg(lasts);
    let output = command.stdin(Stdio::null()).output().expect("plumb runs");
    let said = String::from_utf8_lossy(&output.stderr);
    // Copies have the runtime's stack, and not the goroutine's.
    assert!(output.status.success() && !said.contains("copied, not walked in the kernel"), "{said}");
    let script =
        Command::new(env!("CARGO_BIN_EXE_plumb")).args(["script", "-F", "comm,sym"]).arg(&file).output();
    let script = script.expect("plumb runs").stdout;
    // Only the linker's symbols include the calling convention of a function.
    let name = |line: &str| line.trim().trim_end_matches(" (inlined)").trim_end_matches(".abi0").to_owned();
    let stack = |text: &str| text.lines().skip(1).map(name).collect();
    Some(
        String::from_utf8_lossy(&script)
            .split("\n\n")
            .map(stack)
            .filter(|stack: &Vec<String>| !stack.is_empty())
            .collect(),
    )
}

fn has(stack: &[String], name: &str) -> bool {
    stack.iter().any(|frame| frame == name)
}

#[test]
fn goroutines_have_their_callers() {
    let is_enough =
        |stacks: &[Vec<String>]| stacks.iter().filter(|stack| has(stack, "main.spin")).count() > 100;
    let Some(stacks) = program().and_then(|program| record(&program, "perf", is_enough)) else { return };
    let chain = ["main.spin", "main.third", "main.second", "main.first", "main.main.func1", "runtime.goexit"];
    let spinning: Vec<_> = stacks.iter().filter(|stack| has(stack, "main.spin")).collect();
    let whole = |stack: &&&Vec<String>| stack.iter().skip_while(|name| *name != "main.spin").eq(chain);
    let count = spinning.iter().filter(whole).count();
    println!("{count} of {} whole, of {} samples", spinning.len(), stacks.len());
    assert!(
        spinning.len() > 100 && count * 100 >= spinning.len() * 99,
        "{:?}",
        spinning.iter().find(|s| !whole(s))
    );
}

#[test]
fn stacks_of_the_runtime_lead_back_to_goroutines() {
    let switched = |stack: &&Vec<String>| has(stack, "runtime.systemstack") && has(stack, "runtime.goexit");
    // Counts of stacks that were switched away from, and of those that were left to grow.
    let counted = |stacks: &[Vec<String>]| {
        let grown = stacks.iter().filter(|stack| has(stack, "runtime.morestack")).count();
        (stacks.iter().filter(switched).count(), grown)
    };
    let is_enough = |stacks: &[Vec<String>]| counted(stacks).0 > 10 && counted(stacks).1 > 10;
    let Some(stacks) = program().and_then(|program| record(&program, "bpf", is_enough)) else { return };
    let is_rooted = |stack: &Vec<String>| stack.last().is_some_and(|name| ROOTS.contains(&&**name));
    let rooted = stacks.iter().filter(|stack| is_rooted(stack)).count();
    let (back, grown) = counted(&stacks);
    println!("{rooted} of {}, {back} from another stack, {grown} for want of room", stacks.len());
    assert!(rooted * 100 >= stacks.len() * 97, "{:?}", stacks.iter().find(|stack| !is_rooted(stack)));
    assert!(back > 10 && grown > 10);
}

/// From the outermost frame on, without the runtime's frames between Go and C, whose names vary by version.
fn crossings(stack: &[String]) -> Vec<&str> {
    let known = ["main.", "c_", "runtime.goexit", "runtime.asmcgocall", "runtime.cgocallback"];
    let is_known = |name: &&str| known.iter().any(|known| name.starts_with(known));
    let is_made = |name: &&str| name.starts_with("main._Cfunc") || name.starts_with("runtime.cgocallbackg");
    let is_landing = |name: &&str| *name == "runtime.asmcgocall_landingpad";
    let names = stack.iter().rev().map(String::as_str).filter(is_known);
    names.filter(|name| !is_made(name) && !is_landing(name)).collect()
}

/// Compares the stacks of a program that calls C, and is called back, with its source.
fn check_crossings(program: &Path) {
    let count = |stacks: &[Vec<String>], leaf: &str, inside: &str| {
        stacks.iter().filter(|stack| stack[0] == leaf && has(stack, inside)).count()
    };
    let is_enough = |stacks: &[Vec<String>]| {
        count(stacks, "c_leaf", "c_work") > 100 && count(stacks, "main.spin", "main.goBack") > 100
    };
    let Some(stacks) = record(program, "bpf", is_enough) else { return };
    let (start, c) = (["runtime.goexit", "main.main.func1"], "runtime.asmcgocall");
    let chains: [&[&str]; 3] = [
        &["main.stay", "main.spin"],
        &["main.cross", c, "c_work", "c_leaf"],
        &["main.crossTwice", c, "c_back", "runtime.cgocallback", "main.goBack", "main.spin"],
    ];
    for chain in chains {
        let (Some(first), Some(leaf)) = (chain.first(), chain.last()) else { continue };
        let whole: Vec<&str> = start.iter().chain(chain).copied().collect();
        let of_it = stacks.iter().filter(|stack| {
            stack.first().is_some_and(|name| name == leaf)
                && chain.iter().skip(1).all(|name| has(stack, name))
        });
        // The shortest chain's functions are in the longest one too.
        let of_it: Vec<_> =
            of_it.filter(|stack| has(stack, "main.goBack") == chain.contains(&"main.goBack")).collect();
        let right = of_it.iter().filter(|stack| crossings(stack) == whole).count();
        println!("{right} of {} samples of {first} whole", of_it.len());
        let wrong = of_it.iter().find(|stack| crossings(stack) != whole);
        // Until the kernel has the table, copies have only one of the stacks.
        assert!(of_it.len() > 100 && right * 100 >= of_it.len() * 90, "{wrong:#?}");
    }
}

#[test]
fn calls_between_go_and_c_are_followed_in_both_directions() {
    let Some(program) = crossing("crossing", "-ldflags=-linkmode=external") else { return };
    check_crossings(&program);
}

#[test]
fn calls_between_go_and_c_are_followed_where_addresses_are_not_fixed() {
    let Some(program) = crossing("crossing-pie", "-buildmode=pie") else { return };
    check_crossings(&program);
}

/// plumb's output for a recording.
fn printed(command: &str, file: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_plumb")).arg(command).arg(file).output();
    String::from_utf8_lossy(&output.expect("plumb runs").stdout).into_owned()
}

/// Programs without DWARF get lines and inlined functions from Go's own table, so that users are not told to build with -g.
#[test]
fn stripped_programs_have_inlined_functions_and_lines() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    for flags in ["-s -w", "-w"] {
        let program = folder.join(format!("inlined{}", flags.replace(' ', "")));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/go_inlined/main.go");
        let is_built = build(&folder, |command| {
            command.args(["build", "-ldflags", flags, "-o"]).arg(&program).arg(&source);
            command.env("CGO_ENABLED", "0");
        });
        let count =
            |stacks: &[Vec<String>], name: &str| stacks.iter().filter(|stack| has(stack, name)).count();
        let is_enough = |stacks: &[Vec<String>]| count(stacks, "main.run") > 400;
        let Some(stacks) = is_built.then(|| record(&program, "perf", is_enough)).flatten() else { return };
        let [run, parse, render] = ["main.run", "main.parse", "main.render"].map(|name| count(&stacks, name));
        println!("{flags}: {parse} and {render} of {run}");
        // Three quarters of the calls are 71% of the time by Go's own profiler: of 400 samples five standard errors are 11%.
        let (low, high) = (run * 60 / 100, run * 85 / 100);
        assert!(run > 400 && (low..high).contains(&parse) && parse + render > run * 97 / 100);
        let file = program.with_extension("perf");
        let (doctor, explain) = (printed("doctor", &file), printed("explain", &file));
        assert!(doctor.contains("names are there") && !doctor.contains("no debug information"), "{doctor}");
        assert!(explain.contains("main.go:") && !explain.contains("with -g"), "{explain}");
    }
}

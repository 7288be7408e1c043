//! BPF programs of other tools keep the kernel from taking samples by a program: they are taken otherwise, or the cause is said.
//!
//! Needs BPF, bpftrace and a C compiler; elsewhere a test says so and does nothing.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plumb_fixtures::{Requirement, compiles, needs, skip};
use serde_json::Value;

/// Makes a system call again and again, at which another tool's program works.
const CALLS: &str = "#include <sys/syscall.h>\n#include <time.h>\n#include <unistd.h>\n\
    int main(void) {\n    struct timespec used;\n    do {\n        for (int i = 0; i < 20; i++)\n            syscall(SYS_getppid);\n\
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);\n    } while (used.tv_sec < 2);\n    return 0;\n}\n";
const PROGRAM: &str = "BEGIN { printf(\"attached\\n\"); } tracepoint:syscalls:sys_enter_getppid \
    { $i = (uint64)0; $s = (uint64)1; while ($i < 400) { $s = $s * 31 + $i; $i++; } @sum = $s; }";

/// A program of bpftrace, until the test ends.
struct Tool(Child);

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn attached() -> Option<Tool> {
    let mut command = Command::new("bpftrace");
    command.args(["-e", PROGRAM]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let output = BufReader::new(child.stdout.take()?);
    let tool = Tool(child);
    output.lines().map_while(Result::ok).any(|line| line.contains("attached")).then_some(tool)
}

#[test]
fn samples_inside_programs_of_other_tools_are_taken_or_their_loss_is_explained() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("other-programs");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    std::fs::write(folder.join("calls.c"), CALLS).expect("the folder can be written");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-o", "calls", "calls.c"]).current_dir(&folder);
    if !needs(Requirement::Bpf) || !compiles(&mut compiler) {
        return;
    }
    let Some(_tool) = attached() else {
        skip(Requirement::Tools, "no bpftrace, or it can't attach its programs");
        return;
    };
    let plumb = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command.env_remove("LD_LIBRARY_PATH").args(arguments).current_dir(&folder).stdin(Stdio::null());
        let output = command.output().expect("plumb runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let [_, said] = plumb(&["record", "-o", "a.plumb", "--", "./calls"]);
    assert!(said.contains("stacks are copied from"), "{said}");
    // The live table has the same sentence where its window lacks samples.
    let [tables, _] = plumb(&["top", "--batch", "--window", "all", "--", "./calls"]);
    let last = tables.rsplit("\n\n").next().unwrap_or_default();
    let shown =
        last.split_once("coverage ").and_then(|(_, rest)| rest.split_once('%')?.0.parse::<f64>().ok());
    let shown = shown.expect("a clock has a coverage");
    let is_rounded = (94.9..=95.1).contains(&shown) || (104.9..=105.1).contains(&shown);
    assert!(is_rounded || last.contains("\n# coverage is ") != (95.0..=105.0).contains(&shown), "{tables}");
    let [report, _] = plumb(&["report", "--json", "--no-children", "a.plumb"]);
    let report: Value = serde_json::from_str(&report).expect("it is JSON");
    let coverage = report["reports"][0]["coverage_percent"].as_f64().expect("it is known");
    assert!(coverage > 90.0 || said.contains("coverage is ") && said.contains("BPF programs"), "{said}");
    assert!(coverage > 60.0, "{said}");
    assert!(report.to_string().contains("bpf_prog_"), "{report}");
}

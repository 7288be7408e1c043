//! Stacks with a root other than `main`: those of coroutines, of a thread created by the program itself, of programs with another C
//! library. The source of each program determines the outermost frame.
//!
//! Needs perf_event_open and a C compiler, for programs of musl `musl-gcc`; without them, a test prints so and is skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::spun::{folded, folder, may_record, plumb, text};
use plumb_fixtures::{Requirement, compiles, needs, needs_command};

/// The program, built into the directory; `None`: no compiler.
fn build(folder: &Path, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/starts.c");
    let program = folder.join("starts");
    let requirement = if compiler == "musl-gcc" { Requirement::Musl } else { Requirement::Cc };
    if !needs_command(requirement, compiler) {
        return None;
    }
    let status = Command::new(compiler).args(flags).arg("-o").arg(&program).arg(source).status();
    assert!(status.is_ok_and(|status| status.success()), "{compiler} {flags:?}");
    Some(program)
}

/// Records the program and checks its stacks: `work` called by `callers`, innermost first, and no marker
/// for missing outer frames.
fn check(folder: &Path, program: &Path, way: &str, callers: &[&str]) {
    check_with(folder, program, way, callers, (&["perf", "bpf"], 99));
}

/// As [`check`], with these capture methods and this least percentage of correct stacks.
fn check_with(folder: &Path, program: &Path, way: &str, callers: &[&str], (captures, least): (&[&str], u64)) {
    for &capture in captures {
        if capture == "bpf" && !needs(Requirement::Bpf) {
            continue;
        }
        let file = format!("{way}-{capture}.plumb");
        let program = program.to_str().expect("its path is text");
        let output = plumb(folder, &["record", "--capture", capture, "-o", &file, "--", program, way]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let (mut whole, mut all) = (0, 0);
        for (stack, count) in folded(folder, &file) {
            let Some((outside, _)) = stack.split_once(";work") else { continue };
            let outside: Vec<&str> = outside.split(';').skip(1).collect();
            let is_cut = outside.iter().any(|frame| frame.starts_with('[') && frame.ends_with(']'));
            all += count;
            if !is_cut && callers.iter().all(|caller| outside.contains(caller)) {
                whole += count;
            } else {
                println!("{stack} {count}");
            }
        }
        println!("{way} {capture}: {whole} of {all}");
        assert!(all > 50 && whole * 100 >= all * least, "{whole} of {all}");
    }
}

#[test]
fn a_coroutine_of_ucontext_begins_in_its_start_routine() {
    let folder = folder("roots-context");
    let Some(program) = build(&folder, "gcc", &["-O1"]).filter(|_| may_record()) else { return };
    check(&folder, &program, "context", &["in_context"]);
}

/// The interrupted code is on another stack than the handler: no copy has both, and the kernel has to know where the other one ends.
#[test]
fn a_coroutine_is_behind_a_handler_on_a_stack_of_its_own() {
    let folder = folder("roots-handler");
    let Some(program) = build(&folder, "gcc", &["-O1"]).filter(|_| may_record()) else { return };
    let callers = ["on_signal", "<signal handler called>", "raises_in_context"];
    // Until the kernel has the table, stacks are copied.
    check_with(&folder, &program, "handler", &callers, (&["bpf"], 50));
}

#[test]
fn what_a_signal_interrupted_is_behind_the_frame_that_says_so() {
    let folder = folder("roots-signal");
    let Some(program) = build(&folder, "gcc", &["-O1"]).filter(|_| may_record()) else { return };
    check(&folder, &program, "signal", &["on_signal", "<signal handler called>", "main"]);
}

#[test]
fn a_coroutine_that_returns_to_nowhere_begins_there() {
    let folder = folder("roots-hand");
    let Some(program) = build(&folder, "gcc", &["-O1"]).filter(|_| may_record()) else { return };
    check(&folder, &program, "hand", &["by_hand"]);
}

#[test]
fn a_thread_begins_in_clone() {
    let folder = folder("roots-thread");
    let Some(program) = build(&folder, "gcc", &["-O1"]).filter(|_| may_record()) else { return };
    check(&folder, &program, "thread", &["in_thread"]);
}

/// Hand-written, without unwind rules; the caller of main is the process' entry point.
const START: &str = ".globl _start\n_start: xor %ebp, %ebp\nand $-16, %rsp\nsub $48, %rsp\ncall main\nmov %eax, %edi\n\
                     call leave\n.section .note.GNU-stack\n";
const MAIN: &str = "volatile unsigned long sink;
__attribute__((noinline)) static void work(void) { for (unsigned long i = 0; i < 700000000; i++) sink += i * i; }
void leave(int code) { __asm__ volatile(\"syscall\" : : \"a\"(231), \"D\"(code)); for (;;); }
int main(void) { work(); return sink == 1; }
";

#[test]
fn a_process_begins_where_its_header_says() {
    let folder = folder("roots-entry");
    std::fs::write(folder.join("start.S"), START).expect("a file in the folder");
    std::fs::write(folder.join("main.c"), MAIN).expect("a file in the folder");
    let program = folder.join("entry");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-nostdlib", "-static", "-fcf-protection=none", "-o"]).arg(&program);
    if !compiles(gcc.arg(folder.join("start.S")).arg(folder.join("main.c"))) {
        return;
    }
    if may_record() {
        check(&folder, &program, "entry", &["_start", "main"]);
    }
}

const MUSL: [&str; 3] = ["-O1", "-DWITHOUT_CONTEXT", "-static"];

#[test]
fn programs_of_musl_begin_where_theirs_do() {
    for (name, flags) in [("roots-musl-static", &MUSL[..]), ("roots-musl", &MUSL[..2])] {
        let folder = folder(name);
        let Some(program) = build(&folder, "musl-gcc", flags).filter(|_| may_record()) else { return };
        check(&folder, &program, "main", &["main"]);
        check(&folder, &program, "thread", &["in_thread"]);
    }
}

/// Puts code with a frame pointer into shared memory, as in PHP, or into a memfd, as in .NET, and runs it.
const SHARED: &str = "#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
int main(int count, char **words) {
    int kind = count > 1 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, file = count > 1 ? memfd_create(words[1], 0) : -1;
    if (file >= 0 && ftruncate(file, 4096)) return 1;
    void *made = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, kind, file, 0);
    if (made == MAP_FAILED) return 1;
    memcpy(made, code, sizeof code);
    for (int i = 0; i < 150; i++) ((void (*)(int))made)(10000000);
}
";

#[test]
fn code_in_shared_memory_is_walked_in_the_kernel() {
    let folder = folder("roots-shared");
    std::fs::write(folder.join("shared.c"), SHARED).expect("a file in the folder");
    let program = folder.join("shared");
    if !needs(Requirement::Bpf)
        || !compiles(Command::new("gcc").args(["-O1", "-o"]).arg(&program).arg(folder.join("shared.c")))
    {
        return;
    }
    for words in [&["./shared"][..], &["./shared", "made"]] {
        let options = ["record", "--capture", "bpf", "-o", "x.plumb", "--"];
        let output = plumb(&folder, &[&options[..], words].concat());
        let said = text(&output.stderr);
        assert!(output.status.success() && said.contains("100.0% of stacks complete"), "{said}");
        let walked = said.lines().find_map(|line| line.split_once("% of samples walked in the kernel"));
        let share = walked.and_then(|(before, _)| before.rsplit(' ').next()?.parse::<f64>().ok());
        assert!(share.is_some_and(|share| share > 90.0), "{said}");
    }
}

#[test]
fn functions_without_rules_are_all_there_whoever_walks_the_stack() {
    let folder = folder("roots-unruled");
    let flags = [
        "-O1",
        "-fomit-frame-pointer",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
        "-Wl,-z,now",
    ];
    let Some(program) = build(&folder, "gcc", &flags).filter(|_| may_record()) else { return };
    check(&folder, &program, "main", &["main", "__libc_start_call_main"]);
}

/// Computes in the interpreter or in JIT code: in functions called by C, in coroutines, with a remainder, for which parts
/// of the interpreter call each other.
const LUA: &str = "
local function work(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
local other = coroutine.wrap(function() while true do work(100000) coroutine.yield() end end)
local until_then = os.clock() + 1
while os.clock() < until_then do
  other()
  local all = {} for i = 1, 300 do all[i] = (i * 7919) % 1000 end
  table.sort(all, function(a, b) work(20) return a < b end)
end
";

#[test]
fn code_that_an_interpreter_in_assembly_calls_or_jumps_to_has_its_callers() {
    if !needs_command(Requirement::Tools, "luajit") || !may_record() {
        return;
    }
    let folder = folder("roots-luajit");
    std::fs::write(folder.join("work.lua"), LUA).expect("a file in the folder");
    for (capture, switch) in [("perf", "-joff"), ("perf", "-jon"), ("bpf", "-joff"), ("bpf", "-jon")] {
        if capture == "bpf" && !needs(Requirement::Bpf) {
            continue;
        }
        let words = ["record", "--capture", capture, "-o", "lua.plumb", "--", "luajit", switch, "work.lua"];
        let output = plumb(&folder, &words);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let (mut whole, mut all) = (0, 0);
        for (stack, count) in folded(&folder, "lua.plumb") {
            all += count;
            // LuaJIT's program calls a library function to run code.
            let frames: Vec<&str> = stack.split(';').collect();
            if ["_start", "main", "lua_pcall"].iter().all(|function| frames.contains(function)) {
                whole += count;
            } else {
                println!("{stack} {count}");
            }
        }
        println!("{switch} {capture}: {whole} of {all}");
        assert!(all > 500 && whole * 100 >= all * 98, "{switch} {capture}: {whole} of {all}");
    }
}

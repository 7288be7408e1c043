//! Callers of code without unwind information: found by rules derived from its instructions, or if that fails, by scanning the stack,
//! confirmed by call instructions, and marked. The source determines the expected callers.
//!
//! Needs perf_event_open and gcc; without them, a test prints so and is skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::spun::{folded, folder, may_record, plumb, text};
use plumb_fixtures::{Requirement, compiles, needs};

/// Head of an assembly function without unwind information.
const HEAD: &str = ".globl kernel_by_hand
.type kernel_by_hand, @function
.section .note.GNU-stack
.text
kernel_by_hand:
";

/// Works in a frame full of addresses of code that is not running; `rbp` is one of its working registers. The size of the frame
/// is known only at run time if `ALIGNED` is defined. The word below the top is one after a call of a function that jumps somewhere, and has
/// rules that lead to code.
const ASSEMBLY: &str = "\
    push %rbp
    push %rbx
    mov %rsp, %r10
#ifdef ALIGNED
    and $-64, %rsp
#endif
    sub $1024, %rsp
    lea decoy(%rip), %rax
    mov %rax, 0(%rsp)
    lea after_call(%rip), %rax
    mov %rax, 8(%rsp)
    lea after_decoy(%rip), %rax
    mov %rax, 16(%rsp)
    mov %rax, 64(%rsp)
    mov %rax, 512(%rsp)
    mov %rdi, %rbp
1:  imul %rbx, %rbx
    add $1, %rbx
    dec %rbp
    jnz 1b
#ifdef ALIGNED
    mov %r10, %rsp
#else
    add $1024, %rsp
#endif
    pop %rbx
    pop %rbp
    ret
decoy:
    call decoy
after_decoy:
    ret
    .cfi_startproc
    call jumps_on
after_call:
    ret
    .cfi_endproc
jumps_on:
    .cfi_startproc
    jmp *%rax
    .cfi_endproc
";

/// Calls it by its name and through a pointer, from frames of the size that the test wants; as often, but in random order: a timer that keeps step with
/// the program would see one more than the other.
const CALLERS: &str = "#include <string.h>
void kernel_by_hand(unsigned long);
void (*volatile pointer)(unsigned long) = kernel_by_hand;
volatile char sink;
__attribute__((noinline)) static void directly(unsigned long n)
{ volatile char room[ROOM]; room[ROOM - 1] = 1; kernel_by_hand(n); sink = room[ROOM - 1]; }
__attribute__((noinline)) static void through_pointer(unsigned long n)
{ volatile char room[ROOM]; room[ROOM - 1] = 1; pointer(n); sink = room[ROOM - 1]; }
__attribute__((noinline)) static void outer(int way, unsigned long n)
{ if (way) directly(n); else through_pointer(n); sink++; }
int main(void)
{
    unsigned order = 1;
    for (int i = 0; i < 1800; i++) {
        if (!(i & 1)) order = order * 1664525 + 1013904223;
        outer((i ^ order >> 16) & 1, 1000000);
    }
    return 0;
}
";

/// Leaves space in its frame for the remains of earlier calls.
const ROOMY: &str = "\
    mov %rsp, %r10
    and $-64, %rsp
    sub $0x208, %rsp
1:  dec %rdi
    jnz 1b
    mov %r10, %rsp
    ret
";

/// A function without a frame.
const PLAIN: &str = "\
    dec %rdi
    jnz kernel_by_hand
    ret
";

/// Before each call, a function whose frames lead to `main` as well runs and returns, its innermost frame through a pointer. `jumping` ends with
/// a jump, so that the calling function is not the one that was called.
const AFTER_OTHERS: &str = "#include <time.h>
void kernel_by_hand(unsigned long);
void (*volatile pointer)(unsigned long) = kernel_by_hand;
volatile long sink;
__attribute__((noinline)) static void earlier(void)
{ struct timespec now; for (int i = 0; i < 3; i++) { clock_gettime(CLOCK_MONOTONIC, &now); sink += now.tv_nsec; } }
__attribute__((noinline)) static void jumped_to(unsigned long n) { pointer(n); sink++; }
__attribute__((noinline)) static void jumping(unsigned long n) { sink = n; jumped_to(n); }
__attribute__((noinline)) static void directly(unsigned long n) { kernel_by_hand(n); sink++; }
__attribute__((noinline)) static void through_pointer(unsigned long n) { pointer(n); sink++; }
int main(void)
{
    unsigned order = 1;
    for (int i = 0; i < 1500; i++) {
        earlier();
        if (i % 3 == 0) order = order * 1664525 + 1013904223;
        unsigned way = (i * (1 + (order >> 16 & 1)) + (order >> 17)) % 3;
        if (way == 0) jumping(1000000);
        else if (way == 1) directly(1000000);
        else through_pointer(1000000);
    }
    return 0;
}
";

/// Sources of a program, and options for building it.
type Program = (&'static str, &'static str, &'static [&'static str]);

fn build(folder: &Path, (assembly, callers, options): Program) -> Option<PathBuf> {
    std::fs::write(folder.join("kernel.S"), [HEAD, assembly].concat()).expect("a file in the folder");
    std::fs::write(folder.join("callers.c"), callers).expect("a file in the folder");
    let program = folder.join("program");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-fno-inline", "-fno-ipa-icf", "-fno-ipa-cp", "-fno-ipa-sra"])
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(folder.join("kernel.S"))
        .arg(folder.join("callers.c"));
    compiles(&mut gcc).then_some(program)
}

/// Records a program whose stacks below its assembly are one of these, innermost first, equally often. `by_scan`: they are found by scanning.
fn check(capture: &str, program: Program, stacks: &[&[&str]], by_scan: bool) {
    if capture == "bpf" && !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder(&format!("assembly-{capture}-{}-{by_scan}", stacks.len()));
    let Some(program) = build(&folder, program).filter(|_| may_record()) else { return };
    let program = program.to_str().expect("its path is text");
    let output =
        plumb(&folder, &["record", "--user-only", "--capture", capture, "-o", "calls.plumb", "--", program]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert_eq!(said.contains("with a caller by stack scan"), by_scan, "{said}");
    let (mut all, mut copied) = (0, 0);
    let mut found = vec![0; stacks.len()];
    for (stack, count) in folded(&folder, "calls.plumb") {
        if !stack.ends_with(";kernel_by_hand") {
            continue;
        }
        all += count;
        // Until the kernel has the tables, which takes longer on a busy machine, copies end in a frame that is larger than the touched part
        // of the stack; once plumb has touched the rest, in a frame that is larger than they are.
        let ends = [";[stack memory not readable];", ";[stack deeper than its copy];"];
        if capture == "bpf" && ends.iter().any(|end| stack.contains(end)) {
            copied += count;
            continue;
        }
        let frames: Vec<&str> = stack.split(';').rev().skip(1).collect();
        match stacks.iter().zip(&mut found).find(|(stack, _)| frames.starts_with(stack)) {
            Some((_, found)) => *found += count,
            None => println!("{stack} {count}"),
        }
    }
    println!("{capture}: {found:?} of {all}");
    all -= copied;
    assert!(all > 100 && found.iter().sum::<u64>() * 100 >= all * 99, "{found:?} of {all}");
    assert!(found.iter().all(|count| count * (stacks.len() as u64 + 1) > all));
    assert!(all > copied, "{copied} copies beside {all}");
}

const FRAMES: &[&[&str]] = &[&["directly", "outer", "main"], &["through_pointer", "outer", "main"]];
const FRAMES_AFTER_OTHERS: &[&[&str]] =
    &[&["jumped_to", "main"], &["directly", "main"], &["through_pointer", "main"]];

#[test]
fn scans_find_callers_in_copies_of_stacks() {
    check("perf", (ASSEMBLY, CALLERS, &["-DROOM=64", "-DALIGNED"]), FRAMES, true);
}

#[test]
fn scans_find_callers_of_what_the_kernel_does_not_walk() {
    check("bpf", (ASSEMBLY, CALLERS, &["-DROOM=64", "-DALIGNED"]), FRAMES, true);
}

#[test]
fn code_tells_callers_in_copies_of_stacks() {
    check("perf", (ASSEMBLY, CALLERS, &["-DROOM=64"]), FRAMES, false);
}

#[test]
fn code_tells_callers_in_the_kernel() {
    check("bpf", (ASSEMBLY, CALLERS, &["-DROOM=30000"]), FRAMES, false);
}

#[test]
fn what_has_returned_is_no_caller_in_copies() {
    check("perf", (ROOMY, AFTER_OTHERS, &[]), FRAMES_AFTER_OTHERS, true);
}

#[test]
fn what_has_returned_is_no_caller_in_the_kernel() {
    check("bpf", (ROOMY, AFTER_OTHERS, &[]), FRAMES_AFTER_OTHERS, true);
}

/// The whole program is without tables, as the compiler options say.
#[test]
fn code_tells_callers_of_programs_without_tables() {
    const WITHOUT: &[&str] = &["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    for capture in ["perf", "bpf"] {
        check(capture, (PLAIN, AFTER_OTHERS, WITHOUT), FRAMES_AFTER_OTHERS, false);
    }
}

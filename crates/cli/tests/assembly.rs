//! Callers of hand-written assembly without unwind information: found by scanning the stack, confirmed by the calls, and marked. Who calls
//! whom is what the source says.
//!
//! Needs perf_event_open and gcc: where they are missing a test says so and does nothing.

mod spun;

use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_fixtures::{Requirement, compiles, needs};
use spun::{folder, may_record, plumb, succeeds, text};

/// Works in a frame of its own, which is full of addresses of code that is not running; `rbp` is one of its working registers.
const ASSEMBLY: &str = ".globl kernel_by_hand
.type kernel_by_hand, @function
kernel_by_hand:
    push %rbp
    push %rbx
    sub $1024, %rsp
    lea decoy(%rip), %rax
    mov %rax, 0(%rsp)
    lea after_decoy(%rip), %rax
    mov %rax, 64(%rsp)
    mov %rax, 512(%rsp)
    mov %rdi, %rbp
1:  imul %rbx, %rbx
    add $1, %rbx
    dec %rbp
    jnz 1b
    add $1024, %rsp
    pop %rbx
    pop %rbp
    ret
decoy:
    call decoy
after_decoy:
    ret
.section .note.GNU-stack
";

/// Calls it by its name and through a pointer, from frames of as many bytes as the test wants.
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
int main(void) { for (int i = 0; i < 600; i++) outer(i & 1, 1000000); return 0; }
";

fn build(folder: &Path, room: u32) -> Option<PathBuf> {
    std::fs::write(folder.join("kernel.S"), ASSEMBLY).expect("a file in the folder");
    std::fs::write(folder.join("callers.c"), CALLERS).expect("a file in the folder");
    let program = folder.join("program");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", &format!("-DROOM={room}"), "-o"])
        .arg(&program)
        .arg(folder.join("kernel.S"))
        .arg(folder.join("callers.c"));
    compiles(&mut gcc).then_some(program)
}

fn check(capture: &str, room: u32) {
    if capture == "bpf" && !needs(Requirement::Bpf) {
        return;
    }
    let folder = folder(&format!("assembly-{capture}"));
    let Some(program) = build(&folder, room).filter(|_| may_record()) else { return };
    let program = program.to_str().expect("its path is text");
    let output = plumb(&folder, &["record", "--user-only", "--capture", capture, "--", program]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(said.contains("with a caller by stack scan"), "{said}");
    let (mut all, mut by_way) = (0, [0, 0]);
    for line in succeeds(&folder, &["fold"]).lines() {
        let (stack, count) = line.rsplit_once(' ').expect("a line of folded stacks");
        let count: u64 = count.parse().expect("a count");
        if !stack.ends_with(";kernel_by_hand") {
            continue;
        }
        all += count;
        let frames: Vec<&str> = stack.split(';').rev().collect();
        match frames.get(1..4) {
            Some(&["directly", "outer", "main"]) => by_way[0] += count,
            Some(&["through_pointer", "outer", "main"]) => by_way[1] += count,
            _ => println!("{line}"),
        }
    }
    println!("{capture}: {by_way:?} of {all}");
    // Until the kernel has the tables, copies of the stack end where a frame is larger than what was ever touched.
    let least = if capture == "bpf" { 90 } else { 99 };
    assert!(all > 100 && by_way.iter().sum::<u64>() * 100 >= all * least, "{by_way:?} of {all}");
    assert!(by_way.iter().all(|count| count * 3 > all));
}

#[test]
fn callers_are_found_in_copies_of_stacks() {
    check("perf", 64);
}

#[test]
fn callers_are_found_by_walks_in_the_kernel() {
    check("bpf", 30000);
}

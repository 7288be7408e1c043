//! The single-step oracle: at every instruction of real programs, the unwinder must find exactly the active calls.
//!
//! A program runs under ptrace, one instruction at a time. A shadow stack, maintained by watching calls and the stack
//! pointer, is the truth. At every instruction the whole chain of callers, up to the program's entry, is compared
//! with what the unwinder finds from registers and memory. If they differ, the test must prove for that instruction
//! that the file's unwind information contradicts the code (`oracle/blame.rs` defines the proof), and it names the
//! function. As a control, some correct stacks are examined too: there must be no such proof for them.
//!
//! `PLUMB_ORACLE_FULL=1` steps all programs from the first instruction to the last. Without it, interpreters are stepped
//! from the start of their program, programs that are linked dynamically from `main`, as the dynamic linker does the same
//! in all of them, and no installed program for more than [`CAP`] or [`CAP_FROM_FIRST`] instructions: in a virtual machine
//! each takes 50 µs, as the hypervisor sees the trap first.
//!
//! An architecture has a module in `oracle/` with its instructions, its registers, and its rules for the shadow stack. Programs for aarch64 are built
//! on another machine (`cross_build`), and stepped under QEMU.

/// Prints even if the test passes: the shares are results, and the test runner captures the output of `println!` in
/// passing tests.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

mod elf;
mod gimli_rows;

mod reference;
mod oracle {
    #[cfg_attr(target_arch = "x86_64", path = "x86_64/mod.rs")]
    #[cfg_attr(target_arch = "aarch64", path = "aarch64/mod.rs")]
    pub mod arch;
    pub mod blame;
    pub mod maps;
    pub mod programs;
    #[allow(unsafe_code, reason = "ptrace and process_vm_readv")]
    pub mod ptrace;
    pub mod run;
    pub mod sample;
    pub mod shadow;
}

use std::process::{Command, Stdio};

use oracle::arch::{BEGIN_OF_OWN, CAP, CAP_FROM_FIRST, CAP_OF_LANDING, CAP_OF_OWN};
use oracle::blame::Fault;
use oracle::programs;
use oracle::run::{Report, run};
use plumb_fixtures::{Requirement, skip};

/// Steps a program and checks the outcome. Returns `None` if that is not possible here.
fn check(name: &str, command: &mut Command, cap: u64) -> Option<Report> {
    check_from(name, command, None, cap)
}

/// Steps a program from the function called `from`, because everything before it would take too long.
fn check_from(name: &str, command: &mut Command, from: Option<&str>, cap: u64) -> Option<Report> {
    let full = std::env::var_os("PLUMB_ORACLE_FULL").is_some();
    let (from, cap) = if full { (None, u64::MAX) } else { (from, cap) };
    command.stdin(Stdio::null()).stdout(Stdio::null()).env("LC_ALL", "C.UTF-8").env_remove("LD_LIBRARY_PATH");
    let began = std::time::Instant::now();
    let report = match run(command, from, cap) {
        Ok(report) => report,
        Err(error) => {
            skip(Requirement::Ptrace, format_args!("{name}: can't be traced here: {error}"));
            return None;
        }
    };
    let share = 100.0 * report.exact as f64 / report.instructions as f64;
    say!(
        "{name}: {} of {} instructions exact ({share:.6}%), {} with wrong frames, {:.1} frames each, {} signals, {}, {} controls, {:.1} s",
        report.exact,
        report.instructions,
        report.made_up.count,
        report.frames as f64 / report.instructions as f64,
        report.signals,
        report.end,
        report.controls,
        began.elapsed().as_secs_f64()
    );
    for ((fault, place), misses) in &report.misses {
        let what = match fault {
            Some(Fault::WrongRules) => "proven, all rules for it are wrong:",
            Some(Fault::NoRules) => "proven, there are no rules for it:",
            None => "MISSED:",
        };
        let (count, places) = (misses.count, misses.places.len());
        say!("  {what} {count} instructions by {places} of {place}: {}", reason(place));
        say!("    {}", misses.example);
    }
    let (made_up, example) = (report.made_up.count, &report.made_up.example);
    // The rules of longjmp lead to the caller of setjmp before the registers are all there.
    let may_be = !name.contains("exceptions") && cfg!(target_arch = "x86_64");
    assert!(may_be || made_up == 0, "{name}: {made_up} stacks have frames that are not callers': {example}");
    let missed = report.misses.keys().filter(|(fault, _)| fault.is_none()).count();
    assert_eq!(missed, 0, "{name}: the unwinder missed where it is not proven that the files are wrong");
    let (wrong, example) = (report.copied.count, &report.copied.example);
    assert_eq!(wrong, 0, "{name}: right in the process' memory, wrong in a copy of its stack: {example}");
    // Only GCC's rules for realigned stacks are corrected, and those of glibc's lazy binding on aarch64.
    let is_corrected = name.contains("AVX2") || cfg!(target_arch = "aarch64");
    assert!(report.mended.is_empty() || is_corrected, "proven wrong, yet found: {:#?}", report.mended);
    // On a slow emulated processor the vDSO reads the clock again and again, as the kernel changes it between two of its steps.
    let may_wait = name.contains("vdso") && cfg!(target_arch = "aarch64");
    let is_examined = report.controls > 0 || report.instructions < 5000;
    assert!(is_examined || may_wait, "{name}: stacks that were found are examined");
    assert!(report.instructions > 1000, "{name}: only {} instructions", report.instructions);
    // The rest is code that rewrites its own frames: longjmp, and landing an exception.
    let least = if cfg!(target_arch = "aarch64") { 99.9 } else { 98.0 };
    assert!(share > least, "{name}: {share}%");
    Some(report)
}

/// Returns why a function's information cannot be right, if that is known.
fn reason(place: &str) -> &'static str {
    let known = [
        (
            "longjmp",
            "it loads the registers of setjmp's caller one by one; its rows describe either side of that",
        ),
        ("_Unwind_", "it has put the handler's registers where it had saved its caller's, and goes there"),
        ("clone3", "its information begins after the system call, where the child has no caller"),
    ];
    known.iter().find(|(name, _)| place.contains(name)).map_or("of unknown reason", |(_, why)| why)
}

#[test]
fn ls() {
    check("ls", Command::new("/bin/ls").arg("-l").arg("/"), CAP_FROM_FIRST);
}

#[test]
fn bash() {
    let script =
        "f() { if [ $1 -gt 0 ]; then f $(($1 - 1)); fi; }; f 5; for i in a b; do echo $i; done; x=$(echo y)";
    check_from("bash -c", Command::new("/bin/bash").arg("-c").arg(script), Some("parse_and_execute"), CAP);
}

#[test]
fn python() {
    let script = "print(sum(len(str(i)) for i in range(100)), sorted({'b': 1, 'a': 2}))";
    let mut command = Command::new("/usr/bin/python3");
    check_from("python3 -c", command.arg("-S").arg("-c").arg(script), Some("Py_RunMain"), CAP);
}

/// Writes the input file for a program.
fn input(name: &str) -> String {
    let path = std::env::temp_dir().join(format!("plumb-oracle-{}-{name}", std::process::id()));
    std::fs::write(&path, include_str!("../src/walk.rs")).expect("the temporary folder is writable");
    path.display().to_string()
}

/// Steps an installed program from a function on, for a limited number of instructions unless all are requested. A
/// missing program is reported and skipped.
fn check_installed(name: &str, words: &[&str], from: Option<&str>) {
    let is_there = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(words[0]).is_file()));
    if !is_there {
        return skip(Requirement::Tools, format_args!("{name}: {} is not installed", words[0]));
    }
    let cap = if from.is_some() { CAP } else { CAP_FROM_FIRST };
    check_from(name, Command::new(words[0]).args(&words[1..]), from, cap);
}

#[test]
fn perl() {
    let script = "my %h; $h{$_ % 7} .= chr(65 + $_ % 26) for 1 .. 300; print sort { $a cmp $b } map { s/B+/x/r } values %h";
    check_installed("perl -e", &["perl", "-e", script], Some("perl_run"));
}

#[test]
fn openssl() {
    check_installed(
        "openssl dgst",
        &["openssl", "dgst", "-sha256", &input("dgst")],
        Some("EVP_DigestUpdate"),
    );
}

#[test]
fn sqlite() {
    let script = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 200)
                  select i % 7, sum(i), group_concat(i) from n group by 1 order by 2";
    check_installed("sqlite3", &["sqlite3", ":memory:", script], Some("sqlite3_prepare_v2"));
}

#[test]
fn gzip() {
    check_installed("gzip -c", &["gzip", "-c", &input("gzip")], None);
}

#[test]
fn tar() {
    check_installed("tar -c", &["tar", "-c", "-P", "-f", "-", &input("tar")], None);
}

#[test]
fn exceptions() {
    let Some(program) = programs::build("exceptions.cpp", &["-static-libstdc++", "-static-libgcc"]) else {
        return;
    };
    let report = check_from("C++ exceptions", &mut Command::new(&program.path), BEGIN_OF_OWN, CAP_OF_LANDING);
    assert!(
        report.is_none_or(|report| report.end == "exit status 0" || report.instructions == CAP_OF_LANDING)
    );
}

/// The unwinder of the shared library, with code that has frame pointers and code that has none.
#[test]
fn exceptions_by_the_shared_unwinder() {
    let cap = if cfg!(target_arch = "aarch64") { CAP_OF_LANDING } else { CAP };
    for flags in [&[][..], &["-fno-omit-frame-pointer"]] {
        let Some(program) = programs::build("exceptions.cpp", flags) else { return };
        let mut command = Command::new(&program.path);
        check_from(&format!("C++ exceptions {flags:?}"), &mut command, Some("main"), cap);
    }
}

#[test]
fn signals() {
    let Some(program) = programs::build("signals.c", &["-static"]) else { return };
    let report = check("signals", &mut Command::new(&program.path), CAP_OF_OWN);
    assert!(report.is_none_or(|report| report.signals >= 4), "handlers ran");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn realigned_stacks() {
    let Some(program) = programs::build("realigned.c", &["-mavx2", "-static"]) else { return };
    check("alloca + AVX2", &mut Command::new(&program.path), CAP_OF_OWN);
}

/// Frames of a size that is not known before they are made.
#[test]
#[cfg(target_arch = "aarch64")]
fn frames_of_any_size() {
    let Some(program) = programs::build("realigned.c", &["-O3"]) else { return };
    check_from("alloca", &mut Command::new(&program.path), Some("main"), CAP_OF_OWN);
}

/// Functions without frames that are called where the link register is in use.
#[test]
#[cfg(target_arch = "aarch64")]
fn outlined_code() {
    let Some(program) = programs::build("outlined.c", &[programs::CLANG, "-Oz", "-moutline"]) else { return };
    check_from("outlined by Clang", &mut Command::new(&program.path), Some("main"), CAP_OF_OWN);
}

#[test]
#[cfg(target_arch = "aarch64")]
fn exceptions_of_clang() {
    let Some(program) = programs::build("exceptions.cpp", &[programs::CLANG, "-O3"]) else { return };
    check_from("C++ exceptions by Clang", &mut Command::new(&program.path), Some("main"), CAP);
}

#[test]
#[cfg(target_arch = "aarch64")]
fn signals_of_clang() {
    let Some(program) = programs::build("signals.c", &[programs::CLANG, "-static", "-O3"]) else { return };
    let report = check("signals by Clang", &mut Command::new(&program.path), CAP_OF_OWN);
    assert!(report.is_none_or(|report| report.signals >= 4), "handlers ran");
}

/// Frames with vectors whose length the program does not know.
#[test]
#[cfg(target_arch = "aarch64")]
fn scalable_vectors() {
    let Some(program) = programs::build("vectors.c", &[programs::CLANG, "-static", "-march=armv8.2-a+sve"])
    else {
        return;
    };
    let report = check_from("SVE by Clang", &mut Command::new(&program.path), Some("main"), CAP_OF_OWN);
    assert!(report.is_none_or(|report| report.end == "exit status 0"), "all of it is stepped");
}

/// The CFA is in `rbx` or `r12` to `r15`, also below a signal handler and below callees that save these registers.
#[test]
#[cfg(target_arch = "x86_64")]
fn cfa_in_other_registers() {
    let Some(program) = programs::build("registers.c", &["-static"]) else { return };
    let report = check("CFA in rbx, r12 to r15", &mut Command::new(&program.path), CAP_OF_OWN);
    assert!(report.is_none_or(|report| report.exact == report.instructions && report.signals >= 5));
}

/// The CFA is in `r13`: nested functions compiled by GCC that realign the stack.
#[test]
#[cfg(target_arch = "x86_64")]
fn cfa_in_a_register_of_gcc() {
    let Some(program) = programs::build("registers.c", &["-mavx2", "-static", "-DNESTED"]) else { return };
    check("CFA in r13 by GCC, AVX2", &mut Command::new(&program.path), CAP_OF_OWN);
}

#[test]
fn plt_lazy() {
    let Some(program) = programs::build("plt.c", &["-Wl,-z,lazy"]) else { return };
    check_from("PLT, lazy", &mut Command::new(&program.path), Some("main"), CAP_OF_OWN);
}

#[test]
fn plt_now() {
    let Some(program) = programs::build("plt.c", &["-Wl,-z,now"]) else { return };
    check_from("PLT, -z now", &mut Command::new(&program.path), Some("main"), CAP_OF_OWN);
}

#[test]
fn jumps() {
    let Some(program) = programs::build("jumps.c", &[]) else { return };
    check_from("longjmp, vfork, vdso", &mut Command::new(&program.path), Some("main"), CAP_OF_OWN);
}

#[test]
fn threads() {
    let Some(program) = programs::build("threads.c", &["-static"]) else { return };
    let report = check("a thread", &mut Command::new(&program.path), CAP_OF_OWN);
    assert!(report.is_none_or(|report| report.threads == 1), "the thread was followed");
}

#[test]
fn libraries_come_and_go() {
    let Some(program) = programs::build("dlopen.c", &[]) else { return };
    let report = check_from("dlopen, dlclose", &mut Command::new(&program.path), Some("main"), CAP_OF_OWN);
    assert!(
        report.is_none_or(|report| report.end == "exit status 0" || report.instructions == CAP_OF_OWN),
        "the libraries are at the same addresses"
    );
}

/// JIT code without unwind information: only its frame pointers, and the instructions before one is set up.
#[test]
#[cfg(target_arch = "x86_64")]
fn jit_code() {
    let Some(program) = programs::build("jit.c", &["-static"]) else { return };
    let report = check("JIT code with frame pointers", &mut Command::new(&program.path), CAP_OF_OWN);
    assert!(report.is_none_or(|report| report.exact == report.instructions), "at every instruction");
}

/// A program without rules and frame pointers. Its instructions up to the return show the caller.
#[test]
#[cfg(target_arch = "aarch64")]
fn code_without_rules() {
    let flags = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let Some(program) = programs::build("unruled.c", &flags) else { return };
    check_from("code without rules", &mut Command::new(&program.path), Some("__libc_start_main"), CAP_OF_OWN);
}

/// A program without rules and frame pointers: scanning finds callers, and very few false ones.
#[test]
#[cfg(target_arch = "x86_64")]
fn scanned_stacks() {
    let flags = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let Some(program) = programs::build("unruled.c", &flags) else { return };
    let mut command = Command::new(&program.path);
    let report = match oracle::run::run_scanning(command.stdin(Stdio::null()).stdout(Stdio::null())) {
        Ok(report) => report,
        Err(error) => {
            return skip(Requirement::Ptrace, format_args!("scanned stacks: can't be traced here: {error}"));
        }
    };
    let Report { instructions, exact, scanned, whole, misled, misled_example, .. } = report;
    say!(
        "scanned stacks: {exact} of {instructions} instructions exact without; {scanned} scanned, {whole} of them \
         whole, {misled} misled"
    );
    // A call that has returned may look like an active one; how often depends on the compiler and on what the C library leaves on the stack: 2.1% on one
    // machine.
    assert!(scanned > 1000 && whole * 2 > scanned && misled * 40 < scanned, "{misled_example}");
}

/// Builds the programs for a machine without compilers.
#[test]
#[ignore = "it is for other machines: PLUMB_ORACLE_PROGRAMS is where the programs go"]
fn cross_build() {
    say!("{} programs built", programs::cross_build());
}

/// The program's own rules are only in `.debug_frame`; `.eh_frame` describes the C library's start files.
#[test]
fn debug_frame_alone() {
    let flags = ["-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let Some(program) = programs::build("jumps.c", &flags) else { return };
    check_from(
        "longjmp, vfork, vdso by .debug_frame",
        &mut Command::new(&program.path),
        Some("main"),
        CAP_OF_OWN,
    );
}

/// Programs too large to be stepped, stopped a few hundred times and compared with gimli.
#[test]
fn samples() {
    let javascript =
        "let s = 0; for (let i = 0; i < 3e7; i++) s += [i, i + 1].map(x => x * 2)[1]; console.log(s)";
    let python = "[sorted({str(j): [i] * 9 for j in range(20)}) for i in range(100000)]";
    let mut commands = vec![("node", vec!["-e", javascript]), ("/usr/bin/python3", vec!["-c", python])];
    // The compilers get preprocessed input, so that cc1plus needs no driver to find the headers.
    let preprocessed = programs::build("exceptions.cpp", &["-E"]);
    let path = preprocessed.as_ref().map(|program| program.path.display().to_string());
    let compiler = Command::new("g++").arg("-print-prog-name=cc1plus").output();
    let compiler =
        compiler.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    if let Some(path) = &path {
        commands.push((&compiler, vec!["-quiet", "-fpreprocessed", "-O2", "-o", "/dev/null", path]));
        commands.push((
            "clang-19",
            vec!["-x", "c++-cpp-output", "-w", "-O2", "-S", "-fintegrated-cc1", "-o", "/dev/null", path],
        ));
    }
    for (name, arguments) in commands {
        let mut command = Command::new(name);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if cfg!(target_arch = "aarch64") {
            // gimli follows glibc's rules for lazy binding, which are wrong there.
            command.env("LD_BIND_NOW", "1");
        }
        let report = match oracle::sample::sample(&mut command, 300) {
            Ok(report) => report,
            Err(error) => {
                skip(
                    Requirement::Ptrace,
                    format_args!("samples of {name}: can't be run and traced here: {error}"),
                );
                continue;
            }
        };
        say!(
            "samples of {name}: {} of {} as gimli has it, {} further, {} rooted, {:.1} frames each",
            report.equal,
            report.samples,
            report.further,
            report.rooted,
            report.frames as f64 / report.samples as f64
        );
        for different in &report.different {
            say!("  {different}");
        }
        assert!(report.different.is_empty(), "{name} differs");
        assert!(report.samples > 30, "{name} ran too short a time");
        assert!(report.rooted * 100 >= report.samples * 98, "{name}: stacks are cut");
    }
}

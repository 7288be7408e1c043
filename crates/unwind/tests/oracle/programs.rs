//! Builds the programs to be stepped, from tests/programs.
//!
//! A machine that has no compiler takes them from the directory [`BUILT`], which another machine fills by [`cross_build`].

use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_fixtures::{Requirement, skip};

/// Environment variable with the directory of programs that are built already.
pub const BUILT: &str = "PLUMB_ORACLE_PROGRAMS";

/// A program to be stepped.
pub struct Program {
    /// The temporary directory that it is in, removed on drop.
    temporary: Option<PathBuf>,
    pub path: PathBuf,
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(directory) = &self.temporary {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

/// Compilers of an architecture.
struct Compilers {
    prefix: &'static str,
    flags: &'static [&'static str],
}

/// Without frame pointers, unless a program asks for them.
const NATIVE: Compilers =
    Compilers { prefix: "", flags: &["-O2", "-fomit-frame-pointer", "-w", "-Wl,-rpath,$ORIGIN"] };

/// Return addresses are signed.
const AARCH64: Compilers = Compilers {
    prefix: "aarch64-linux-gnu-",
    flags: &["-O2", "-fomit-frame-pointer", "-mbranch-protection=standard", "-w", "-Wl,-rpath,$ORIGIN"],
};

/// Flag for Clang, which compiles for any architecture.
pub const CLANG: &str = "--target=aarch64-linux-gnu";

/// The programs that are stepped on aarch64.
const OF_AARCH64: &[(&str, &[&str])] = &[
    ("exceptions.cpp", &["-static-libstdc++", "-static-libgcc"]),
    ("exceptions.cpp", &[]),
    ("exceptions.cpp", &["-fno-omit-frame-pointer"]),
    ("signals.c", &["-static"]),
    ("plt.c", &["-Wl,-z,lazy"]),
    ("plt.c", &["-Wl,-z,now"]),
    ("jumps.c", &[]),
    ("jumps.c", &["-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]),
    ("threads.c", &["-static"]),
    ("dlopen.c", &[]),
    ("unruled.c", &["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]),
    ("realigned.c", &["-O3"]),
    ("outlined.c", &[CLANG, "-Oz", "-moutline"]),
    ("exceptions.cpp", &[CLANG, "-O3"]),
    ("signals.c", &[CLANG, "-static", "-O3"]),
    ("vectors.c", &[CLANG, "-static", "-march=armv8.2-a+sve"]),
];

/// Compiles `source` with optimization, or finds it in [`BUILT`]. Prints the reason and returns `None` if there is no
/// compiler.
pub fn build(source: &str, flags: &[&str]) -> Option<Program> {
    if let Some(built) = std::env::var_os(BUILT) {
        let path = Path::new(&built).join(name(source, flags)).join("program");
        if !path.exists() {
            skip(Requirement::Cc, format_args!("{} is not there", path.display()));
            return None;
        }
        return Some(Program { temporary: None, path });
    }
    let directory = format!("plumb-oracle-{}-{}", std::process::id(), name(source, flags));
    let directory = std::env::temp_dir().join(directory);
    let program = Program { path: directory.join("program"), temporary: Some(directory.clone()) };
    compile(&NATIVE, source, flags, &directory).then_some(program)
}

/// Compiles the programs for aarch64 into [`BUILT`]. Returns their number.
pub fn cross_build() -> usize {
    let built = std::env::var_os(BUILT).unwrap_or_else(|| panic!("{BUILT} has to be set"));
    let build = |&&(source, flags): &&(&str, &[&str])| {
        compile(&AARCH64, source, flags, &Path::new(&built).join(name(source, flags)))
    };
    OF_AARCH64.iter().filter(build).count()
}

/// Returns the name of a program's directory.
fn name(source: &str, flags: &[&str]) -> String {
    format!("{source}{}", flags.join("").replace([',', '/'], "_"))
}

/// Compiles a program and its libraries. Returns `false` if the compiler is missing.
fn compile(compilers: &Compilers, source: &str, flags: &[&str], directory: &Path) -> bool {
    std::fs::create_dir_all(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let is_clang = flags.contains(&CLANG);
    let compiler = |is_cpp| {
        let mut command = Command::new(match (is_clang, is_cpp) {
            (true, true) => "clang++-19".to_owned(),
            (true, false) => "clang-19".to_owned(),
            (false, true) => format!("{}g++", compilers.prefix),
            (false, false) => format!("{}gcc", compilers.prefix),
        });
        command.args(compilers.flags);
        command
    };
    let library = |name: &str| directory.join(format!("lib{name}.so"));
    let libraries: &[&str] = match source {
        "plt.c" => &["external"],
        "dlopen.c" => &["first", "second"],
        _ => &[],
    };
    for name in libraries {
        let mut build = compiler(false);
        build.arg(format!("-Wl,-soname,lib{name}.so"));
        build.args(["-shared", "-fPIC", "-o"]).arg(library(name)).arg(sources.join(format!("{name}.c")));
        if !run(&mut build) {
            return false;
        }
    }
    let mut link = compiler(source.ends_with(".cpp"));
    link.args(flags).arg("-o").arg(directory.join("program")).arg(sources.join(source));
    if source == "plt.c" {
        link.arg(library("external"));
    }
    run(&mut link)
}

/// Runs a compiler. Returns `false` if it is missing.
fn run(command: &mut Command) -> bool {
    match command.status() {
        Ok(status) => assert!(status.success(), "{command:?} failed"),
        Err(error) => {
            skip(Requirement::Cc, format_args!("{command:?} can't be run: {error}"));
            return false;
        }
    }
    true
}

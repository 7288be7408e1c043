//! Builds the programs to be stepped, from tests/programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_fixtures::{Requirement, skip};

/// A built program; dropping it removes its directory.
pub struct Program {
    directory: PathBuf,
    pub path: PathBuf,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Compiles `source` with optimization and without frame pointers. Prints the reason and returns `None` if there is
/// no compiler.
pub fn build(source: &str, flags: &[&str]) -> Option<Program> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let stem = format!("{source}{}", flags.join("").replace([',', '/'], "_"));
    let directory = std::env::temp_dir().join(format!("plumb-oracle-{}-{stem}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("the temporary folder is writable");
    let program = Program { path: directory.join("program"), directory };
    let compiler = if source.ends_with(".cpp") { "g++" } else { "gcc" };
    let library = program.directory.join("libexternal.so");
    let common = ["-O2", "-fomit-frame-pointer", "-w"];
    let mut link = Command::new(compiler);
    link.args(common).args(flags).arg("-o").arg(&program.path).arg(sources.join(source));
    let mut built = true;
    if source.starts_with("plt") {
        built = run(Command::new("gcc")
            .args(common)
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(sources.join("external.c")))?;
        link.arg(format!("-Wl,-rpath,{}", program.directory.display())).arg(&library);
    }
    if source.starts_with("dlopen") {
        for name in ["first", "second"] {
            let (from, to) =
                (sources.join(format!("{name}.c")), program.directory.join(format!("lib{name}.so")));
            built &=
                run(Command::new("gcc").args(common).args(["-shared", "-fPIC", "-o"]).arg(to).arg(from))?;
        }
    }
    built &= run(&mut link)?;
    assert!(built, "{source} does not compile");
    Some(program)
}

fn run(command: &mut Command) -> Option<bool> {
    match command.status() {
        Ok(status) => Some(status.success()),
        Err(error) => {
            skip(Requirement::Cc, format_args!("{command:?} can't be run: {error}"));
            None
        }
    }
}

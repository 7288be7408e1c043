//! `make test`: runs every test of the workspace, also after one has failed, and closes with one summary: suites, tests, who failed, what was
//! skipped for want of what, which suites took longest. The last line is as cargo's own of one suite, summed up over all.
//!
//! Not here: what a test requires of the machine and how it skips (the crate `fixtures`).

mod lines;
mod summary;

use std::io::{BufRead, BufReader, Write, pipe};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};

use lines::Tally;

/// Runs `cargo test` with further arguments. Its exit code, or 1 where a test failed.
pub fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let skips = root.join(target(root)).join("skips");
    std::fs::create_dir_all(skips.parent().context("a folder for what is built")?)?;
    std::fs::write(&skips, "").with_context(|| skips.display().to_string())?;
    let begin = Instant::now();
    // Both of cargo's outputs through one pipe: which suite a result is of is said on the other one.
    let (output, input) = pipe()?;
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--no-fail-fast"]).current_dir(root).env("PLUMB_SKIPS", &skips);
    // Cargo says in the environment which package it runs, this one. A build script that asks (ring's does) would be run again, and all that
    // depends on it built a second time.
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
    }
    if arguments.is_empty() {
        command.arg("--workspace");
    }
    command.args(arguments).stdout(input.try_clone()?).stderr(input);
    let mut cargo = command.spawn().context("cargo test")?;
    // It holds the other end of the pipe, which would never end.
    drop(command);
    let mut tally = Tally::default();
    let mut stdout = std::io::stdout();
    for line in BufReader::new(output).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        writeln!(stdout, "{line}")?;
        tally.read(&line, begin.elapsed());
    }
    let status = cargo.wait()?;
    let skips = std::fs::read_to_string(&skips).context("what was skipped")?;
    let is_good = status.success() && tally.failed == 0;
    summary::write(&mut stdout, &tally, &skips, begin.elapsed(), is_good)?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn target(root: &Path) -> std::path::PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into)
}

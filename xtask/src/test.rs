//! `make test`: builds every test of the workspace, runs the suites side by side, also after one has failed, repeats a failed test alone, and closes
//! with one summary: suites, tests, who failed, who failed only beside others, what was skipped for want of what, which suites took longest. The last line is as cargo's own of one suite, summed up over
//! all.
//!
//! Not here: what a test requires of the machine and how it skips (the crate `fixtures`).

mod build;
mod lines;
mod order;
mod pool;
mod summary;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};

use lines::Tally;

/// Runs the tests. Arguments up to `--` choose what cargo builds, all of the workspace without any; those behind it go to each suite. The exit
/// code is 1 where a test failed.
pub fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let skips = target.join("skips");
    std::fs::create_dir_all(&target)?;
    std::fs::write(&skips, "").with_context(|| skips.display().to_string())?;
    let begin = Instant::now();
    let (chosen, for_suites) = divide(arguments);
    let suites = build::suites(root, &chosen, for_suites)?;
    let built = begin.elapsed();
    let output = target.join("test-output");
    std::fs::create_dir_all(&output)?;
    let mut tally = Tally::default();
    pool::Pool { output: &output, skips: &skips, arguments: for_suites }.run(suites, &mut tally)?;
    if arguments.is_empty() {
        documentation(root, &mut tally)?;
    }

    let skips = std::fs::read_to_string(&skips).context("what was skipped")?;
    let is_good = tally.failures.is_empty() && tally.failed == 0;
    println!("\n== Built in {:.0} s", built.as_secs_f64());
    summary::write(&mut std::io::stdout(), &tally, &skips, begin.elapsed(), is_good)?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints a line for each suite: package and suite, the package's directory, the program, and the arguments that select the suite's tests in it, all
/// separated by tabs. Arguments are those of [`run`].
pub fn list(root: &Path, arguments: &[String]) -> Result<()> {
    let (chosen, for_suites) = divide(arguments);
    for suite in build::suites(root, &chosen, for_suites)? {
        let package = suite.directory.file_name().unwrap_or_default().display();
        let selection: Vec<&str> = suite.selection().collect();
        let (directory, program) = (suite.directory.display(), suite.program.display());
        println!("{package}/{}\t{directory}\t{program}\t{}", suite.name, selection.join("\t"));
    }
    Ok(())
}

/// What cargo builds, and the arguments of the test programs.
fn divide(arguments: &[String]) -> (Vec<String>, &[String]) {
    let at = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let (chosen, for_suites) = (&arguments[..at], arguments[at..].get(1..).unwrap_or_default());
    let chosen = if chosen.is_empty() { vec!["--workspace".to_owned()] } else { chosen.to_vec() };
    (chosen, for_suites)
}

/// Runs the examples in documentation of the whole workspace.
fn documentation(root: &Path, tally: &mut Tally) -> Result<()> {
    let begin = Instant::now();
    let output = cargo(root)
        .args(["test", "--doc", "--workspace", "--no-fail-fast"])
        .output()
        .context("cargo test --doc")?;
    std::io::stdout().write_all(&output.stdout)?;
    std::io::stderr().write_all(&output.stderr)?;
    let text = String::from_utf8_lossy(&output.stdout);
    tally.add("documentation", &text, begin.elapsed(), output.status.success());
    Ok(())
}

/// Cargo, without what cargo says in the environment of the package that it runs now: a build script that asks (ring's does) would be run again,
/// and all that depends on it built a second time.
fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
    }
    command.current_dir(root);
    command
}

//! Chores of the repository: `cargo run -p xtask -- tidy`, `-- codegen [--check]`, `-- test`, `-- suites`, `-- measure [ROOT]`.
//!
//! Not here: anything that the shipped command needs.

mod codegen;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => report(tidy::run(root)),
        Some("codegen") => match codegen::run(root, std::env::args().nth(2).as_deref() == Some("--check")) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("codegen: {error:#}");
                ExitCode::FAILURE
            }
        },
        Some("test") => match test::run(root, &std::env::args().skip(2).collect::<Vec<_>>()) {
            Ok(code) => code,
            Err(error) => {
                eprintln!("test: {error:#}");
                ExitCode::FAILURE
            }
        },
        Some("suites") => match test::list(root, &std::env::args().skip(2).collect::<Vec<_>>()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("suites: {error:#}");
                ExitCode::FAILURE
            }
        },
        Some("measure") => {
            let other = std::env::args_os().nth(2).map(PathBuf::from);
            match tidy::measure::print(other.as_deref().unwrap_or(root)) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("measure: {error:#}");
                    ExitCode::FAILURE
                }
            }
        }
        other => {
            eprintln!("xtask: unknown chore {other:?}; there are: tidy, codegen, test, suites, measure");
            ExitCode::FAILURE
        }
    }
}

fn report(findings: anyhow::Result<Vec<tidy::Finding>>) -> ExitCode {
    match findings {
        Ok(findings) if findings.is_empty() => {
            println!("tidy: nothing to mend");
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            findings.iter().for_each(|finding| println!("{finding}"));
            println!("tidy: {} to mend", findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy: {error:#}");
            ExitCode::FAILURE
        }
    }
}

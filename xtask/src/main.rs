//! Chores of the repository: `cargo run -p xtask -- tidy`, `-- codegen [--check]`, `-- test`, `-- suites`, `-- measure [ROOT]`.
//!
//! Not here: anything that the shipped command needs.

mod codegen;
mod test;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let done = match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy::run(root).map(|findings| report(&findings)),
        Some("codegen") => codegen::run(root, arguments.first().is_some_and(|one| one == "--check"))
            .map(|()| ExitCode::SUCCESS),
        Some("test") => test::run(root, &arguments),
        Some("suites") => test::list(root, &arguments).map(|()| ExitCode::SUCCESS),
        Some("measure") => {
            tidy::measure::print(arguments.first().map_or(root, Path::new)).map(|()| ExitCode::SUCCESS)
        }
        other => {
            Err(anyhow::anyhow!("unknown chore {other:?}; there are: tidy, codegen, test, suites, measure"))
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}

fn report(findings: &[tidy::Finding]) -> ExitCode {
    if findings.is_empty() {
        println!("tidy: nothing to mend");
        return ExitCode::SUCCESS;
    }
    findings.iter().for_each(|finding| println!("{finding}"));
    println!("tidy: {} to mend", findings.len());
    ExitCode::FAILURE
}

//! What holds for the whole repository and no compiler checks: who may depend on whom, how long things may be,
//! where `unsafe` may stand, what must be written down, what commands may not know of each other.
//!
//! Each submodule looks at one matter and returns findings; none changes a file.

mod circles;
mod dependencies;
mod documents;
mod exceptions;
mod finding;
mod kernel;
mod limits;
mod names;
mod prose;
mod siblings;
mod source;
mod suites;
mod words;

pub mod measure;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

pub use finding::Finding;

/// All findings in the repository at `root`.
pub fn run(root: &Path) -> Result<Vec<Finding>> {
    let files = tracked_files(root)?;
    let mut findings = dependencies::check(root)?;
    findings.extend(documents::check(root)?);
    let commands = siblings::commands(&files);
    let (mut parsed, mut measured) = (Vec::new(), Vec::new());
    let mut prose = prose::Prose::new();
    for file in files {
        // A deleted file that is still in the index, a link to nowhere, or a binary.
        let Ok(text) = std::fs::read_to_string(root.join(&file)) else { continue };
        findings.extend(words::check(&file, &text));
        prose.read(&file, &text);
        if file.extension().is_some_and(|e| e == "rs") {
            match syn::parse_file(&text) {
                Ok(syntax) => {
                    findings.extend(source::check(&file, &text, &syntax));
                    findings.extend(siblings::check(&file, &text, &commands));
                    measured.extend(source::measure(&file, &text, &syntax));
                    parsed.push((file, syntax));
                }
                Err(error) => {
                    let (line, what) = (error.span().start().line, format!("does not parse: {error}"));
                    findings.push(Finding { file, line, what });
                }
            }
        } else if file.components().any(|part| part.as_os_str() == "bpf") {
            measured.extend(kernel::measure(&file, &text));
        }
    }
    findings.extend(prose.findings());
    measured.extend(circles::check(&parsed));
    findings.extend(names::check(&parsed));
    findings.extend(suites::check(&parsed));
    findings.extend(limits::check(measured));
    Ok(findings)
}

/// Files that git tracks or would track.
fn tracked_files(root: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("git ls-files: is git installed?")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect())
}

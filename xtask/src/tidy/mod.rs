//! What holds for the whole repository and no compiler checks: who may depend on whom, how long things may be,
//! where `unsafe` may stand, what must be written down, what commands may not know of each other.
//!
//! Each submodule looks at one matter and returns findings; none changes a file.

mod dependencies;
mod documents;
mod siblings;
mod source;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// One thing to mend.
#[derive(Debug, PartialEq)]
pub struct Finding {
    /// File, relative to the repository.
    pub file: PathBuf,
    /// Line, counted from 1; 0 if it is the file as a whole.
    pub line: usize,
    /// What is wrong and what would be right.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file.display(), self.what),
            line => write!(f, "{}:{line}: {}", self.file.display(), self.what),
        }
    }
}

/// All findings in the repository at `root`.
pub fn run(root: &Path) -> Result<Vec<Finding>> {
    let files = tracked_files(root)?;
    let mut findings = dependencies::check(root)?;
    findings.extend(documents::check(root)?);
    let commands = siblings::commands(&files);
    for file in &files {
        // A deleted file that is still in the index, a link to nowhere, or a binary.
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        findings.extend(words::check(file, &text));
        if file.extension().is_some_and(|e| e == "rs") {
            findings.extend(source::check(file, &text));
            findings.extend(siblings::check(file, &text, &commands));
        }
    }
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

//! What must be written down: ARCHITECTURE.md names every crate, and every crate says what it is.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Finding;

/// Findings about the documents at the root.
pub fn check(root: &Path) -> Result<Vec<Finding>> {
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    let mut findings = Vec::new();
    for entry in std::fs::read_dir(root.join("crates")).context("crates")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !architecture.contains(&format!("`{name}`")) {
            findings.push(Finding {
                file: PathBuf::from("ARCHITECTURE.md"),
                line: 0,
                what: format!("says nothing of `{name}`"),
            });
        }
        if ["util", "utils", "common", "types", "misc", "helpers"].contains(&name.as_str()) {
            findings.push(Finding {
                file: PathBuf::from("crates").join(&name),
                line: 0,
                what: "a crate is named for what it holds".into(),
            });
        }
    }
    Ok(findings)
}

//! Who may depend on whom: `cargo metadata` held against the table of ARCHITECTURE.md.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Finding;

/// For each crate the crates of this workspace that it may use. A new edge is an edit here and in ARCHITECTURE.md.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "plumb",
        &[
            "plumb-agent",
            "plumb-analyze",
            "plumb-call-watch",
            "plumb-capture-api",
            "plumb-capture-bpf",
            "plumb-capture-perf",
            "plumb-doctor",
            "plumb-documents",
            "plumb-formats",
            "plumb-ingest",
            "plumb-interpreters",
            "plumb-process",
            "plumb-profile",
            "plumb-record",
            "plumb-server",
            "plumb-snapshot",
            "plumb-stack-quality",
            "plumb-stat-runner",
            "plumb-store",
            "plumb-symbolize",
            "plumb-syscalls",
            "plumb-table-cache",
            "plumb-target",
        ],
    ),
    (
        "plumb-agent",
        &[
            "plumb-capture-api",
            "plumb-capture-bpf",
            "plumb-capture-perf",
            "plumb-formats",
            "plumb-interpreters",
            "plumb-process",
            "plumb-profile",
            "plumb-record",
            "plumb-symbolize",
            "plumb-syscalls",
            "plumb-target",
        ],
    ),
    ("plumb-analyze", &["plumb-profile"]),
    (
        "plumb-call-watch",
        &[
            "plumb-analyze",
            "plumb-capture-bpf",
            "plumb-capture-perf",
            "plumb-documents",
            "plumb-process",
            "plumb-profile",
            "plumb-syscalls",
            "plumb-target",
        ],
    ),
    ("plumb-capture-api", &["plumb-interpreters", "plumb-table-cache", "plumb-unwind"]),
    ("plumb-capture-bpf", &["plumb-capture-api", "plumb-process", "plumb-syscalls", "plumb-unwind"]),
    (
        "plumb-capture-perf",
        &[
            "plumb-capture-api",
            "plumb-ingest",
            "plumb-process",
            "plumb-profile",
            "plumb-table-cache",
            "plumb-target",
            "plumb-unwind",
        ],
    ),
    ("plumb-columns", &[]),
    ("plumb-fixtures", &["plumb-profile"]),
    ("plumb-formats", &["plumb-columns", "plumb-profile"]),
    (
        "plumb-ingest",
        &[
            "plumb-capture-api",
            "plumb-interpreters",
            "plumb-process",
            "plumb-profile",
            "plumb-table-cache",
            "plumb-unwind",
        ],
    ),
    ("plumb-interpreters", &["plumb-unwind"]),
    ("plumb-process", &[]),
    ("plumb-profile", &[]),
    ("plumb-sampler", &["plumb-process", "plumb-unwind"]),
    (
        "plumb-record",
        &[
            "plumb-analyze",
            "plumb-capture-api",
            "plumb-capture-bpf",
            "plumb-capture-perf",
            "plumb-formats",
            "plumb-ingest",
            "plumb-process",
            "plumb-profile",
            "plumb-stack-quality",
            "plumb-symbolize",
            "plumb-target",
        ],
    ),
    (
        "plumb-documents",
        &[
            "plumb-analyze",
            "plumb-formats",
            "plumb-process",
            "plumb-profile",
            "plumb-symbolize",
            "plumb-syscalls",
        ],
    ),
    (
        "plumb-doctor",
        &[
            "plumb-analyze",
            "plumb-capture-bpf",
            "plumb-capture-perf",
            "plumb-documents",
            "plumb-interpreters",
            "plumb-process",
            "plumb-profile",
            "plumb-stack-quality",
            "plumb-symbolize",
        ],
    ),
    (
        "plumb-server",
        &[
            "plumb-analyze",
            "plumb-documents",
            "plumb-formats",
            "plumb-profile",
            "plumb-store",
            "plumb-symbolize",
        ],
    ),
    (
        "plumb-snapshot",
        &["plumb-ingest", "plumb-interpreters", "plumb-process", "plumb-profile", "plumb-unwind"],
    ),
    (
        "plumb-stack-quality",
        &[
            "plumb-analyze",
            "plumb-capture-bpf",
            "plumb-capture-perf",
            "plumb-interpreters",
            "plumb-process",
            "plumb-profile",
            "plumb-symbolize",
        ],
    ),
    (
        "plumb-stat-runner",
        &[
            "plumb-analyze",
            "plumb-capture-api",
            "plumb-capture-perf",
            "plumb-documents",
            "plumb-process",
            "plumb-target",
        ],
    ),
    ("plumb-store", &["plumb-columns"]),
    ("plumb-symbolize", &["plumb-process", "plumb-profile"]),
    ("plumb-syscalls", &[]),
    ("plumb-table-cache", &["plumb-process", "plumb-unwind"]),
    ("plumb-target", &["plumb-process"]),
    ("plumb-unwind", &[]),
    ("xtask", &[]),
];

/// Findings about dependencies between the crates of the workspace.
pub fn check(root: &Path) -> Result<Vec<Finding>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let packages = metadata["packages"].as_array().context("cargo metadata: no packages")?;
    Ok(packages.iter().flat_map(check_package).collect())
}

fn check_package(package: &Value) -> Vec<Finding> {
    let name = package["name"].as_str().unwrap_or_default();
    let finding = |what| Finding { file: PathBuf::from(format!("crates/{name}/Cargo.toml")), line: 0, what };
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
        return vec![finding(format!(
            "crate {name} is not in the table of who may depend on whom (xtask/src/tidy/dependencies.rs)"
        ))];
    };
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies
        // Tests may reach further: their truth comes from outside the crate.
        .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
        .filter(|dependency| dependency["path"].is_string())
        .filter_map(|dependency| dependency["name"].as_str())
        .filter(|used| !allowed.contains(used))
        .map(|used| finding(format!("{name} must not depend on {used}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_edge_is_found() {
        let package = serde_json::json!({
            "name": "plumb-profile",
            "dependencies": [
                {"name": "plumb-unwind", "path": "/x", "kind": null},
                {"name": "plumb-formats", "path": "/x", "kind": "dev"},
                {"name": "serde", "kind": null},
            ],
        });
        let findings = check_package(&package);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].what.contains("must not depend on plumb-unwind"));
    }

    #[test]
    fn an_unknown_crate_is_found() {
        let package = serde_json::json!({"name": "plumb-util", "dependencies": []});
        assert_eq!(check_package(&package).len(), 1);
    }
}

//! Which suites there are: cargo builds them, and says where each is.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A program with tests.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The file in `tests`, or the library or program whose unit tests these are.
    pub name: String,
    /// Directory of the package, in which cargo starts tests as well.
    pub directory: PathBuf,
    /// The built program.
    pub program: PathBuf,
}

/// Builds the tests that `chosen`, arguments of cargo, stand for.
pub fn suites(root: &Path, chosen: &[String]) -> Result<Vec<Suite>> {
    let mut command = super::cargo(root);
    command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]).args(chosen);
    let output = command.stderr(Stdio::inherit()).output().context("cargo test")?;
    if !output.status.success() {
        bail!("the tests do not build");
    }
    let mut suites = Vec::new();
    for line in output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        suites.extend(suite(&serde_json::from_slice(line).context("what cargo says of a build")?));
    }
    Ok(suites)
}

/// The suite that a message of cargo's is about, if it is about one.
fn suite(message: &Value) -> Option<Suite> {
    let is_test = message["profile"]["test"].as_bool()?;
    let program = message["executable"].as_str().filter(|_| is_test)?;
    let target = &message["target"];
    let name = target["name"].as_str()?;
    let is_unit = target["kind"][0].as_str()? != "test";
    Some(Suite {
        name: if is_unit { format!("{name} (unit)") } else { name.to_owned() },
        directory: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
        program: program.into(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_program_is_a_suite_only_if_it_was_built_as_a_test() {
        let message = |kind: &str, is_test: bool| {
            json!({"reason": "compiler-artifact", "manifest_path": "/x/y/Cargo.toml", "executable": "/t/walk-0a",
                   "target": {"kind": [kind], "name": "walk"}, "profile": {"test": is_test}})
        };
        let walk = suite(&message("test", true)).unwrap();
        assert_eq!((walk.name.as_str(), walk.directory), ("walk", PathBuf::from("/x/y")));
        assert_eq!(suite(&message("lib", true)).unwrap().name, "walk (unit)");
        assert!(suite(&message("bin", false)).is_none());
        assert!(suite(&json!({"reason": "build-finished", "success": true})).is_none());
    }
}

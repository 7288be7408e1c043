//! Which suites there are: cargo builds their programs, and each says what is in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The program of a package's tests that may run beside others. Its modules are suites.
const ALL: &str = "all";

/// A program with tests, or a module of one.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The file in `tests`, or the library or program whose unit tests these are.
    pub name: String,
    /// Directory of the package, in which cargo starts tests as well.
    pub directory: PathBuf,
    /// The built program.
    pub program: PathBuf,
    /// Full names of the tests. All of the program if empty.
    pub tests: Vec<String>,
}

impl Suite {
    /// Arguments with which the program runs these tests and no others.
    pub fn selection(&self) -> impl Iterator<Item = &str> {
        let exact = (!self.tests.is_empty()).then_some("--exact");
        exact.into_iter().chain(self.tests.iter().map(String::as_str))
    }

    /// The suites of a program of several: one for each module that has tests which `arguments` select.
    fn split(self, arguments: &[String]) -> Result<Vec<Self>> {
        if self.name != ALL {
            return Ok(vec![self]);
        }
        let mut command = Command::new(&self.program);
        let output = command.args(["--list", "--format=terse"]).args(arguments).output();
        let output = output.with_context(|| self.program.display().to_string())?;
        if !output.status.success() {
            bail!(
                "{} does not list its tests: {}",
                self.program.display(),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let list = String::from_utf8_lossy(&output.stdout);
        let tests: Vec<&str> = list.lines().filter_map(|line| line.strip_suffix(": test")).collect();
        let module = |test: &&str| test.split("::").next().unwrap_or_default().to_owned();
        let suites = tests.chunk_by(|one, other| module(one) == module(other)).map(|tests| Self {
            name: tests.first().map(module).unwrap_or_default(),
            tests: tests.iter().map(|test| (*test).to_owned()).collect(),
            ..self.clone()
        });
        Ok(suites.collect())
    }
}

/// Builds the tests that `chosen`, arguments of cargo, stand for. `arguments` of the test programs may select some of them.
pub fn suites(root: &Path, chosen: &[String], arguments: &[String]) -> Result<Vec<Suite>> {
    let mut command = super::cargo(root);
    command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]).args(chosen);
    let output = command.stderr(Stdio::inherit()).output().context("cargo test")?;
    if !output.status.success() {
        bail!("the tests do not build");
    }
    let mut suites = Vec::new();
    for line in output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message = serde_json::from_slice(line).context("what cargo says of a build")?;
        if let Some(program) = suite(&message) {
            suites.extend(program.split(arguments)?);
        }
    }
    Ok(suites)
}

/// The program that a message of cargo's is about, if it is about one with tests.
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
        tests: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    fn message(name: &str, kind: &str, program: &str, is_test: bool) -> Value {
        json!({"reason": "compiler-artifact", "manifest_path": "/x/y/Cargo.toml", "executable": program,
               "target": {"kind": [kind], "name": name}, "profile": {"test": is_test}})
    }

    #[test]
    fn a_program_is_a_suite_only_if_it_was_built_as_a_test() {
        let walk = suite(&message("walk", "test", "/t/walk-0a", true)).unwrap();
        assert_eq!((walk.name.as_str(), walk.directory), ("walk", PathBuf::from("/x/y")));
        assert_eq!(suite(&message("walk", "lib", "/t/walk-0a", true)).unwrap().name, "walk (unit)");
        assert!(suite(&message("walk", "bin", "/t/walk-0a", false)).is_none());
        assert!(suite(&json!({"reason": "build-finished", "success": true})).is_none());
    }

    #[test]
    fn modules_of_one_program_are_suites() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("all-0a");
        std::fs::write(
            &program,
            "#!/bin/sh\nprintf 'api::a: test\\napi::b: test\\napis::c: test\\nfast: benchmark\\n'\n",
        )
        .unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let all = suite(&message("all", "test", program.to_str().unwrap(), true)).unwrap();
        let suites = all.split(&[]).unwrap();
        let names: Vec<_> = suites.iter().map(|suite| suite.name.as_str()).collect();
        assert_eq!(names, ["api", "apis"]);
        assert_eq!(suites[0].selection().collect::<Vec<_>>(), ["--exact", "api::a", "api::b"]);
    }
}

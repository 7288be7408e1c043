//! Names of Java functions: the command that the summary suggests provides them.
//!
//! Needs a JDK of version 17 or newer; without it, a test prints so and is skipped.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use plumb_fixtures::{Requirement, needs};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn plumb(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().expect("plumb runs")
}

/// A JVM, killed at the end of the test.
struct Jvm(Child);

impl Jvm {
    fn start(options: &[&str]) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/Spins.java");
        let mut command = Command::new("java");
        command.args(options).arg(program).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("it says that it spins");
        assert_eq!(line, "spins\n");
        // After this sleep, Java's compiler has compiled the loop.
        std::thread::sleep(std::time::Duration::from_millis(500));
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", self.0.id()));
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_jvm_that_runs_names_its_code_when_it_is_asked_as_the_summary_says() {
    if !needs(Requirement::Perf) || !needs(Requirement::Java) {
        return;
    }
    let folder = folder("java-names");
    let with_map = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"];
    for options in [&[][..], &with_map] {
        let jvm = Jvm::start(options);
        let record = || plumb(&folder, &["record", "--duration", "1", "-p", &jvm.pid()]);
        let said = text(&record().stderr);
        let advice = format!("jcmd {} Compiler.perfmap", jvm.pid());
        assert!(said.contains("without names") && said.contains(&advice), "{options:?}: {said}");
        let words: Vec<&str> = advice.split(' ').collect();
        let asked = Command::new(words[0]).args(&words[1..]).output().expect("it starts");
        assert!(asked.status.success(), "{}", text(&asked.stdout));
        let said = text(&record().stderr);
        assert!(!said.contains("without names"), "{options:?}: {said}");
        let folded = text(&plumb(&folder, &["fold"]).stdout);
        assert!(folded.contains("Spins.spins"), "{folded}");
    }
}

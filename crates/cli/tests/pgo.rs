//! Profiles for `go build -pgo`: Go takes plumb's, and finds the same calls hot as in the one that Go's own library writes.
//!
//! Needs Go and perf_event_open: where they are missing a test says so and does nothing.

mod spun;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use plumb_fixtures::{Requirement, needs, probe::go};
use spun::{folder, may_record, succeeds, text};

/// The linker's flags of a program with debug information.
const WITH_DWARF: &str = "-ldflags=";

/// Runs Go in the folder, with the version `toolchain`.
fn run_go(folder: &Path, toolchain: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(go().expect("it was found"));
    command
        .args(arguments)
        .current_dir(folder)
        .env("GOTOOLCHAIN", toolchain)
        .env("GOFLAGS", "-buildvcs=false");
    plumb_fixtures::probe::keep_go_cache(&mut command, folder);
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "go {arguments:?}: {}", text(&output.stderr));
    text(&output.stderr)
}

/// The packages that are compiled with a profile.
#[derive(Clone, Copy, PartialEq)]
enum Packages {
    /// The program's and Go's own, as users do.
    All,
    /// The program's alone, which takes a second.
    Main,
}

fn append(file: &Path, text: &str) {
    let file = std::fs::OpenOptions::new().append(true).open(file);
    file.and_then(|mut file| file.write_all(text.as_bytes())).expect("the file is there");
}

/// The calls that are inlined only since the profile says that they are hot.
fn hot_calls(folder: &Path, toolchain: &str, profile: &str, packages: Packages) -> BTreeSet<String> {
    let (all, main) = match packages {
        Packages::All => (profile, String::new()),
        Packages::Main => ("off", format!("-pgoprofile={profile} ")),
    };
    // Go's cache does not look into the profile of a package.
    append(&folder.join("main.go"), &format!("// {:?}\n", SystemTime::now()));
    let flags = [format!("-pgo={all}"), format!("-gcflags={main}-d=pgodebug=1")];
    let said = run_go(folder, toolchain, &["build", &flags[0], &flags[1], "-o", "optimized", "."]);
    let hot = said.lines().filter(|line| line.starts_with("hot-budget check allows inlining"));
    hot.map(str::to_owned).collect()
}

/// `PLUMB_GO_TOOLCHAINS`: versions of Go to hold it to, which Go fetches, such as `go1.21.13,go1.25.0`.
#[test]
fn go_builds_with_a_profile_of_plumb_as_with_its_own() {
    let folder = folder("pgo");
    if !needs(Requirement::Go) || !may_record() {
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/pgo");
    for file in ["main.go", "go.mod"] {
        std::fs::copy(source.join(file), folder.join(file)).expect("the folder is there");
    }
    let toolchains = std::env::var("PLUMB_GO_TOOLCHAINS").unwrap_or("local".into());
    for toolchain in toolchains.split(',') {
        // With DWARF, and by Go's own table alone.
        for flags in [WITH_DWARF, "-ldflags=-w"] {
            run_go(&folder, toolchain, &["build", "-pgo=off", flags, "-o", "plain", "."]);
            let own = Command::new("./plain").arg("own.pprof").current_dir(&folder).status();
            assert!(own.is_ok_and(|status| status.success()));
            succeeds(&folder, &["record", "--quiet", "--", "./plain"]);
            succeeds(&folder, &["export", "-o", "plumb.pb.gz"]);
            let own = hot_calls(&folder, toolchain, "own.pprof", Packages::Main);
            let packages = if flags == WITH_DWARF { Packages::All } else { Packages::Main };
            let plumb = hot_calls(&folder, toolchain, "plumb.pb.gz", packages);
            let inlined = |calls: &BTreeSet<String>| {
                calls
                    .iter()
                    .any(|call| call.contains("call main.mix ") && call.contains("main.(*square).area"))
            };
            assert!(inlined(&own), "{toolchain} {flags}: {own:?}");
            assert!(inlined(&plumb), "{toolchain} {flags}: {plumb:?}, not as {own:?}");
        }
    }
}

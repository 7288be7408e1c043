//! Profiles for `go build -pgo`: Go takes plumb's, and finds the same calls hot as in the one that Go's own library writes.
//!
//! Needs Go and perf_event_open: where they are missing a test says so and does nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::spun::{folder, may_record, succeeds};
use plumb_fixtures::go::{self, Packages, hot_calls};
use plumb_fixtures::{Requirement, needs};

/// The linker's flags of a program with debug information.
const WITH_DWARF: &str = "-ldflags=";

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
            go::run(&folder, toolchain, &["build", "-pgo=off", flags, "-o", "plain", "."]);
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

//! `plumb diff` of recordings of real programs: an allocator that reads the environment at each call, before and after the fix.
//!
//! Needs a C compiler, and perf events as any user has them; without them, a test prints so and is skipped.

use crate::spun;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::spun::{plumb_among_variables as plumb, text};
use plumb_fixtures::{Requirement, compiles, needs};
use serde_json::Value;

/// A directory with both builds of the allocator.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = spun::folder(&format!("diff-{name}"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/diff/pool.c");
    for (program, options) in [("slow", &[][..]), ("fixed", &["-DFIXED"])] {
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-g1"]).args(options).arg("-o").arg(folder.join(program)).arg(source);
        if !compiles(&mut compiler) {
            return None;
        }
    }
    Some(folder)
}

/// Records a program into a file. `None` if recording is not possible.
fn record(folder: &Path, program: &str, file: &str) -> Option<()> {
    if !needs(Requirement::Perf) {
        return None;
    }
    let output =
        plumb(folder, &["record", "-q", "-F", "4999", "-o", file, "--", &format!("./{program}"), "3000000"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(())
}

fn row<'v>(result: &'v Value, function: &str) -> &'v Value {
    let rows = result["rows"].as_array().expect("there are rows");
    rows.iter().find(|row| row["function"] == function).unwrap_or_else(|| panic!("{function}: {result}"))
}

#[test]
fn what_was_fixed_is_eliminated_and_what_it_hid_is_more_visible() {
    let Some(folder) = folder("pool") else { return };
    // Alternating: slow, fixed, fixed, slow ...
    let (slow, fixed) = (["s1", "s2", "s3", "s4", "s5"], ["f1", "f2", "f3", "f4", "f5"]);
    for turn in 0..5 {
        let mut both = [("slow", slow[turn]), ("fixed", fixed[turn])];
        if turn % 2 == 1 {
            both.reverse();
        }
        for (program, file) in both {
            if record(&folder, program, file).is_none() {
                return;
            }
        }
    }
    let sides = [&slow[..], &["--"], &fixed[..]].concat();
    let output = plumb(&folder, &[&["diff", "--json"][..], &sides].concat());
    let result: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    assert_eq!(result["evidence"], "turns");
    let getenv = row(&result, "getenv");
    assert_eq!(getenv["mark"], "eliminated", "{getenv}");
    assert!(getenv["share"][0].as_f64() > Some(0.2), "{getenv}");
    // A function that waits for its own results has a larger share of the rest. (How much less time the functions take depends on the state in which
    // getenv left the caches and branch predictors.)
    let lookup = row(&result, "mid_lookup");
    assert_eq!(lookup["visibility"], "more", "{lookup}");
    for function in ["pool_alloc", "mid_lookup"] {
        let row = row(&result, function);
        assert_ne!(row["mark"], "eliminated", "{row}");
    }
    assert_eq!(result["all"]["mark"], "less", "{}", result["all"]);

    let markdown = text(&plumb(&folder, &[&["diff", "--md"][..], &sides].concat()).stdout);
    assert!(markdown.contains("**eliminated**") && markdown.contains("| `mid_lookup` |"), "{markdown}");

    // Reverting the fix is a regression.
    let back = [&fixed[..], &["--"], &slow[..]].concat();
    let limit = ["diff", "--fail-on", "func:getenv>3%"];
    let failed = plumb(&folder, &[&limit[..], &back].concat());
    assert_eq!(failed.status.code(), Some(4), "{}", text(&failed.stderr));
    assert!(text(&failed.stderr).contains("func:getenv>3%"));
    let passed = plumb(&folder, &[&limit[..], &sides].concat());
    assert_eq!(passed.status.code(), Some(0), "{}", text(&passed.stderr));

    // Profiles of other tools can be compared as well.
    for kind in ["pb.gz", "folded"] {
        let names = ["s1", "f1"].map(|name| format!("{name}.{kind}"));
        for (from, to) in ["s1", "f1"].iter().zip(&names) {
            let exported = plumb(&folder, &["export", "-o", to, from]);
            assert!(exported.status.success(), "{}", text(&exported.stderr));
        }
        let output = plumb(&folder, &["diff", "--json", &names[0], &names[1]]);
        let result: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
        assert_eq!(row(&result, "getenv")["mark"], "eliminated", "{kind}: {result}");
    }

    let picture = plumb(&folder, &["diff", "-o", "d.html", "s1", "f1"]);
    assert!(picture.status.success(), "{}", text(&picture.stderr));
    let page = std::fs::read_to_string(folder.join("d.html")).expect("it was written");
    assert!(page.contains("s1 → f1 · plumb diff"));
}

#[test]
fn what_can_not_be_compared_is_said() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let said = |arguments: &[&str]| {
        let output = plumb(folder, arguments);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    assert!(said(&["diff", "one"]).contains("plumb diff BASE NEW"));
    assert!(said(&["diff", "no/a", "no/b"]).contains("no/a: no such file"));
    assert!(said(&["diff", "-o", "x.png", "a", "b"]).contains(".html or .svg"));
}

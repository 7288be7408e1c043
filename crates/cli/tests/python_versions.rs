//! Functions of Python programs in recordings, for each installed version of CPython from 3.9 on, compared with the programs' own
//! measurements.
//!
//! Needs BPF. Pythons are searched for in PATH, in /usr/bin and in pyenv's directories. If none is found, or none of a kind, a test prints so
//! and is skipped.

mod python;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_fixtures::{Requirement, skip};
use python::{alone, counts, functions, plumb, program, record, spent, text, way};

/// The supported versions: 3.9 and newer.
const MINORS: std::ops::RangeInclusive<u32> = 9..=15;
/// Mark before frames whose native frame was not found.
const UNPLACED: &str = "[native frames between these are missing]";

/// A directory for a test of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-versions-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    folder
}

/// The command of a Python by its minor version: the first one found, preferring those with numpy.
fn pythons() -> BTreeMap<u32, String> {
    let mut folders = vec![PathBuf::from("/usr/bin"), PathBuf::from("/usr/local/bin")];
    folders.extend(
        std::env::var_os("PATH").iter().flat_map(|path| std::env::split_paths(path).collect::<Vec<_>>()),
    );
    let pyenv = std::env::home_dir().map(|home| home.join(".pyenv/versions"));
    let versions = pyenv.and_then(|versions| versions.read_dir().ok()).into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    let mut found: BTreeMap<u32, (bool, String)> = BTreeMap::new();
    for (folder, minor) in folders.iter().flat_map(|folder| MINORS.map(move |minor| (folder, minor))) {
        let path = folder.join(format!("python3.{minor}"));
        // Shims are scripts that print their version, or an error. Builds without the global lock are not supported.
        let ask = "import sys, sysconfig, importlib.util as u
if not sysconfig.get_config_var('Py_GIL_DISABLED'): print(sys.version_info[1], u.find_spec('numpy') is not None, sys.executable)";
        let Ok(output) = Command::new(&path).args(["-c", ask]).output() else { continue };
        let said = text(&output.stdout);
        let words: Vec<&str> = said.split_whitespace().collect();
        if let [number, numpy, path] = words[..]
            && number.parse() == Ok(minor)
        {
            let has_numpy = numpy == "True";
            let other = found.get(&minor);
            if other.is_none_or(|(has, _)| has_numpy && !has) {
                found.insert(minor, (has_numpy, path.to_owned()));
            }
        }
    }
    found.into_iter().map(|(minor, (_, path))| (minor, path)).collect()
}

/// Compares the recording of `versions.py` with its own measurements. `None`: it can't be recorded here.
fn check(python: &str, options: &[&str]) -> Option<()> {
    let folder = folder("shares");
    // A longer start, so that the tables are loaded before the measurement.
    let warm_up = format!("{python} -c 'import time\nwhile time.thread_time_ns() < 10**9: sum(range(200))'");
    let script = format!("{warm_up}; exec {python} {} {} 0.4", options.join(" "), program("versions.py"));
    let printed = record(&folder, &[], &["sh", "-c", &script])?;
    let measured = spent(&printed);
    assert!(measured.len() >= 4, "{printed}");
    println!("{python} {options:?}: {} ways", measured.len());
    let functions = functions(&measured);
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    let folded = counts(&text(&plumb(&folder, &["fold"]).stdout));
    let mut in_stubs = 0;
    for (stack, samples) in &folded {
        // The innermost frame is about to call its function, or has done so.
        let mut frames = stack.split(';').rev().skip(1);
        in_stubs += if frames.any(|name| name.starts_with("py::")) { *samples } else { 0 };
        if stack.split(';').any(|name| name == "burn" || name == "sorts_alone") {
            *found.entry(way(stack, &functions)).or_default() += samples;
        }
    }
    println!("{found:#?}, {in_stubs} with stubs of their own");
    assert!(
        in_stubs * 50 <= folded.values().sum::<u64>(),
        "stubs are frames of their own in {in_stubs} samples"
    );
    let strange: Vec<_> = found.keys().filter(|way| !measured.contains_key(*way)).collect();
    assert!(strange.is_empty(), "nothing is called that way: {strange:?}");
    for (way, spent) in &measured {
        spent.hold(way, found.get(way).copied().unwrap_or(0), 0.0, 0.1);
    }
    Some(())
}

#[test]
fn functions_of_each_version_have_the_shares_that_the_program_measured() {
    let _alone = alone();
    let pythons = pythons();
    if pythons.is_empty() {
        skip(Requirement::Python, "there is no Python 3.9 or newer");
    }
    for python in pythons.values() {
        if check(python, &[]).is_none() {
            return;
        }
    }
}

/// `-X perf` makes a stub for each function: each appears once, as without it.
#[test]
fn functions_with_stubs_of_their_own_are_there_once() {
    let _alone = alone();
    let with_stubs: Vec<_> = pythons().into_iter().filter(|(minor, _)| *minor >= 12).collect();
    if with_stubs.is_empty() {
        skip(Requirement::Python, "there is no Python 3.12 or newer");
    }
    for (_, python) in with_stubs {
        if check(&python, &["-X", "perf"]).is_none() {
            return;
        }
    }
}

/// If native frames can't be unwound up to the interpreter's loop, functions come after a mark.
#[test]
fn functions_behind_code_that_can_not_be_walked_are_marked() {
    let _alone = alone();
    let pythons = pythons();
    if pythons.is_empty() {
        skip(Requirement::Python, "there is no Python 3.9 or newer");
    }
    for python in pythons.values() {
        let folder = folder("blind");
        let Some(printed) = record(&folder, &[], &[python, &program("blind.py")]) else { return };
        let folded = counts(&text(&plumb(&folder, &["fold"]).stdout));
        let (mut marked, mut others) = (0, 0);
        for (stack, samples) in &folded {
            let names: Vec<&str> = stack.split(';').collect();
            let place = |name: &str| names.iter().position(|other| *other == name);
            let Some(spins) = place("spins") else { continue };
            assert!(place("calls_spins") < Some(spins), "{stack}");
            match place(UNPLACED) {
                Some(mark) => {
                    assert!(mark > spins, "it is between these and what is further in: {stack}");
                    marked += samples;
                }
                None => others += samples,
            }
        }
        println!("{python}: {marked} behind a mark, {others} in their place");
        spent(&printed)["spins"].hold("spins", marked, 0.0, 0.1);
        assert!(others * 10 <= marked, "{others}");
    }
}

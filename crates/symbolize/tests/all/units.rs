//! Several units with functions of the same name, and nested inlined calls, compared with addr2line at every
//! address: as compilers write them, and after dwz moved shared parts into partial units and a file of its own.

#![allow(clippy::unwrap_used)] // A test that can go no further fails.

use crate::truth;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::truth::{Chain, Folder, build_id, have, options, run};

/// Shared by both units: three nested calls.
const SHARED: &str = "
#define INLINED static inline __attribute__((always_inline))
extern volatile int out;
INLINED int innermost(int x) {
    out = x;
    return x * 3 + out;
}
INLINED int middle(int x) {
    for (int i = 0; i < x; i++)
        out += innermost(i);
    return out;
}
INLINED int outermost(int x) {
    int first = middle(x);
    return first ^ innermost(x + 1);
}
";

/// The source of a unit with its own functions `same` and `again`.
fn unit(name: &str, lines: usize) -> String {
    let gap = "\n".repeat(lines);
    let own = "static __attribute__((noinline, noclone))";
    format!(
        "#include \"shared.h\"\n{gap}
{own} int same(int x) {{
    out = outermost(x);
    return out + {lines};
}}
{own} int again(int x) {{
    return same(x) + middle(x + {lines});
}}
int {name}(int x) {{
    out = again(x);
    return out + outermost(x);
}}
"
    )
}

/// Compiles the units with the flags.
fn build(folder: &Folder, name: &str, flags: &[&str]) -> PathBuf {
    let main = "volatile int out;
int one(int), two(int), three(int);
int main(int count, char **words) { return one(count) + two(count) + three(count) + !words; }";
    let sources = [
        ("shared.h", SHARED.to_owned()),
        ("one.c", unit("one", 2)),
        ("two.c", unit("two", 40)),
        ("three.c", unit("three", 9)),
        ("main.c", main.to_owned()),
    ];
    sources.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
    let out = folder.join(name);
    let mut arguments: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
    arguments.extend(["-Wl,--build-id".to_owned(), "-o".to_owned(), out.to_str().unwrap().to_owned()]);
    arguments.extend(sources[1..].iter().map(|(name, _)| folder.join(name).to_str().unwrap().to_owned()));
    run("gcc", &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    out
}

/// Returns this crate's results for all addresses of a program.
fn ours(folder: &Folder, file: &Path, addresses: &[u64]) -> BTreeMap<u64, Chain> {
    let (mut profile, _) = truth::profile(file, build_id(file), addresses);
    let (found, summary) = truth::resolve(&mut profile, &options(folder));
    assert_eq!(summary.dsos[0].missing, []);
    found
}

/// Returns a chain without the directories of its files.
fn plain(chain: &Chain) -> Vec<(String, String, u32)> {
    let file = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    chain.iter().map(|(name, path, line)| (name.clone(), file(path), *line)).collect()
}

/// Compares with addr2line, and returns the results.
fn compare(name: &str, flags: &[&str]) -> Option<(Folder, PathBuf, BTreeMap<u64, Chain>)> {
    if !have(&["gcc", "addr2line", "readelf", "nm"]) {
        return None;
    }
    let folder = Folder::new(&format!("units-{name}"));
    let file = build(&folder, "program", flags);
    let own = truth::functions_called(&file, &["same", "again", "one", "two", "three"]);
    let addresses: Vec<u64> = own.iter().cloned().flatten().collect();
    let theirs = truth::addr2line(&file, &addresses);
    let ours = ours(&folder, &file, &addresses);
    let mut depths = BTreeSet::new();
    let mut same = BTreeSet::new();
    for address in &addresses {
        assert_eq!(plain(&ours[address]), plain(&theirs[address]), "{name}, {address:#x}");
        depths.insert(ours[address].len());
        same.extend(ours[address].last().filter(|last| last.0 == "same").map(|last| last.1.clone()));
    }
    let by_function = truth::resolve_code(&file, &options(&folder), &own);
    assert_eq!(by_function, ours, "{name}: what is read for a function is what all says of it");
    // Otherwise the test would test nothing.
    assert!(depths.contains(&4), "calls three deep: {depths:?}");
    assert_eq!(same.len(), 3, "a function of one name in each unit: {same:?}");
    Some((folder, file, ours))
}

#[test]
fn names_of_several_units_are_told_apart() {
    compare("dwarf-5", &["-O2", "-g"]);
    compare("dwarf-4", &["-O2", "-g", "-gdwarf-4"]);
    compare("dwarf-3", &["-O2", "-g", "-gdwarf-3", "-gstrict-dwarf"]);
    compare("sections", &["-O2", "-g", "-ffunction-sections", "-fdebug-types-section"]);
}

#[test]
fn what_dwz_moves_is_found_where_it_is() {
    if !have(&["dwz"]) {
        return;
    }
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let Some((folder, file, before)) = compare(&format!("dwz{version}"), &["-O2", "-g", version]) else {
            return;
        };
        let addresses: Vec<u64> = before.keys().copied().collect();
        let other = folder.join("other");
        fs::copy(&file, &other).unwrap();
        let path = |file: &Path| file.to_str().unwrap().to_owned();
        run("dwz", &[&path(&file)]);
        let own = truth::functions_called(&file, &["same", "again", "one", "two", "three"]);
        let by_function = |file: &Path| truth::resolve_code(file, &options(&folder), &own);
        assert_eq!(ours(&folder, &file, &addresses), before, "partial units");
        assert_eq!(by_function(&file), before, "partial units, a function at a time");
        let (shared, third) = (folder.join("shared.debug"), folder.join("third"));
        fs::copy(&other, &third).unwrap();
        run("dwz", &["-m", &path(&shared), &path(&other), &path(&third)]);
        assert_eq!(ours(&folder, &other, &addresses), before, "a file that two share");
        assert_eq!(by_function(&other), before, "a file that two share, a function at a time");
        // Losing this file costs names, and is reported.
        fs::remove_file(&shared).unwrap();
        let (mut profile, _) = truth::profile(&third, build_id(&third), &addresses);
        let (found, summary) = truth::resolve(&mut profile, &options(&folder));
        assert!(found.values().all(|chain| !chain.is_empty()));
        assert!(!summary.dsos[0].missing.is_empty());
    }
}

#[test]
fn what_a_functions_unit_refers_to_in_others_is_found() {
    if !have(&["gcc", "readelf", "nm"]) {
        return;
    }
    let folder = Folder::new("units-lto");
    // Link-time optimization leaves inlined functions in the units of their sources and puts the code into a unit of its own.
    let file = build(&folder, "program", &["-O2", "-g", "-flto=1"]);
    let main = truth::functions_called(&file, &["main"]);
    let addresses: Vec<u64> = main.iter().cloned().flatten().collect();
    let all = ours(&folder, &file, &addresses);
    assert!(all.values().any(|chain| chain.len() > 2 && chain.iter().all(|place| !place.0.is_empty())));
    assert_eq!(truth::resolve_code(&file, &options(&folder), &main), all);
}

//! Names for people, held against binutils' c++filt, and Rust names in this very test program.

#![allow(clippy::unwrap_used)] // A test that can go no further fails.

mod truth;

use std::collections::BTreeMap;
use std::path::Path;

use plumb_symbolize::Options;
use truth::Folder;

/// Linkage names of the functions at these addresses, and the names for people.
fn names(file: &Path, addresses: &[u64]) -> BTreeMap<String, String> {
    let (mut profile, _) = truth::profile(file, None, addresses);
    truth::resolve(&mut profile, &Options { lines: false, ..Options::default() });
    let text = |id| profile.strings.get(id).to_owned();
    let rows = profile.symbols.functions.rows();
    rows.iter().map(|function| (text(function.linkage_name), text(function.name))).collect()
}

#[test]
fn cpp_names_are_those_of_cxxfilt_without_parameters() {
    if !truth::have(&["g++", "nm", "c++filt"]) {
        return;
    }
    let folder = Folder::new("names");
    let file = truth::build(&folder, "program", &["-O0"]);
    let starts: Vec<u64> = truth::functions(&file).into_iter().map(|range| range.start).collect();
    let ours = names(&file, &starts);
    let mangled: Vec<&str> = ours.keys().map(String::as_str).collect();
    let theirs = truth::run("c++filt", &[&["-p"], &mangled[..]].concat());
    let different: Vec<_> =
        ours.iter().zip(theirs.lines()).filter(|((_, ours), theirs)| ours != theirs).collect();
    different
        .iter()
        .for_each(|((linkage_name, ours), theirs)| eprintln!("{linkage_name}\n  {ours}\n  {theirs}"));
    eprintln!("{} of {} differ", different.len(), ours.len());
    assert!(ours.len() > 50);
    assert!(different.len() * 20 <= ours.len(), "at most one in 20 is spelt differently");
}

#[inline(never)]
fn function_to_be_named() {
    std::hint::black_box(());
}

#[test]
fn rust_names_come_without_hash() {
    let file = std::env::current_exe().unwrap();
    if !truth::have(&["nm"]) {
        return;
    }
    let starts: Vec<u64> = truth::functions(&file).into_iter().map(|range| range.start).collect();
    let ours = names(&file, &starts);
    function_to_be_named();
    assert!(ours.values().any(|name| name == "names::function_to_be_named"));
    for (linkage_name, name) in ours.iter().filter(|(linkage_name, _)| linkage_name.contains("17h")) {
        let last = name.rsplit("::h").next().unwrap_or_default();
        let is_hash = last.len() == 16 && last.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(!is_hash, "{linkage_name}: {name}");
    }
}

#[test]
fn a_function_without_a_size_ends_where_data_among_code_begins() {
    if !truth::have(&["gcc", "nm"]) {
        return;
    }
    let folder = Folder::new("data-in-code");
    let (source, file) = (folder.join("code.s"), folder.join("code.so"));
    let text = ".text\n.type f, @function\nf: .skip 16, 0x90\n.type data, @object\ndata: .skip 64, 0x90\n";
    std::fs::write(&source, text).unwrap();
    truth::run("gcc", &["-shared", "-nostdlib", "-o", file.to_str().unwrap(), source.to_str().unwrap()]);
    let symbols = truth::run("nm", &[file.to_str().unwrap()]);
    let f = symbols.lines().find(|line| line.ends_with(" t f")).unwrap();
    let f = u64::from_str_radix(f.split(' ').next().unwrap(), 16).unwrap();
    assert_eq!(names(&file, &[f + 8]).into_values().collect::<Vec<_>>(), ["f"]);
    assert!(names(&file, &[f + 24]).is_empty(), "that is in what begins behind it");
}

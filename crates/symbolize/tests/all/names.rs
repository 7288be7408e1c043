//! Demangled names, compared with binutils' c++filt, and Rust names in this very test program.

#![allow(clippy::unwrap_used)] // A test that can go no further fails.

use crate::truth;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::truth::Folder;
use plumb_profile::{Address, Id};
use plumb_symbolize::Options;

/// Returns the linkage names of the functions at these addresses, with their readable names.
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
    assert!(ours.values().any(|name| name == concat!(module_path!(), "::function_to_be_named")));
    for (linkage_name, name) in ours.iter().filter(|(linkage_name, _)| linkage_name.contains("17h")) {
        let last = name.rsplit("::h").next().unwrap_or_default();
        let is_hash = last.len() == 16 && last.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(!is_hash, "{linkage_name}: {name}");
    }
}

/// Builds a library from assembly code and returns the address of each of its symbols.
fn assembled(folder: &Folder, text: &str) -> (PathBuf, BTreeMap<String, u64>) {
    let (source, file) = (folder.join("code.s"), folder.join("code.so"));
    std::fs::write(&source, text).unwrap();
    truth::run("gcc", &["-shared", "-nostdlib", "-o", file.to_str().unwrap(), source.to_str().unwrap()]);
    let symbols = truth::run("nm", &[file.to_str().unwrap()]);
    let symbol = |line: &str| {
        let [address, _, name] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        (name.to_owned(), u64::from_str_radix(address, 16).unwrap())
    };
    let symbols = symbols.lines().map(symbol).collect();
    (file, symbols)
}

#[test]
fn a_function_without_a_size_ends_where_data_among_code_begins() {
    if !truth::have(&["gcc", "nm"]) {
        return;
    }
    let folder = Folder::new("data-in-code");
    let text = ".text\n.type f, @function\nf: .skip 16, 0x90\n.type data, @object\ndata: .skip 64, 0x90\n";
    let (file, symbols) = assembled(&folder, text);
    let f = symbols["f"];
    assert_eq!(names(&file, &[f + 8]).into_values().collect::<Vec<_>>(), ["f"]);
    assert!(names(&file, &[f + 24]).is_empty(), "that is in what begins behind it");
}

/// A coroutine's outermost return address is the first byte of a function that was never called.
#[test]
fn a_return_address_that_nobody_called_is_in_the_function_that_begins_there() {
    if !truth::have(&["gcc", "nm"]) {
        return;
    }
    let folder = Folder::new("return-to-start");
    let function = |name: &str| {
        format!(".globl {name}\n.type {name}, @function\n{name}: .skip 16, 0x90\n.size {name}, .-{name}\n")
    };
    let nameless = ".cfi_startproc\n.skip 16, 0x90\n.cfi_endproc\n";
    let text =
        [".text\n", &function("ends_in_call"), &function("next"), ".skip 16, 0x90\n", &function("coroutine")];
    let text = text.concat() + nameless + &function("behind_nameless");
    let (file, symbols) = assembled(&folder, &text);
    let start = |name: &str| symbols[name];
    let name = |address: u64, is_return: bool| {
        let (mut profile, _) = truth::profile(&file, None, &[]);
        let dso = Some(Id::from_index(0));
        profile.frames.add(plumb_profile::Frame {
            kind: plumb_profile::FrameKind::User,
            dso,
            address: Address(address),
            is_return,
            found: plumb_profile::Found::Sampled,
        });
        truth::resolve(&mut profile, &Options { lines: false, ..Options::default() });
        let named = profile.symbols.functions.rows().first().map(|function| function.name);
        named.map_or(String::new(), |name| profile.strings.get(name).to_owned())
    };
    assert_eq!(name(start("coroutine"), true), "coroutine");
    assert_eq!(name(start("coroutine") - 1, false), "", "that byte ran: it is not the function behind it");
    assert_eq!(name(start("next"), true), "ends_in_call", "a call that never returns may end a function");
    assert_eq!(name(start("behind_nameless"), true), "", "likewise of one without a symbol");
}

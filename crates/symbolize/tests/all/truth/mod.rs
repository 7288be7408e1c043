//! Test programs built with the system's compiler, and binutils' results for them.

#![allow(dead_code)] // Each test program uses a part.
#![allow(clippy::unwrap_used)] // A test that can go no further fails.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plumb_fixtures::{Requirement, needs_command};
use plumb_profile::{Address, AddressSpace, BuildId, Dso, DsoId, DsoKind, Found, Frame, FrameKind, Profile};
use plumb_symbolize::{Binary, Options, Summary, symbolize};

/// One function at an address: linkage name, file and line.
pub type Chain = Vec<(String, String, u32)>;

/// A directory that is removed at the end of the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plumb-symbolize-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether the tools are installed; prints which are missing, so that a skipped test is visible.
pub fn have(tools: &[&str]) -> bool {
    tools.iter().all(|tool| {
        let requirement = match *tool {
            "cc" | "c++" | "gcc" | "g++" => Requirement::Cc,
            "addr2line" | "nm" | "objcopy" | "objdump" | "readelf" | "strip" | "as" | "ld" => {
                Requirement::Binutils
            }
            _ => Requirement::Tools,
        };
        needs_command(requirement, tool)
    })
}

/// Runs a tool that must succeed, and returns its output.
pub fn run(tool: &str, arguments: &[&str]) -> String {
    let output =
        Command::new(tool).args(arguments).output().unwrap_or_else(|error| panic!("{tool}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Builds the program of two files as `name` in `folder`.
pub fn build(folder: &Folder, name: &str, flags: &[&str]) -> PathBuf {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let out = folder.join(name);
    let mut arguments = vec!["-std=c++17", "-Wl,--build-id", "-o", out.to_str().unwrap()];
    arguments.extend(flags);
    let sources = [programs.join("inline.cpp"), programs.join("other.cpp")];
    arguments.extend(sources.iter().map(|source| source.to_str().unwrap()));
    run("g++", &arguments);
    out
}

/// Returns the build id of a file, from readelf.
pub fn build_id(file: &Path) -> Option<BuildId> {
    let notes = run("readelf", &["-nW", file.to_str().unwrap()]);
    let hex = notes.lines().find_map(|line| Some(line.split_once("Build ID: ")?.1))?;
    BuildId::from_hex(hex.trim())
}

/// Returns every address of `.text`.
pub fn text(file: &Path) -> Vec<u64> {
    let sections = run("readelf", &["-SW", file.to_str().unwrap()]);
    let line = sections.lines().find(|line| line.contains(" .text ")).unwrap();
    let fields: Vec<&str> = line.split(" .text ").nth(1).unwrap().split_whitespace().collect();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    (number(fields[1])..number(fields[1]) + number(fields[3])).collect()
}

/// Returns the address ranges of functions, from nm. One without a size extends to the next.
pub fn functions(file: &Path) -> Vec<std::ops::Range<u64>> {
    let list = run("nm", &["-nS", "--defined-only", file.to_str().unwrap()]);
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut rows: Vec<(u64, u64)> = Vec::new();
    for line in list.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields.iter().any(|field| matches!(*field, "t" | "T" | "w" | "W")) {
            let size = if fields.len() == 4 { number(fields[1]).unwrap() } else { 0 };
            rows.push((number(fields[0]).unwrap(), size));
        }
    }
    let end = |index: usize| match rows[index] {
        (start, 0) => rows[index..].iter().map(|row| row.0).find(|&next| next > start).unwrap_or(start),
        (start, size) => start + size,
    };
    (0..rows.len()).map(|index| rows[index].0..end(index)).collect()
}

/// Returns the address ranges of all functions with these names, from nm.
pub fn functions_called(file: &Path, names: &[&str]) -> Vec<std::ops::Range<u64>> {
    let list = run("nm", &["-nS", "--defined-only", file.to_str().unwrap()]);
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let rows = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows = rows.filter(|fields| fields.len() == 4 && names.contains(&fields[3]));
    rows.map(|fields| (number(fields[0]).unwrap(), number(fields[1]).unwrap()))
        .map(|(start, size)| start..start + size)
        .collect()
}

/// Returns the output of `addr2line -fi` for addresses.
pub fn addr2line(file: &Path, addresses: &[u64]) -> BTreeMap<u64, Chain> {
    let mut child = Command::new("addr2line")
        .args(["-afie", file.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let list: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(list.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let mut found: BTreeMap<u64, Chain> = BTreeMap::new();
    let mut at = 0;
    let mut lines = std::str::from_utf8(&output.stdout).unwrap().lines();
    while let Some(line) = lines.next() {
        if let Some(address) = line.strip_prefix("0x") {
            at = u64::from_str_radix(address, 16).unwrap();
            found.insert(at, Vec::new());
            continue;
        }
        let place = lines.next().unwrap();
        let place = place.split(" (discriminator").next().unwrap();
        let (file, number) = place.rsplit_once(':').unwrap();
        let known = |text: &str| if text.starts_with("??") { String::new() } else { text.to_owned() };
        found.get_mut(&at).unwrap().push((known(line), known(file), number.parse().unwrap_or(0)));
    }
    found
}

/// Creates a profile with one frame for each address of a file.
pub fn profile(path: &Path, build_id: Option<BuildId>, addresses: &[u64]) -> (Profile, DsoId) {
    let mut profile = Profile::default();
    let path = profile.strings.add(path.to_str().unwrap());
    let dso = Dso { path, build_id, kind: DsoKind::File, addresses: AddressSpace::Svma };
    with_dso(profile, dso, addresses)
}

/// Adds a DSO with one frame for each address to a profile.
pub fn with_dso(mut profile: Profile, dso: Dso, addresses: &[u64]) -> (Profile, DsoId) {
    let kind = if dso.kind.is_kernel() { FrameKind::Kernel } else { FrameKind::User };
    let dso = profile.dsos.add(dso);
    for &address in addresses {
        let address = Address(address);
        profile.frames.add(Frame { kind, dso: Some(dso), address, is_return: false, found: Found::Sampled });
    }
    (profile, dso)
}

/// Returns options that access nothing outside the test.
pub fn options(folder: &Folder) -> Options {
    Options { debug_roots: vec![folder.join("debug")], cache: None, ..Options::default() }
}

/// Symbolizes a profile, and returns the call chain of each address.
pub fn resolve(profile: &mut Profile, options: &Options) -> (BTreeMap<u64, Chain>, Summary) {
    let summary = symbolize(profile, options, &mut |_| {});
    let text = |id| profile.strings.get(id).to_owned();
    let mut found = BTreeMap::new();
    for (id, frame) in profile.frames.iter() {
        let lines = profile.symbols.of(id);
        for (index, line) in lines.iter().enumerate() {
            assert_eq!(line.inlined, index + 1 < lines.len(), "all but the last are inlined");
        }
        let chain = lines.iter().map(|line| {
            let function = &profile.symbols.functions[line.function];
            let name = if function.linkage_name == profile.strings.empty() {
                function.name
            } else {
                function.linkage_name
            };
            (text(name), text(line.file), line.line)
        });
        found.insert(frame.address.0, chain.collect());
    }
    (found, summary)
}

/// Returns the source locations of the functions' code at `ranges`, with readable names: each function on its own.
pub fn resolve_code(file: &Path, options: &Options, ranges: &[std::ops::Range<u64>]) -> BTreeMap<u64, Chain> {
    let (profile, dso) = profile(file, build_id(file), &[]);
    let mut found = BTreeMap::new();
    for range in ranges {
        let addresses: Vec<Address> = range.clone().map(Address).collect();
        let mut binary = Binary::open(&profile, dso, options).unwrap();
        let (places, missing) = binary.places(&addresses);
        assert_eq!(missing, []);
        for (address, places) in range.clone().zip(places) {
            let chain = places.into_iter().map(|place| (place.function, place.file, place.line));
            found.insert(address, chain.collect());
        }
    }
    found
}

//! Functions, inlined calls and lines of a whole program, compared with binutils' addr2line at every address.

use crate::truth;
use crate::truth::{Chain, Folder};

/// Strips what GCC appends to the names of clones: the symbol has it, DWARF does not.
fn base(name: &str) -> &str {
    let clones = [".cold", ".isra.", ".part.", ".constprop.", ".lto_priv."];
    clones.iter().filter_map(|clone| name.find(clone)).min().map_or(name, |at| &name[..at])
}

/// Normalizes `.` and `..` in a path.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty()) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether two names are of one function. GCC gives functions with internal linkage no linkage name in DWARF, so
/// addr2line has their bare name where the symbol table has the mangled one. The complete and the base variant of
/// constructors and destructors often share code, under two symbols.
fn same_name(ours: &str, theirs: &str) -> bool {
    let plain = theirs.split('<').next().unwrap_or_default();
    let mangled = if plain == "operator()" { "cl".into() } else { format!("{}{plain}", plain.len()) };
    let one = |name: &str| base(name).replace("D2Ev", "D1Ev").replace("C2E", "C1E").replace("C2I", "C1I");
    one(ours) == one(theirs) || ours.starts_with("_Z") && !theirs.starts_with("_Z") && ours.contains(&mangled)
}

/// Whether two answers are equal except for intended differences of this crate:
/// - An address in a gap between functions has no name; addr2line gives it the previous function.
/// - The outlined function has its symbol's name (`main.cold`); addr2line has DWARF's.
/// - For an inlined function without a linkage name in DWARF, addr2line 2.40 prints the *symbol* at the address,
///   which is the name of the outermost function.
/// - A missing line means no file either; addr2line has the name of the object's source from the symbol table.
/// - addr2line takes the wrong row of the file table for some units, which shows in a line that the file does not have, in
///   a function of the header said to be in `other.cpp`, or
///   in `<artificial>` with `-flto`. (llvm-symbolizer agrees with this crate there.)
/// - Paths are absolute if the compiler recorded its directory.
fn same(ours: &Chain, theirs: &Chain) -> bool {
    if ours.is_empty() {
        return true; // The caller checks that it is a gap.
    }
    let symbol = ours.last().map_or("", |outermost| outermost.0.as_str());
    let same_place = |(ours, theirs): (&(String, String, u32), &(String, String, u32))| {
        let is_symbol = same_name(symbol, &theirs.0) && !ours.0.starts_with("_Z");
        let same_file = clean(&ours.1) == clean(&theirs.1) || ours.2 == 0 || is_mixed_up(theirs);
        (same_name(&ours.0, &theirs.0) || is_symbol) && same_file && ours.2 == theirs.2
    };
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(same_place)
}

fn is_mixed_up((name, file, line): &(String, String, u32)) -> bool {
    let in_header = ["3add", "5mixed", "7rotated"].iter().any(|function| name.contains(function));
    file.ends_with("<artificial>")
        || file.ends_with("programs/inline.cpp") && *line > 70
        || file.ends_with("programs/other.cpp") && in_header
}

fn compare(name: &str, flags: &[&str]) {
    compare_with(name, flags, flags);
}

/// Compares the results for a program built with `flags` with those of addr2line for the same code built in a way that it can read.
fn compare_with(name: &str, flags: &[&str], readable: &[&str]) {
    if !truth::have(&["g++", "addr2line", "readelf"]) {
        return;
    }
    let folder = Folder::new(name);
    let file = truth::build(&folder, name, flags);
    let addresses = truth::text(&file);
    let reference = truth::build(&folder, "reference", readable);
    assert_eq!(truth::text(&reference), addresses, "the same code");
    let theirs = truth::addr2line(&reference, &addresses);
    let (mut profile, _) = truth::profile(&file, truth::build_id(&file), &addresses);
    let (ours, summary) = truth::resolve(&mut profile, &truth::options(&folder));
    let functions = truth::functions(&file);
    let mut inlined = 0;
    let mut different = Vec::new();
    for address in addresses {
        inlined += ours[&address].len().saturating_sub(1);
        let is_gap = !functions.iter().any(|function| function.contains(&address));
        assert_eq!(ours[&address].is_empty(), is_gap, "{address:#x}: {:?}", ours[&address]);
        if !same(&ours[&address], &theirs[&address]) {
            different.push(address);
        }
    }
    for address in different.iter().take(3) {
        eprintln!("{address:#x}\n  ours   {:?}\n  theirs {:?}", ours[address], theirs[address]);
    }
    eprintln!("{name}: {} of {} differ; {:?}", different.len(), ours.len(), summary.dsos[0].missing);
    assert!(inlined > 1000 || flags.contains(&"-O0"), "{inlined} inlined calls are too few to be a test");
    assert!(different.is_empty());
}

#[test]
fn optimised_dwarf_5() {
    compare("o2-dwarf5", &["-O2", "-g", "-gdwarf-5"]);
}

#[test]
fn optimised_dwarf_4_with_types_apart() {
    compare(
        "o3-dwarf4",
        &["-O3", "-g", "-gdwarf-4", "-fdebug-types-section", "-ffunction-sections", "-Wl,--gc-sections"],
    );
}

#[test]
fn not_optimised() {
    compare("o0", &["-O0", "-g"]);
}

#[test]
fn compressed_with_zlib() {
    compare("gz", &["-O2", "-g", "-gz=zlib"]);
}

#[test]
fn link_time_optimised() {
    compare("lto", &["-O2", "-g", "-flto=1"]);
}

#[test]
fn split_into_dwo_files() {
    // addr2line 2.40 does not read these.
    compare_with("split", &["-O2", "-g", "-gsplit-dwarf"], &["-O2", "-g"]);
}

#[test]
fn fixed_address() {
    compare("no-pie", &["-O2", "-g", "-no-pie", "-fno-pie"]);
}

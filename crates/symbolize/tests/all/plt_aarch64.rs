//! Holds the names of procedure linkage table stubs in aarch64 files against GNU objdump's.

#![allow(clippy::unwrap_used)] // A test that can go no further fails.

use crate::truth;
use std::path::Path;
use std::process::Command;

use crate::truth::{Folder, options, resolve};
use plumb_fixtures::{Requirement, skip};
use plumb_profile::{Address, InstructionSet};
use plumb_symbolize::Binary;

const PROGRAM: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
    int main(int count, char **words) { char *copy = strdup(words[0]); qsort(copy, strlen(copy), 1, (void *)strcmp); puts(copy);\n\
    printf(\"%d %d\", getpid(), atoi(words[count - 1])); free(copy); return 0; }\n";

/// Stubs as objdump names them, with the address after the last byte.
fn stubs(file: &Path) -> Option<Vec<(u64, u64, String)>> {
    let output =
        Command::new("aarch64-linux-gnu-objdump").args(["-d", "-j", ".plt"]).arg(file).output().ok()?;
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut stubs: Vec<(u64, u64, String)> = Vec::new();
    let mut jumps = false;
    for line in listing.lines() {
        let heading = line.strip_suffix(">:").and_then(|line| line.split_once(" <"));
        if let Some((address, name)) = heading {
            // The table ends with a trampoline for descriptors of thread-local variables, in which objdump sees stubs of these.
            if !std::mem::take(&mut jumps) {
                stubs.pop();
            }
            let start = u64::from_str_radix(address, 16).unwrap();
            stubs.push((start, start, name.to_owned()));
        } else if let (Some((address, _)), Some(last)) = (line.split_once(":\t"), stubs.last_mut()) {
            last.1 = u64::from_str_radix(address.trim(), 16).unwrap() + 4;
            jumps |= line.contains("br\tx17");
        }
    }
    stubs.truncate(stubs.len() - usize::from(!jumps));
    stubs.retain(|(.., name)| name.ends_with("@plt"));
    Some(stubs)
}

/// Compares the names at the first and the last instruction of each stub; returns their number.
fn compare(file: &Path, folder: &Folder) -> Option<usize> {
    let stubs = stubs(file)?;
    let addresses: Vec<u64> = stubs.iter().flat_map(|(start, end, _)| [*start, *end - 4]).collect();
    let (mut profile, _) = truth::profile(file, None, &addresses);
    let (found, _) = resolve(&mut profile, &options(folder));
    for (start, end, name) in &stubs {
        for address in [start, &(end - 4)] {
            let named = found[address].first().map(|first| first.0.as_str());
            assert_eq!(named, Some(name.as_str()), "{}: {address:#x}", file.display());
        }
    }
    Some(stubs.len())
}

#[test]
fn stubs_of_programs_are_named() {
    let folder = Folder::new("plt-aarch64");
    std::fs::write(folder.join("program.c"), PROGRAM).unwrap();
    let protected = ["-mbranch-protection=standard", "-Wl,-z,force-bti", "-no-pie"];
    let signed = ["-mbranch-protection=standard", "-Wl,-z,pac-plt", "-Wl,-z,force-bti", "-no-pie"];
    for flags in [&[][..], &["-no-pie"], &protected, &["-Wl,-z,pac-plt"], &signed] {
        let file = folder.join("program");
        let mut gcc = Command::new("aarch64-linux-gnu-gcc");
        gcc.args(["-O2", "-Wl,-z,lazy"]).args(flags).arg("-o").arg(&file).arg(folder.join("program.c"));
        let Ok(output) = gcc.output() else {
            skip(Requirement::Cross, "aarch64-linux-gnu-gcc is not on this machine");
            return;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let count = compare(&file, &folder).unwrap();
        assert!(count >= 6, "{flags:?}: {count}");
    }
}

#[test]
fn stubs_of_libraries_are_named() {
    let folder = Folder::new("plt-aarch64-libraries");
    for name in ["libm.so.6", "libc.so.6", "libstdc++.so.6"] {
        let file = Path::new("/usr/aarch64-linux-gnu/lib").join(name);
        let count = if file.exists() { compare(&file, &folder) } else { None };
        let Some(count) = count else {
            skip(
                Requirement::Cross,
                format_args!("{} or objdump for it is not on this machine", file.display()),
            );
            return;
        };
        println!("{name}: {count} stubs");
        assert!(count > 3, "{name}: {count}");
    }
}

/// Code and the names of its targets are read as those of this machine's files.
#[test]
fn code_of_another_machine_is_read_with_its_instruction_set() {
    let folder = Folder::new("code-aarch64");
    std::fs::write(folder.join("program.c"), PROGRAM).unwrap();
    let file = folder.join("program");
    let mut gcc = Command::new("aarch64-linux-gnu-gcc");
    let Ok(output) = gcc.args(["-O2", "-o"]).arg(&file).arg(folder.join("program.c")).output() else {
        skip(Requirement::Cross, "aarch64-linux-gnu-gcc is not on this machine");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let symbols = truth::run("aarch64-linux-gnu-nm", &["-S", file.to_str().unwrap()]);
    let main = symbols.lines().find(|line| line.ends_with(" T main")).unwrap();
    let mut numbers = main.split(' ').map(|number| u64::from_str_radix(number, 16).unwrap_or(0));
    let (start, size) = (numbers.next().unwrap(), numbers.next().unwrap());
    let (profile, dso) = truth::profile(&file, None, &[]);
    // A symbol without a size marks where code begins, at the same address.
    let symbols = truth::run("aarch64-linux-gnu-nm", &["--special-syms", file.to_str().unwrap()]);
    assert!(symbols.contains(" t $x"), "{symbols}");
    let mut binary = Binary::open(&profile, dso, &options(&folder)).unwrap();
    let code = binary.code(Address(start + 4)).unwrap();
    assert_eq!((code.start, code.bytes.len() as u64), (Address(start), size));
    assert_eq!(code.set, InstructionSet::Aarch64);
    let stubs = stubs(&file).unwrap();
    let (address, _, name) = stubs.iter().find(|(.., name)| name == "qsort@plt").unwrap();
    assert_eq!(binary.name(Address(*address)).as_ref(), Some(name));
}

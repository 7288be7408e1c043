//! The code of functions: its bytes, the names it refers to, and the errors if it is not available. Compared with nm, objdump and the file
//! itself.

#![allow(clippy::unwrap_used)] // A test that can go no further fails.

use crate::truth;
use std::fs;
use std::path::{Path, PathBuf};

use crate::truth::{Folder, addr2line, build_id, functions_called, have, options, profile, run};
use plumb_profile::{Address, AddressSpace, BuildId, Dso, DsoId, DsoKind, InstructionSet, Profile};
use plumb_symbolize::{Binary, Missing, NoCode, Options};

const TOOLS: [&str; 4] = ["g++", "nm", "objdump", "readelf"];

fn program(name: &str, flags: &[&str]) -> Option<(Folder, PathBuf)> {
    if cfg!(not(target_arch = "x86_64")) || !have(&TOOLS) {
        return None;
    }
    let folder = Folder::new(name);
    let file = truth::build(&folder, "program", flags);
    Some((folder, file))
}

/// Returns the instructions of a function from objdump: addresses and texts.
fn disassembled(file: &Path, function: &str) -> Vec<(u64, String)> {
    let flag = format!("--disassemble={function}");
    let text = run("objdump", &["-d", "--no-show-raw-insn", &flag, file.to_str().unwrap()]);
    let row = |line: &str| {
        let (address, text) = line.split_once(":\t")?;
        Some((u64::from_str_radix(address.trim(), 16).ok()?, text.to_owned()))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn bytes_and_bounds_are_the_files() {
    let Some((folder, file)) = program("code-bytes", &["-O2", "-g"]) else { return };
    let (profile, dso) = profile(&file, build_id(&file), &[]);
    let mut binary = Binary::open(&profile, dso, &options(&folder)).unwrap();
    let range = functions_called(&file, &["main"])[0].clone();
    let code = binary.code(Address(range.start + 1)).unwrap();
    assert_eq!((code.start, code.set), (Address(range.start), InstructionSet::X86_64));
    assert_eq!(code.bytes.len() as u64, range.end - range.start);
    let dump = run("objdump", &["-d", "--disassemble=main", "-z", file.to_str().unwrap()]);
    let bytes: Vec<u8> = dump
        .lines()
        .filter_map(|line| line.split('\t').nth(1))
        .flat_map(|bytes| bytes.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()))
        .collect();
    assert_eq!(code.bytes, bytes);
    assert_eq!(binary.path(), file);
    assert_eq!(binary.code(Address(1)), Err(NoCode::NoBounds(Address(1))));
}

#[test]
fn unwind_information_bounds_functions_without_symbols() {
    let Some((folder, file)) = program("code-stripped", &["-O2", "-g"]) else { return };
    let range = functions_called(&file, &["main"])[0].clone();
    run("strip", &["-s", file.to_str().unwrap()]);
    let (profile, dso) = profile(&file, build_id(&file), &[]);
    let mut binary = Binary::open(&profile, dso, &options(&folder)).unwrap();
    assert_eq!(binary.name(Address(range.start)), None, "there is no symbol");
    for address in [range.start, range.end - 1] {
        let code = binary.code(Address(address)).unwrap();
        assert_eq!((code.start.0, code.bytes.len() as u64), (range.start, range.end - range.start));
    }
    run("objcopy", &["--remove-section=.eh_frame", file.to_str().unwrap()]);
    let mut binary = Binary::open(&profile, dso, &options(&folder)).unwrap();
    let error = binary.code(Address(range.start)).unwrap_err();
    assert!(error.to_string().contains("neither a symbol nor unwind information"), "{error}");
}

#[test]
fn calls_and_variables_are_named_as_objdump_does() {
    for (name, flags) in [("code-plt", &["-O2", "-g"][..]), ("code-got", &["-O2", "-g", "-fno-plt"])] {
        let Some((folder, file)) = program(name, flags) else { return };
        let (profile, dso) = profile(&file, build_id(&file), &[]);
        let mut binary = Binary::open(&profile, dso, &options(&folder)).unwrap();
        let mut compared = 0;
        for (_, text) in disassembled(&file, "main") {
            // `call 401030 <printf@plt>`, `call *0x2fe2(%rip)  # 403ff0 <printf@GLIBC_2.2.5>`
            let Some((before, theirs)) = text.split_once('<') else { continue };
            let address = before.split_whitespace().last().unwrap();
            let theirs = theirs.split('>').next().unwrap();
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if !text.starts_with("call") {
                continue;
            }
            let ours = binary.name(Address(address)).unwrap_or_else(|| panic!("no name for {text}"));
            let demangled = run("c++filt", &["-p", theirs.split('@').next().unwrap()]);
            let ours = ours.split('@').next().unwrap().to_owned();
            assert!(demangled.trim() == ours || theirs.starts_with(&ours), "{text}: {ours}");
            compared += 1;
        }
        assert!(compared > 3, "{compared}");
    }
}

#[test]
fn places_are_those_of_addr2line() {
    let Some((folder, file)) = program("code-places", &["-O2", "-g"]) else { return };
    let (profile, dso) = profile(&file, build_id(&file), &[]);
    let addresses: Vec<u64> = disassembled(&file, "main").into_iter().map(|(address, _)| address).collect();
    let wanted: Vec<Address> = addresses.iter().copied().map(Address).collect();
    let mut binary = Binary::open(&profile, dso, &options(&folder)).unwrap();
    let (found, missing) = binary.places(&wanted);
    assert_eq!(missing, []);
    let theirs = addr2line(&file, &addresses);
    for (address, places) in addresses.iter().zip(found) {
        let ours: Vec<(String, u32)> = places.iter().map(|place| (place.file.clone(), place.line)).collect();
        let theirs: Vec<(String, u32)> =
            theirs[address].iter().map(|(_, file, line)| (file.clone(), *line)).collect();
        assert_eq!(ours, theirs, "{address:#x}");
    }
}

#[test]
fn what_is_not_the_recorded_file_is_not_used() {
    let Some((folder, file)) = program("code-other", &["-O2", "-g"]) else { return };
    let open = |profile: &Profile, dso: DsoId| Binary::open(profile, dso, &options(&folder)).err();
    let (other, dso) = profile(&file, BuildId::new(&[1, 2, 3]), &[]);
    let replaced = NoCode::File(vec![Missing::Replaced { path: file.clone() }]);
    assert_eq!(open(&other, dso), Some(replaced.clone()));
    assert!(replaced.to_string().contains("record again"), "{replaced}");
    // The debug file has names and lines, but no code.
    let id = build_id(&file).unwrap();
    let hex = id.to_string();
    let debug = folder.join("debug/.build-id").join(&hex[..2]);
    fs::create_dir_all(&debug).unwrap();
    let debug = debug.join(format!("{}.debug", &hex[2..]));
    run("objcopy", &["--only-keep-debug", file.to_str().unwrap(), debug.to_str().unwrap()]);
    fs::remove_file(&file).unwrap();
    let (gone, dso) = profile(&file, Some(id), &[]);
    let error = open(&gone, dso).unwrap().to_string();
    assert!(error.contains("no such file") && error.contains("--symfs"), "{error}");
}

#[test]
fn code_of_another_processor_is_refused_by_name() {
    let Some((folder, file)) = program("code-machine", &["-O2"]) else { return };
    // Another processor number in the header, otherwise unchanged.
    let mut bytes = fs::read(&file).unwrap();
    bytes[18..20].copy_from_slice(&243_u16.to_le_bytes());
    fs::write(&file, bytes).unwrap();
    let (profile, dso) = profile(&file, build_id(&file), &[]);
    let error = Binary::open(&profile, dso, &options(&folder)).err();
    assert_eq!(error, Some(NoCode::Machine("a processor with ELF's number 243".into())));
}

fn of_kind(kind: DsoKind, addresses: AddressSpace) -> (Profile, DsoId) {
    let mut profile = Profile::default();
    let path = profile.strings.add("[what]");
    truth::with_dso(profile, Dso { path, build_id: None, kind, addresses }, &[])
}

#[test]
fn what_has_no_code_says_so() {
    let folder = Folder::new("code-none");
    let open = |(profile, dso): (Profile, DsoId)| Binary::open(&profile, dso, &options(&folder)).err();
    assert_eq!(open(of_kind(DsoKind::Script, AddressSpace::Line)), Some(NoCode::Interpreted));
    let compiled = of_kind(DsoKind::Anonymous { pid: 1 }, AddressSpace::Avma);
    assert_eq!(open(compiled), Some(NoCode::CompiledAtRunTime));
    // Offsets are what is known of a file that was not there.
    let absent = NoCode::File(vec![Missing::Absent { path: "/[what]".into() }]);
    assert_eq!(open(of_kind(DsoKind::File, AddressSpace::FileOffset)), Some(absent));
}

#[test]
fn the_vdso_is_read_from_memory() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let folder = Folder::new("code-vdso");
    let (profile, dso) = of_kind(DsoKind::Vdso, AddressSpace::Svma);
    let mut binary = Binary::open(&profile, dso, &options(&folder)).unwrap();
    // All functions of the vdso are within its few pages; the first one with a symbol is found by trying.
    let named = |address| {
        let code = binary.code(Address(address)).ok()?;
        Some((binary.name(code.start)?, code))
    };
    let (name, code) = (0..0x4000).find_map(named).unwrap();
    assert!(!code.bytes.is_empty());
    assert!(!name.contains('+'), "{name}");
}

#[test]
fn the_kernels_code_is_read_from_its_memory() {
    let Some((folder, _)) = program("code-kernel", &["-O2"]) else { return };
    // A file in the format of /proc/kcore: segments with the addresses at run time.
    let source = folder.join("kernel.s");
    fs::write(&source, ".globl _start\n_start: nop\nnop\nret\nsecond: mov %rax,%rbx\nret\n").unwrap();
    let memory = folder.join("kcore");
    let flags = ["-nostdlib", "-static", "-Wl,-Ttext=0xffffffff81000000", "-Wl,--build-id=none", "-o"];
    run("gcc", &[&flags[..], &[memory.to_str().unwrap(), source.to_str().unwrap()]].concat());
    let kallsyms = folder.join("kallsyms");
    fs::write(&kallsyms, "ffffffff81000000 T first\nffffffff81000003 t second\nffffffff81000007 T third\n")
        .unwrap();
    let options = Options { kcore: memory.clone(), kallsyms, ..options(&folder) };
    let (profile, dso) = of_kind(DsoKind::Kernel, AddressSpace::Avma);
    let mut binary = Binary::open(&profile, dso, &options).unwrap();
    let code = binary.code(Address(0xffff_ffff_8100_0001)).unwrap();
    assert_eq!((code.start.0, &code.bytes[..]), (0xffff_ffff_8100_0000, &[0x90, 0x90, 0xc3][..]));
    let code = binary.code(Address(0xffff_ffff_8100_0003)).unwrap();
    assert_eq!(code.bytes, [0x48, 0x89, 0xc3, 0xc3]);
    assert_eq!(binary.name(Address(0xffff_ffff_8100_0004)).as_deref(), Some("second+0x1"));
    fs::remove_file(memory).unwrap();
    let error = Binary::open(&profile, dso, &options).err().unwrap().to_string();
    assert!(error.contains("kernel's code can't be read") && error.contains("kcore"), "{error}");
}

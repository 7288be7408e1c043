//! The ELF reader, compared with `readelf` on the test program itself.

use std::io::Cursor;
use std::process::Command;

use plumb_fixtures::{Requirement, skip};

use super::*;

fn ourselves() -> (std::path::PathBuf, Elf) {
    let exe = std::env::current_exe().unwrap();
    let elf = Elf::read(File::open(&exe).unwrap()).unwrap();
    (exe, elf)
}

/// Output of `readelf -W FLAG ourselves`, or `None` with a notice if readelf is missing.
fn readelf(flag: &str, exe: &std::path::Path) -> Option<String> {
    match Command::new("readelf").arg("-W").arg(flag).arg(exe).output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            skip(Requirement::Binutils, format_args!("readelf does not run: {error}"));
            None
        }
    }
}

#[test]
fn build_id_is_what_readelf_says() {
    let (exe, elf) = ourselves();
    let Some(notes) = readelf("-n", &exe) else { return };
    let said = notes.lines().find_map(|line| Some(line.split_once("Build ID: ")?.1.trim()));
    let ours = elf.build_id.map(|id| id.iter().map(|b| format!("{b:02x}")).collect::<String>());
    assert_eq!(ours.as_deref(), said);
}

#[test]
fn sections_are_where_readelf_says() {
    let (exe, elf) = ourselves();
    let sections = elf.unwind_sections(&File::open(&exe).unwrap());
    let Some(table) = readelf("-S", &exe) else { return };
    let address = |name: &str| {
        let line = table.lines().find(|line| line.split_whitespace().any(|word| word == name)).unwrap();
        let mut words = line.split_whitespace().skip_while(|&word| word != name);
        (u64::from_str_radix(words.nth(2).unwrap(), 16).unwrap(), words.nth(1).unwrap().to_owned())
    };
    let eh_frame = sections.eh_frame.unwrap();
    assert_eq!(eh_frame.address, address(".eh_frame").0);
    assert_eq!(format!("{:06x}", eh_frame.bytes.len()), address(".eh_frame").1);
    assert_eq!(sections.eh_frame_hdr.unwrap().address, address(".eh_frame_hdr").0);
    assert_eq!(sections.text, Some(address(".text").0));
}

#[test]
fn program_headers_do_without_section_headers() {
    let (exe, with) = ourselves();
    let mut image = std::fs::read(&exe).unwrap();
    image[40..48].fill(0); // e_shoff
    image[60..64].fill(0); // e_shnum, e_shstrndx
    let without = Elf::read(Cursor::new(&image)).unwrap();
    assert_eq!(without.build_id, with.build_id);
    let (with, without) = (with.unwind_sections_in(&image), without.unwind_sections_in(&image));
    assert_eq!(without.eh_frame_hdr, with.eh_frame_hdr);
    let (with, without) = (with.eh_frame.unwrap(), without.eh_frame.unwrap());
    assert_eq!(without.address, with.address);
    assert!(without.bytes.starts_with(&with.bytes), "only what follows in the segment is more");
}

#[test]
fn code_maps_to_its_stated_address() {
    let (exe, elf) = ourselves();
    let here = code_maps_to_its_stated_address as *const () as usize as u64;
    let text = std::fs::read("/proc/self/maps").unwrap();
    let line = crate::parse_maps(&text).find(|line| (line.start..line.end).contains(&here)).unwrap();
    let stated = elf.stated(FileOffset(line.offset + here - line.start)).unwrap();
    let name = "code_maps_to_its_stated_address";
    let Ok(nm) = Command::new("nm").arg(&exe).output() else {
        skip(Requirement::Binutils, "nm does not run");
        return;
    };
    let symbols = String::from_utf8_lossy(&nm.stdout).into_owned();
    assert!(
        symbols.lines().any(|line| line.contains(name) && line.starts_with(&format!("{stated:016x}"))),
        "{stated:x}"
    );
}

#[test]
fn the_compiler_of_this_program_is_named_in_it() {
    let (exe, elf) = ourselves();
    let compilers = elf.compilers(&File::open(exe).unwrap());
    assert!(compilers.lines().any(|line| line.starts_with("rustc ")), "{compilers:?}");
}

#[test]
fn vdso_is_readable() {
    let Some(image) = crate::vdso() else {
        skip(Requirement::Files, "this kernel maps no vdso");
        return;
    };
    let elf = Elf::read(Cursor::new(&image)).unwrap();
    assert!(elf.is_64);
    assert!(elf.build_id.is_some());
    assert!(elf.unwind_sections_in(&image).eh_frame.is_some());
}

#[test]
fn cut_and_damaged_files_are_errors_or_partial() {
    let image = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(Elf::read(Cursor::new(b"#!/bin/sh\n")), Err(ElfError::NotElf));
    for length in [4, 5, 63, 64, 100, 500, 4096, image.len() / 2] {
        if let Ok(elf) = Elf::read(Cursor::new(&image[..length])) {
            elf.unwind_sections_in(&image[..length]);
        }
    }
    let mut damaged = image[..1024].to_vec();
    for at in 0..damaged.len() {
        let old = damaged[at];
        damaged[at] = 0xff;
        if let Ok(elf) = Elf::read(Cursor::new(&damaged)) {
            elf.unwind_sections_in(&damaged);
            elf.stated(FileOffset(u64::MAX));
        }
        damaged[at] = old;
    }
}

#[test]
fn a_build_id_comes_after_other_notes_or_not_at_all() {
    let note = |kind: u32, size: u32, description: &[u8]| {
        [&4_u32.to_le_bytes()[..], &size.to_le_bytes(), &kind.to_le_bytes(), b"GNU\0", description].concat()
    };
    let notes = [note(1, 5, &[7; 8]), note(3, 6, &[9; 6])].concat();
    assert_eq!(build_id_of_notes(&notes, Endianness::Little), Some(&[9; 6][..]));
    assert!((0..notes.len()).all(|end| build_id_of_notes(&notes[..end], Endianness::Little).is_none()));
    assert_eq!(build_id_of_notes(&note(1, u32::MAX, &[0; 64]), Endianness::Little), None);
    assert_eq!(build_id_of_notes(&notes, Endianness::Big), None);
}

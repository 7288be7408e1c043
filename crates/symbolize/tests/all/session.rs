//! Names found while a profile grows equal those found at its end, and the cache is used only while it is valid.

#![allow(clippy::unwrap_used)] // A test that can go no further fails.

use crate::truth;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;

use crate::truth::{Folder, build_id, have, options};
use plumb_profile::{Address, AddressSpace, Dso, DsoId, DsoKind, Found, Frame, FrameKind, Profile};
use plumb_symbolize::{Missing, Options, Session, Summary, make_readable, symbolize};

fn add(profile: &mut Profile, dso: DsoId, addresses: &[u64]) {
    for &address in addresses {
        let (kind, address, found) = (FrameKind::User, Address(address), Found::Sampled);
        profile.frames.add(Frame { kind, dso: Some(dso), address, is_return: false, found });
    }
}

/// Returns everything that a profile says about its frames, as text.
fn said(profile: &Profile) -> Vec<String> {
    let text = |id| profile.strings.get(id);
    let line = |line: &plumb_profile::Line| {
        let function = &profile.symbols.functions[line.function];
        let (name, linkage_name) = (text(function.name), text(function.linkage_name));
        let (source, start) = (text(function.source_file), function.start);
        format!(
            "{name} {linkage_name} {start:?} {source} {}:{} {}\n",
            text(line.file),
            line.line,
            line.inlined
        )
    };
    profile.frames.iter().map(|(id, _)| profile.symbols.of(id).iter().map(line).collect()).collect()
}

/// Returns the counts and the missing parts in the summary of its only file.
fn counted(summary: &Summary) -> (usize, usize, usize, usize, Vec<Missing>) {
    let [dso] = &summary.dsos[..] else { panic!("one file: {summary:?}") };
    (dso.frames, dso.named, dso.lined, dso.inlined, dso.missing.clone())
}

#[test]
fn names_from_rounds_are_those_from_one_pass() {
    if !have(&["g++", "readelf"]) {
        return;
    }
    let folder = Folder::new("rounds");
    let ways = [
        ("plain", &["-O2", "-g"][..], true),
        ("sections", &["-O2", "-g", "-ffunction-sections"], true),
        ("split", &["-O2", "-g", "-gsplit-dwarf"], true),
        ("stripped", &["-O2", "-s"], true),
        // By then it is indistinguishable from another file, so it waits.
        ("anonymous", &["-O2", "-g"], false),
    ];
    for (name, flags, with_build_id) in ways {
        let file = truth::build(&folder, name, flags);
        let id = build_id(&file).filter(|_| with_build_id);
        let addresses = truth::text(&file);
        // The addresses in 7 parts, in an order unrelated to functions.
        let parts: Vec<Vec<u64>> =
            (0..7).map(|part| addresses.iter().copied().skip(part).step_by(7).collect()).collect();
        let (mut whole, _) = truth::profile(&file, id.clone(), &parts.concat());
        let all = symbolize(&mut whole, &options(&folder), &mut |_| {});
        let (mut growing, dso) = truth::profile(&file, id, &[]);
        let mut session = Session::begin(options(&folder));
        for part in &parts[..6] {
            add(&mut growing, dso, part);
            session.round(&growing);
        }
        add(&mut growing, dso, &parts[6]);
        session.close(&growing, HashMap::new());
        let grown = session.finish(&mut growing, &mut |_| {});
        make_readable(&mut growing);
        assert!(said(&whole).iter().any(|said| !said.is_empty()), "{name}");
        for (at, (one, other)) in said(&whole).into_iter().zip(said(&growing)).enumerate() {
            assert_eq!(one, other, "{name}, address {:#x}", whole.frames.rows()[at].address.0);
        }
        assert_eq!(counted(&all), counted(&grown), "{name}");
        assert!(growing.meta.symbolized);
    }
}

#[test]
fn who_looks_on_gets_the_same_names_before_the_end() {
    if !have(&["g++", "readelf"]) {
        return;
    }
    let folder = Folder::new("live");
    for (name, with_build_id) in [("known", true), ("anonymous", false)] {
        let file = truth::build(&folder, name, &["-O2", "-g"]);
        let id = build_id(&file).filter(|_| with_build_id);
        let addresses = truth::text(&file);
        let parts: Vec<Vec<u64>> =
            (0..3).map(|part| addresses.iter().copied().skip(part).step_by(3).collect()).collect();
        let (mut whole, _) = truth::profile(&file, id.clone(), &parts.concat());
        symbolize(&mut whole, &options(&folder), &mut |_| {});
        let (mut growing, dso) = truth::profile(&file, id, &[]);
        let mut session = Session::begin_live(options(&folder));
        let mut expected = Vec::new();
        for part in &parts {
            add(&mut growing, dso, part);
            session.round(&growing);
            expected.extend(said(&whole)[expected.len()..].iter().take(part.len()).cloned());
            // There is one file, so each round is answered at once.
            while !session.take(&mut growing) {
                std::thread::yield_now();
            }
            make_readable(&mut growing);
            assert_eq!(said(&growing), expected, "{name}");
        }
        // Known results are neither recomputed nor lost at the end.
        session.close(&growing, HashMap::new());
        session.finish(&mut growing, &mut |_| {});
        make_readable(&mut growing);
        assert_eq!(said(&growing), said(&whole), "{name}");
    }
}

#[test]
fn another_profile_of_the_same_files_gets_its_own_names() {
    if !have(&["g++", "readelf"]) {
        return;
    }
    let folder = Folder::new("renewed");
    let file = truth::build(&folder, "renewed", &["-O2", "-g"]);
    let addresses = truth::text(&file);
    let mut session = Session::begin_live(options(&folder));
    // Equal frame numbers have different addresses in each profile.
    for part in 0..4 {
        let part: Vec<u64> = addresses.iter().copied().skip(part).step_by(4).collect();
        let (mut whole, _) = truth::profile(&file, build_id(&file), &part);
        symbolize(&mut whole, &options(&folder), &mut |_| {});
        make_readable(&mut whole);
        let (mut taken, _) = truth::profile(&file, build_id(&file), &part);
        session.round(&taken);
        session.settle(std::time::Duration::from_secs(60));
        session.take(&mut taken);
        make_readable(&mut taken);
        assert_eq!(said(&taken), said(&whole));
        // Results that are never taken are dropped.
        let (late, _) = truth::profile(&file, build_id(&file), &addresses);
        session.renew();
        session.round(&late);
        session.renew();
    }
}

#[test]
fn a_file_that_is_gone_by_the_first_round_is_found_at_the_end() {
    if !have(&["g++", "readelf"]) {
        return;
    }
    let folder = Folder::new("gone");
    let file = truth::build(&folder, "program", &["-O2", "-g"]);
    let (mut profile, dso) = truth::profile(&file, build_id(&file), &truth::text(&file));
    let open = folder.join("still-open");
    fs::rename(&file, &open).unwrap();
    let mut session = Session::begin(options(&folder));
    session.round(&profile);
    session.close(&profile, HashMap::from([(dso, vec![open.clone()])]));
    let summary = session.finish(&mut profile, &mut |_| {});
    assert_eq!(summary.dsos[0].sources, [open]);
    assert!(summary.dsos[0].lined > 100, "{summary:?}");
    assert_eq!(summary.dsos[0].missing, []);
}

#[test]
fn debug_information_without_room_leaves_the_names_of_the_symbol_table() {
    if !have(&["g++", "readelf"]) {
        return;
    }
    let folder = Folder::new("no-room");
    let file = truth::build(&folder, "program", &["-O2", "-g"]);
    let (mut profile, _) = truth::profile(&file, build_id(&file), &truth::text(&file));
    let mut with_room = profile.clone();
    let room = |max_resident| Options { max_resident, ..options(&folder) };
    let summary = symbolize(&mut profile, &room(Some(1)), &mut |_| {});
    let all = symbolize(&mut with_room, &room(Some(u64::MAX)), &mut |_| {});
    let [Missing::NoRoom { bytes }] = summary.dsos[0].missing[..] else { panic!("{summary:?}") };
    assert!(bytes > 0 && summary.dsos[0].lined == 0, "{summary:?}");
    assert_eq!(summary.dsos[0].named, all.dsos[0].named, "each has a name");
    assert!(all.dsos[0].lined > 100 && with_room.meta.warnings.is_empty(), "{all:?}");
    let [warning] = &profile.meta.warnings[..] else { panic!("{:?}", profile.meta.warnings) };
    assert!(warning.starts_with(file.to_str().unwrap()) && warning.contains("--max-memory"), "{warning}");
}

/// Returns the kernel's names for addresses.
fn kernel_at(addresses: &[u64], options: &Options) -> (Vec<String>, Vec<Missing>) {
    let mut profile = Profile::default();
    let path = profile.strings.add("[kernel.kallsyms]");
    let dso = Dso { path, build_id: None, kind: DsoKind::Kernel, addresses: AddressSpace::Avma };
    let (mut profile, _) = truth::with_dso(profile, dso, addresses);
    let summary = symbolize(&mut profile, options, &mut |_| {});
    let said = said(&profile).iter().map(|said| said.split(' ').next().unwrap().to_owned()).collect();
    (said, summary.dsos[0].missing.clone())
}

fn kernel(options: &Options) -> (Vec<String>, Vec<Missing>) {
    kernel_at(&[0xffff_ffff_8100_0010], options)
}

#[test]
fn the_kernels_table_is_kept_until_a_module_is_loaded_or_the_machine_started() {
    let folder = Folder::new("kept");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    let boot = |n: u8| format!("{:08x}-0000-0000-0000-000000000000\n", n);
    file("proc/sys/kernel/random/boot_id", &boot(1));
    file("proc/modules", "video 4096 1 - Live 0xffffffffc0000000\n");
    let kallsyms = file("kallsyms", "ffffffff81000000 T first_name\nffffffff81000100 T next\n");
    let cache = folder.join("cache");
    fs::DirBuilder::new().mode(0o700).create(&cache).unwrap();
    let options = Options { kallsyms, proc: folder.join("proc"), cache: Some(cache), ..options(&folder) };
    let first = (vec!["first_name".to_owned()], vec![]);
    assert_eq!(kernel(&options), first);
    // The kernel does not change its names without a reboot, so a change shows which table is used.
    file("kallsyms", "ffffffff81000000 T second_name\nffffffff81000100 T next\n");
    assert_eq!(kernel(&options), first);
    // Changes of a module's users have no effect.
    file("proc/modules", "video 4096 3 drm,snd Live 0xffffffffc0000000\n");
    assert_eq!(kernel(&options), first);
    let second = (vec!["second_name".to_owned()], vec![]);
    file("proc/modules", "video 4096 3 drm,snd Live 0xffffffffc0000000\nnet 1 0 - Live 0xffffffffc0008000\n");
    assert_eq!(kernel(&options), second);
    file("proc/modules", "video 4096 1 - Live 0xffffffffc0000000\n");
    assert_eq!(kernel(&options), first);
    file("proc/sys/kernel/random/boot_id", &boot(2));
    assert_eq!(kernel(&options), second);
    // Code loaded later is looked up in the current table.
    file(
        "kallsyms",
        "ffffffff81000000 T second_name\nffffffff81000100 T next\nffffffffc0010000 t bpf_prog_1\t[bpf]\n",
    );
    let both = kernel_at(&[0xffff_ffff_8100_0010, 0xffff_ffff_c001_0004], &options).0;
    assert_eq!(both, ["second_name", "bpf_prog_1"]);
    // Hidden addresses are never cached.
    file("proc/sys/kernel/random/boot_id", &boot(3));
    file("kallsyms", "0000000000000000 T first_name\n0000000000000000 T next\n");
    assert_eq!(kernel(&options), (vec![String::new()], vec![Missing::KernelHidden]));
    file("kallsyms", "ffffffff81000000 T third_name\n");
    assert_eq!(kernel(&options).0, ["third_name"]);
}

//! Recordings: everything written is read again; damaged files are rejected with a position and a reason.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::Cursor;

use crate::support::{Dice, assert_equal, profile};
use plumb_formats::native::{self, ReadError};
use plumb_profile::*;

fn written(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    native::write(profile, Cursor::new(&mut bytes)).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    native::read(Cursor::new(bytes))
}

#[test]
fn any_profile_survives_writing_and_reading() {
    for seed in 0..40 {
        let original = profile(seed, (seed as usize * seed as usize) % 211);
        let back = read(&written(&original)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_equal(&original, &back);
    }
}

#[test]
fn an_empty_profile_survives() {
    let original = Profile::default();
    assert_equal(&original, &read(&written(&original)).unwrap());
}

#[test]
fn more_rows_than_a_page_or_a_step_survive() {
    let original = profile(7, 70_000);
    assert_equal(&original, &read(&written(&original)).unwrap());
}

#[test]
fn every_cut_off_recording_is_refused_with_its_size() {
    let bytes = written(&profile(1, 20));
    for length in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        let error = read(&bytes[..length]).unwrap_err();
        assert!(
            matches!(error, ReadError::NoDirectory { size, .. } if size == length as u64),
            "{length} of {} bytes: {error}",
            bytes.len()
        );
    }
}

#[test]
fn a_newer_format_is_refused_and_says_what_to_do() {
    let bytes = written(&profile(1, 3));
    let newer = edit_meta(&bytes, "\"major\": 1", "\"major\": 9");
    let error = read(&newer).unwrap_err();
    assert!(matches!(error, ReadError::Newer { found: (9, _), .. }));
    assert!(error.to_string().contains("please update plumb"), "{error}");
}

#[test]
fn a_newer_minor_version_and_unknown_facts_are_read() {
    let original = profile(1, 3);
    let newer = edit_meta(&written(&original), "\"minor\": ", "\"patch\": 3, \"minor\": 9");
    assert_equal(&original, &read(&newer).unwrap());
}

#[test]
fn another_kind_of_zip_is_refused() {
    let other = edit_meta(&written(&profile(1, 3)), "plumb recording", "shopping list");
    assert!(matches!(read(&other).unwrap_err(), ReadError::NotARecording { .. }));
}

/// The archive with `from` replaced in its `meta.json`.
fn edit_meta(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    rebuild(bytes, |name, content| match name {
        "meta.json" => {
            let meta = String::from_utf8(content).unwrap();
            assert!(meta.contains(from), "{from:?} is not in {meta}");
            meta.replace(from, to).into_bytes()
        }
        _ => content,
    })
}

/// Rebuilds the archive with every entry passed through `edit`, and correct checksums.
fn rebuild(bytes: &[u8], mut edit: impl FnMut(&str, Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let mut old = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut new = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for index in 0..old.len() {
        let mut entry = old.by_index(index).unwrap();
        let name = entry.name().unwrap().into_owned();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        let options =
            zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        new.start_file(&name, options).unwrap();
        std::io::Write::write_all(&mut new, &edit(&name, content)).unwrap();
    }
    new.finish().unwrap().into_inner()
}

/// Bytes changed on disk or in transfer: the archive's checksums or the tables' own checks detect it, or the change
/// has no effect. It must cause neither a panic nor a profile with invalid ids.
#[test]
fn damaged_recordings_never_panic() {
    let bytes = written(&profile(3, 30));
    let dice = &mut Dice(1);
    for _ in 0..500 {
        let mut damaged = bytes.clone();
        for _ in 0..=dice.below(3) {
            let at = dice.below(damaged.len());
            damaged[at] = dice.next() as u8;
        }
        if let Ok(profile) = read(&damaged) {
            walk(&profile);
        }
    }
}

/// As above, but with correct checksums, as an attacker would write them.
#[test]
fn hostile_recordings_never_panic() {
    let bytes = written(&profile(3, 30));
    let dice = &mut Dice(2);
    for _ in 0..500 {
        let target = dice.below(13);
        let mut number = 0;
        let hostile = rebuild(&bytes, |_, mut content| {
            if number == target {
                for _ in 0..=dice.below(4) {
                    let at = dice.below(content.len());
                    content[at] = dice.next() as u8;
                }
            }
            number += 1;
            content
        });
        if let Ok(profile) = read(&hostile) {
            walk(&profile);
        }
    }
}

/// Follows every id.
fn walk(profile: &Profile) {
    for (id, life) in profile.lives.iter() {
        let _ = (profile.strings.get(life.exe), profile.strings.get(life.comm));
        assert!(life.parent.is_none_or(|parent| parent < id));
        let _ = life.process.map(|process| &profile.processes[process]);
    }
    for sample in profile.samples.iter() {
        let thread = &profile.threads[sample.thread];
        let process = &profile.processes[thread.process];
        let _ = (profile.strings.get(thread.comm), profile.strings.get(process.exe));
        let _ = profile.strings.get(profile.events[sample.event].name);
        for frame in profile.frames_of(sample.stack) {
            let _ = profile.frames[frame].dso.map(|dso| profile.strings.get(profile.dsos[dso].path));
            for line in profile.symbols.of(frame) {
                let _ = profile.strings.get(profile.symbols.functions[line.function].name);
            }
        }
    }
}

/// Ten seconds of a recursive program in two threads: 9,900 samples with some 40,000 stack nodes, 900 frames, names and
/// lines. The required size is 0.2 MB.
#[test]
fn ten_seconds_of_recursion_stay_small() {
    let dice = &mut Dice(9);
    let mut profile = Profile::default();
    let text = profile.strings.add("recur");
    let dso = profile.dsos.add(Dso {
        path: text,
        build_id: BuildId::new(&[7; 20]),
        kind: DsoKind::File,
        addresses: AddressSpace::Svma,
    });
    let process = profile.processes.push(Process { pid: 70, ppid: 1, exe: text });
    let threads = [70, 71].map(|tid| profile.threads.push(Thread { process, tid, comm: text }));
    let event = profile.events.push(Event { name: text, unit: text });
    let frames: Vec<FrameId> =
        (0..900).map(|number| frame_with_lines(&mut profile, dso, number, dice)).collect();
    for number in 0..9_900 {
        // Few callers at each level, many leaves: the shape of a recursion.
        let mut stack = vec![frames[0]];
        for level in 0..6 + dice.below(12) {
            stack.push(frames[1 + level * 3 + dice.below(3) * dice.below(2)]);
        }
        stack.push(frames[100 + dice.below(800)]);
        stack.reverse();
        let stack = profile.add_stack(&stack);
        let time_ns = 1_911_000_000_000 + number * 500_500 + dice.next() % 200_000;
        let thread = threads[(number % 2) as usize];
        profile.samples.push(Sample {
            time_ns,
            thread,
            cpu: 0,
            event,
            stack,
            syscall: None,
            weight: 1_001_001,
        });
    }
    let size = written(&profile).len();
    assert!(profile.stacks.len() > 15_000, "{} nodes", profile.stacks.len());
    assert!(size < 200_000, "{size} bytes for {} nodes", profile.stacks.len());
}

fn frame_with_lines(profile: &mut Profile, dso: DsoId, number: u64, dice: &mut Dice) -> FrameId {
    let frame = profile.frames.add(Frame {
        kind: FrameKind::User,
        dso: Some(dso),
        address: Address(0x1000 + number * 37 + dice.next() % 30),
        is_return: number < 100,
        found: Found::Cfi,
    });
    let file = profile.strings.add(&format!("/usr/include/c++/12/bits/stl_{}.h", number % 40));
    let lines: Vec<Line> = (0..=dice.below(3))
        .map(|level| {
            let of = number / 4 + level as u64;
            let name = profile.strings.add(&format!("std::vector<int, std::allocator<int> >::part{of}"));
            let linkage_name = profile.strings.add(&format!("_ZNSt6vectorIiSaIiEE6part{of}Ev"));
            let function = Function {
                name,
                linkage_name,
                dso: Some(dso),
                start: None,
                source_file: file,
                start_line: 7,
            };
            let function = profile.symbols.functions.add(function);
            Line { function, file, line: dice.below(1500) as u32, inlined: level > 0 }
        })
        .collect();
    profile.symbols.set(frame, &lines);
    frame
}

/// A recording from before plumb recorded process lives (version 1.0 of the format): `ls` 12 times from a shell.
#[test]
fn a_recording_without_lives_is_read() {
    let profile = read(include_bytes!("../data/1.0.plumb")).unwrap();
    assert!(profile.lives.is_empty());
    assert_eq!(profile.meta.queued, None, "nobody looked");
    assert!(!profile.samples.is_empty());
    assert!(profile.threads.iter().any(|(_, thread)| profile.strings.get(thread.comm) == "ls"));
    walk(&profile);
}

#[test]
fn where_a_function_without_a_name_begins_is_kept() {
    let mut profile = Profile::default();
    let dso = Dso {
        path: profile.strings.add("/usr/bin/bash"),
        build_id: None,
        kind: DsoKind::File,
        addresses: AddressSpace::Svma,
    };
    let dso = Some(profile.dsos.add(dso));
    let frame =
        Frame { kind: FrameKind::User, dso, address: Address(0x1234), is_return: false, found: Found::Cfi };
    let frame = profile.frames.add(frame);
    let none = profile.strings.empty();
    let start = Some(Address(0x1200));
    let function = Function { name: none, linkage_name: none, dso, start, source_file: none, start_line: 0 };
    let function = profile.symbols.functions.add(function);
    profile.symbols.set(frame, &[Line { function, file: none, line: 0, inlined: false }]);
    let back = read(&written(&profile)).unwrap();
    assert_eq!((back.symbols.of(frame), back.symbols.nameless_start(frame)), (&[][..], start));
}

#[test]
fn a_life_that_an_exec_ended_ends_where_the_next_begins() {
    let mut profile = Profile::default();
    let lives = shell_loop(&mut profile, 3);
    let back = read(&written(&profile)).unwrap();
    assert_equal(&profile, &back);
    let ended = back.lives[lives[1]].end_ns;
    assert!(ended.is_some() && ended == back.lives[lives[2]].start_ns);
}

/// A shell runs a program 20,000 times, each living about half a millisecond. The required size is 4 bytes per life:
/// 8 per run of the program, which has two (before and after its exec).
#[test]
fn twenty_thousand_runs_stay_small() {
    let empty = written(&Profile::default()).len();
    let mut profile = Profile::default();
    let lives = shell_loop(&mut profile, 20_000);
    let size = written(&profile).len() - empty;
    assert_eq!(lives.len(), 40_001);
    assert!(size < 4 * lives.len(), "{size} bytes for {} lives", lives.len());
}

/// A shell that runs a program repeatedly.
fn shell_loop(profile: &mut Profile, runs: u32) -> Vec<LifeId> {
    let dice = &mut Dice(4);
    let [shell, program] = ["/bin/bash", "/usr/bin/dirname"].map(|path| profile.strings.add(path));
    let mut time = 1_911_000_000_000;
    let life = |pid, parent, exe, begin, end, start_ns| Life {
        pid,
        parent,
        exe,
        comm: exe,
        begin,
        end,
        start_ns: Some(start_ns),
        end_ns: None,
        cpu_ns: None,
        peak_rss_bytes: None,
        process: None,
    };
    let parent = profile.lives.push(life(1000, None, shell, Begin::Exec, LifeEnd::Running, time));
    let mut lives = vec![parent];
    for run in 0..runs {
        let mut later = |ns: usize| {
            time += (ns / 2 + dice.below(ns)) as u64 / 1000 * 1000;
            time
        };
        let (forked, execed, exited) = (later(200_000), later(150_000), later(350_000));
        let mut before = life(1001 + run, Some(parent), shell, Begin::Fork, LifeEnd::Exec, forked);
        before.end_ns = Some(execed);
        let mut after = life(1001 + run, Some(parent), program, Begin::Exec, LifeEnd::Exit, execed);
        after.end_ns = Some(exited);
        // Few are sampled.
        if dice.below(3) == 0 {
            after.process =
                Some(profile.processes.push(Process { pid: after.pid, ppid: 1000, exe: program }));
        }
        lives.extend([before, after].map(|life| profile.lives.push(life)));
    }
    lives
}

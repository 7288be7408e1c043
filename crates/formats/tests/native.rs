//! Recordings: what is written is read again; what is damaged is refused with a place and a reason.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod support;

use std::io::Cursor;

use plumb_formats::native::{self, ReadError};
use plumb_profile::Profile;
use support::{Dice, assert_equal, profile};

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
    assert!(matches!(error, ReadError::Newer { found: (9, 0), .. }));
    assert!(error.to_string().contains("please update plumb"), "{error}");
}

#[test]
fn a_newer_minor_version_and_unknown_facts_are_read() {
    let original = profile(1, 3);
    let newer = edit_meta(&written(&original), "\"minor\": 0", "\"minor\": 7, \"patch\": 3");
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
        "meta.json" => String::from_utf8(content).unwrap().replace(from, to).into_bytes(),
        _ => content,
    })
}

/// The archive with every entry passed through `edit`, checksums made right again.
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

/// Bytes changed on disk or on the way: the archive's checksums or the tables' own checks catch it, or the change
/// does not matter. What must not happen is a panic or a profile whose ids point nowhere.
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

/// As above, but with checksums made right: what someone who means harm would do.
#[test]
fn hostile_recordings_never_panic() {
    let bytes = written(&profile(3, 30));
    let dice = &mut Dice(2);
    for _ in 0..500 {
        let target = dice.below(12);
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

//! Memory use at the end of a long recording, according to the kernel: the only test in its file, because the figure is for the whole process.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::Cursor;

use plumb_formats::native::{self, Journal};
use plumb_profile::*;

/// Returns the peak memory of this process in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

const FRAMES: u64 = 600_000;

/// Many frames, each in a line of one of many functions.
fn profile() -> Profile {
    let mut profile = Profile::default();
    for address in 0..FRAMES {
        let (kind, found) = (FrameKind::User, Found::Cfi);
        let frame = Frame { kind, dso: None, address: Address(address), is_return: false, found };
        let frame = profile.frames.add(frame);
        let name = profile.strings.add(&format!("function_{}", address / 4));
        let source_file = profile.strings.empty();
        let function =
            Function { name, linkage_name: name, dso: None, start: None, source_file, start_line: 0 };
        let function = profile.symbols.functions.add(function);
        let line = Line { function, file: source_file, line: address as u32 % 1000, inlined: false };
        profile.symbols.set(frame, &[line]);
    }
    profile
}

#[test]
fn frames_and_names_are_written_some_at_a_time() {
    let profile = profile();
    let before = peak();
    let mut journal = Journal::begin(Cursor::new(Vec::new())).unwrap();
    // A part makes it a long recording; the rest is added afterwards.
    journal.part(&Profile::default(), &Meta::default()).unwrap();
    let mut out = Cursor::new(Vec::new());
    journal.finish(&profile, &mut out).unwrap();
    let in_groups = peak() - before;
    // Runs second, because the peak only grows.
    native::write(&profile, Cursor::new(Vec::new())).unwrap();
    let at_once = peak() - before;
    assert!(in_groups * 2 < at_once, "{in_groups} KiB in groups, {at_once} KiB at once");
    let read = native::read(Cursor::new(out.into_inner())).unwrap();
    assert!(read.frames.rows() == profile.frames.rows());
    assert!(read.strings.iter().eq(profile.strings.iter()));
    assert!(read.symbols.functions.rows() == profile.symbols.functions.rows());
    let lines = |profile: &Profile| {
        profile.frames.iter().flat_map(|(id, _)| profile.symbols.of(id).to_vec()).collect::<Vec<_>>()
    };
    assert!(lines(&read) == lines(&profile));
}

//! Memory use of a long recording, according to the kernel: the only test in its file, because the figure is for the whole process.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::Cursor;
use std::path::Path;

use plumb_formats::native::{self, Journal};
use plumb_profile::*;

/// Returns the peak memory of this process in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

fn file(name: &str) -> std::fs::File {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap()
}

/// Records many samples in many stacks, with a journal in which a part ends after `part` samples. Returns the file.
fn record(name: &str, part: usize) -> std::fs::File {
    let mut profile = Profile::default();
    let empty = profile.strings.empty();
    let event = profile.events.push(Event { name: empty, unit: empty });
    let process = profile.processes.push(Process { pid: 1, ppid: 0, exe: empty });
    let thread = profile.threads.push(Thread { process, tid: 1, comm: empty });
    let frames: Vec<FrameId> = (0..5000).map(|address| profile.frames.add(frame(address))).collect();
    let mut journal = Journal::begin(file(&format!("{name}.part"))).unwrap();
    for sample in 0..SAMPLES {
        let path = [sample % 97, sample % 991, sample % 4999, sample % 3001, sample / 128];
        let stack = profile.add_stack(&path.map(|number| frames[number % frames.len()]));
        let (time_ns, cpu, syscall, weight) = (sample as u64 * 1000, 0, None, 1);
        profile.samples.push(Sample { time_ns, thread, cpu, event, stack, syscall, weight });
        if profile.samples.len() == part {
            journal.part(&profile, &Meta::default()).unwrap();
            (profile.samples, profile.stacks) = (Samples::default(), Stacks::default());
        }
    }
    let mut out = file(name);
    journal.finish(&profile, &mut out).unwrap();
    out
}

fn frame(address: u64) -> Frame {
    let (kind, found) = (FrameKind::User, Found::Cfi);
    Frame { kind, dso: None, address: Address(address), is_return: false, found }
}

const SAMPLES: usize = 200_000;

#[test]
fn a_recorder_needs_memory_for_one_part() {
    let before = peak();
    let mut parts = record("parts.plumb", 10_000);
    let in_parts = peak() - before;
    // Runs second, because the peak only grows.
    record("whole.plumb", usize::MAX);
    let at_once = peak() - before;
    assert!(in_parts * 4 < at_once, "{in_parts} KiB in parts, {at_once} KiB at once");
    let mut bytes = Vec::new();
    std::io::Seek::rewind(&mut parts).unwrap();
    std::io::Read::read_to_end(&mut parts, &mut bytes).unwrap();
    let profile = native::read(Cursor::new(bytes)).unwrap();
    assert_eq!(profile.samples.iter().map(|sample| sample.weight).sum::<u64>(), SAMPLES as u64);
}

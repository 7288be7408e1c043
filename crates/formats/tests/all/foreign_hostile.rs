//! Truncated, modified or hostile foreign profiles: the result is an error or a profile with valid ids, never a panic, and memory
//! stays within what the bytes could mean.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::Read;

use crate::support::Dice;
use flate2::read::GzDecoder;
use plumb_fixtures::Made;
use plumb_formats::foreign::{self, ForeignError};
use plumb_formats::{firefox, folded, pprof, speedscope};
use plumb_profile::Profile;

/// One file in each format, decompressed.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let mut made = Made::new();
    for number in 0..40 {
        let who = format!("work er/7/{}", 7 + number % 3);
        let leaf =
            format!("_start@app;main:3+pick:{number}@app;send@libc.so;0x{number:x}@libc.so;tcp_send@k");
        made.sample(&who, &leaf, 1000 + number).sample(&who, "!;deep@app", number);
    }
    let profile = &made.profile;
    let mut packed = Vec::new();
    pprof::write(profile, &mut packed).unwrap();
    let mut pprof = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut pprof).unwrap();
    let (mut scope, mut fire, mut fold) = (Vec::new(), Vec::new(), Vec::new());
    speedscope::write(profile, &mut scope).unwrap();
    firefox::write(profile, &mut fire).unwrap();
    let options = folded::FoldedOptions { annotate: true, ..folded::FoldedOptions::default() };
    folded::write(profile, &options, &mut fold).unwrap();
    let script = "work er 7/8 [003] 4711.012345: 1001001 cpu-clock: \n\tffffffff81a0b0c0 tcp_send+0x10 ([kernel.kallsyms])\n\t 123 pick \
                  (inlined)\n\t 123 main(int) (/opt/app)\n  main.c:12\n\n"
        .repeat(20);
    vec![
        ("pprof", pprof),
        ("packed pprof", packed),
        ("speedscope", scope),
        ("firefox", fire),
        ("folded", fold),
        ("perf script", script.into_bytes()),
        ("jfr", include_bytes!("../data/async-profiler-4.0.jfr").to_vec()),
    ]
}

/// Follows every id.
fn follow(profile: &Profile) {
    for sample in profile.samples.iter() {
        let thread = &profile.threads[sample.thread];
        let process = &profile.processes[thread.process];
        let event = &profile.events[sample.event];
        let texts = [thread.comm, process.exe, event.name, event.unit];
        let _ = texts.map(|text| profile.strings.get(text));
        for frame in profile.frames_of(sample.stack) {
            let _ = profile.frames[frame].dso.map(|dso| profile.strings.get(profile.dsos[dso].path));
            for line in profile.symbols.of(frame) {
                let _ = profile.strings.get(profile.symbols.functions[line.function].name);
            }
        }
    }
}

#[test]
fn files_that_are_cut_off_end_in_an_error_or_a_part() {
    for (name, bytes) in files() {
        assert!(foreign::read(&bytes).is_ok(), "{name}");
        let step = (bytes.len() / 300).max(1);
        for length in (0..bytes.len()).step_by(step) {
            match foreign::read(&bytes[..length]) {
                Ok(profile) => follow(&profile),
                // Half a line of text may be valid; half a JSON object never is.
                Err(error) => assert!(!error.to_string().is_empty(), "{name}"),
            }
            let is_json = matches!(name, "speedscope" | "firefox");
            assert!(!is_json || foreign::read(&bytes[..length]).is_err(), "{name}: {length}");
        }
    }
}

#[test]
fn files_that_were_changed_never_panic() {
    let dice = &mut Dice(11);
    for (name, bytes) in files() {
        for _ in 0..400 {
            let mut changed = bytes.clone();
            for _ in 0..=dice.below(4) {
                let at = dice.below(changed.len());
                match dice.below(4) {
                    // Replaces a digit: numbers that refer to other rows are the core of these formats.
                    0 => {
                        let digits: Vec<usize> =
                            (at..changed.len()).filter(|&at| changed[at].is_ascii_digit()).take(1).collect();
                        digits.iter().for_each(|&at| changed[at] = b'0' + dice.below(10) as u8);
                    }
                    1 => changed[at] = dice.next() as u8,
                    2 => drop(changed.remove(at)),
                    _ => {
                        let end = (at + dice.below(40)).min(changed.len());
                        let part = changed[at..end].to_vec();
                        let to = dice.below(changed.len());
                        changed.splice(to..to, part);
                    }
                }
            }
            match foreign::read(&changed) {
                Ok(profile) => follow(&profile),
                Err(error) => assert!(!error.to_string().is_empty(), "{name}"),
            }
        }
    }
}

#[test]
fn nesting_and_depth_are_bounded() {
    let deep = "[".repeat(10_000_000);
    for text in [deep.clone(), format!(r#"{{"meta": {deep}"#), format!(r#"{{"profiles": {deep}"#)] {
        let error = foreign::read(text.as_bytes()).unwrap_err();
        assert!(matches!(error, ForeignError::Json { .. } | ForeignError::Unknown { .. }), "{error}");
    }
    // A stack as deep as its text is long, and calls inlined into each other without end.
    let profile = foreign::read(format!("{} 1\n", "f;".repeat(1_000_000)).as_bytes()).unwrap();
    assert_eq!(profile.frames_of(profile.samples.get(0).unwrap().stack).count(), 1_000_001);
    let profile = foreign::read(format!("f{} 1\n", ";f_[i]".repeat(100_000)).as_bytes()).unwrap();
    assert_eq!(profile.frames_of(profile.samples.get(0).unwrap().stack).count(), 1);
    let rows = 200_000;
    let numbers = |number: &str| vec![number; rows].join(",");
    let prefixes: Vec<String> =
        (0..rows).map(|row| row.checked_sub(1).map_or("null".into(), |row| row.to_string())).collect();
    let firefox = format!(
        r#"{{"meta": {{"preprocessedProfileVersion": 60}}, "shared": {{"stringArray": ["f"], "stackTable": {{"frame": [{}], "prefix": [{}]}},
        "frameTable": {{"func": [0], "inlineDepth": [1]}}, "funcTable": {{"name": [0]}}}},
        "threads": [{{"samples": {{"stack": [{}], "time": [1]}}}}]}}"#,
        numbers("0"),
        prefixes.join(","),
        rows - 1
    );
    let profile = foreign::read(firefox.as_bytes()).unwrap();
    assert!(profile.frames_of(profile.samples.get(0).unwrap().stack).count() >= rows / 64);
}

//! Short fuzzing in every test run: checks the properties in `fuzzed` on mutated sections of real files and on random
//! bytes.
//!
//! `PLUMB_FUZZ_SECONDS` sets the total time, with different bytes in every run. Without it, the tests take a few
//! seconds and always use the same bytes. The full fuzzing is in `fuzz/unwind`.

mod elf;
mod fuzzed;
mod gimli_rows;
mod reference;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plumb_fixtures::random::Random;
use plumb_fixtures::{Requirement, skip};

/// Prints the seed of a round that fails.
struct Round(&'static str, u64);

impl Drop for Round {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}: the round that began with {:#x} failed", self.0, self.1);
        }
    }
}

/// Changes random places to random or significant values.
fn mutate(bytes: &mut [u8], random: &mut Random) {
    for _ in 0..1 + random.below(60) {
        let at = random.below(bytes.len());
        let telling = [0, 0x0f, 0x10, 0x16, 0x0a, 0x0b, 0x7f, 0x80, 0xff];
        bytes[at] = match random.below(3) {
            0 => telling[random.below(telling.len())],
            1 => bytes[at].wrapping_add(1),
            _ => random.next() as u8,
        };
    }
}

/// Returns at most 16 KiB of a file's `.eh_frame`, so that changes hit bytes that are used.
fn seed_section(path: &str) -> Option<Vec<u8>> {
    let mut bytes = elf::sections(&std::fs::read(path).ok()?)?.eh_frame?.bytes;
    bytes.truncate(16 << 10);
    Some(bytes)
}

/// Repeats `round` for a share of the time. Prints the number of rounds and the duration of the slowest.
fn rounds(name: &'static str, shares: u64, mut round: impl FnMut(&mut Random)) {
    let asked: Option<u64> = std::env::var("PLUMB_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let time = Duration::from_millis(asked.unwrap_or(4) * 1000 / shares);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    let mut seeds = Random(if asked.is_some() { now | 1 } else { 0x1234_5678_9abc_def1 });
    let (began, mut count, mut slowest) = (Instant::now(), 0, Duration::ZERO);
    while began.elapsed() < time {
        let seed = seeds.next() | 1;
        let _named = Round(name, seed);
        let started = Instant::now();
        round(&mut Random(seed));
        slowest = slowest.max(started.elapsed());
        count += 1;
    }
    println!("{name}: {count} rounds, the slowest took {slowest:?}");
    // Each round checks its own amount of work; this only detects hangs, even on a busy machine.
    assert!(slowest < Duration::from_secs(300), "{name}: {slowest:?}");
}

#[test]
fn any_bytes() {
    const SHARES: u64 = 8;
    let paths = ["/bin/ls", "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
    let seeds: Vec<_> = paths.iter().filter_map(|path| seed_section(path)).collect();
    if seeds.is_empty() {
        skip(Requirement::Files, format_args!("none of {paths:?} is on this machine"));
    } else {
        rounds("changed sections", SHARES, |random| {
            // Start of the walk, its stack, and the sections: see `fuzzed::cfi`.
            let mut data = random.bytes(4 + 8 * 255);
            data.resize(4 + 8 * 255 + 64, 0);
            data.extend(&seeds[random.below(seeds.len())]);
            mutate(&mut data, random);
            fuzzed::cfi::run(&data);
        });
        rounds("tables of changed sections", SHARES, |random| {
            let seed = &seeds[random.below(seeds.len())];
            let mut data = match random.below(2) {
                0 => fuzzed::table_bytes::seeded(seed),
                _ => fuzzed::table_bytes::seeded_with_header(seed),
            };
            mutate(&mut data, random);
            // Sometimes treat the bytes as aarch64.
            data[0] |= 0x10 * u8::from(random.below(4) == 0);
            fuzzed::table_bytes::run(&data);
        });
    }
    let (mut walks, mut frames) = (0, 0);
    rounds("made programs", SHARES, |random| {
        frames += fuzzed::frames::run(&random.bytes(2000));
        walks += 4;
    });
    println!("{frames} frames in {walks} walks");
    assert!(frames > 2 * walks, "walks get somewhere: {frames} frames in {walks}");
    let (mut walks, mut frames) = (0, 0);
    rounds("made programs of aarch64", SHARES, |random| {
        frames += fuzzed::aarch64::run(&random.bytes(2000));
        walks += 4;
    });
    println!("{frames} frames in {walks} walks");
    assert!(frames > walks, "walks get somewhere: {frames} frames in {walks}");
    rounds("tables of ARM", SHARES, |random| fuzzed::exidx::run(&random.bytes(1000)));
    let seeds: [&[u8]; 2] = [include_bytes!("sections/v2.sframe"), include_bytes!("sections/v3.sframe")];
    rounds("changed sections of SFrame", SHARES, |random| {
        let mut data = seeds[random.below(2)].to_vec();
        mutate(&mut data, random);
        data.truncate(1 + random.below(data.len()));
        fuzzed::sframe::run(&data);
    });
    rounds("tables", SHARES, |random| fuzzed::table::run(&random.bytes(2000)));
    let (mut scans, mut scanned) = (0, 0);
    rounds("scans", SHARES, |random| {
        scanned += fuzzed::scan::run(&random.bytes(2000));
        scans += 2;
    });
    println!("{scanned} frames in {scans} scanned walks");
    assert!(4 * scanned > scans, "scans find something: {scanned} frames in {scans}");
}

/// Regression test for inputs on which fuzzing failed.
#[test]
fn inputs_that_failed() {
    fuzzed::table_bytes::run(include_bytes!("fuzzed/inputs/table_bytes_start"));
    fuzzed::table_bytes::run(include_bytes!("fuzzed/inputs/table_bytes_remembered"));
    fuzzed::table_bytes::run(include_bytes!("fuzzed/inputs/table_bytes_no_advance"));
    fuzzed::table_bytes::run(include_bytes!("fuzzed/inputs/table_bytes_no_operand"));
}

//! A library is unloaded and another one is mapped at its addresses: no frame belongs to the wrong one, and none is found by the wrong
//! table.

mod setup;

use std::process::Command;

use plumb_capture_bpf::LoadOptions;
use setup::{Folder, alone, command, is_complete, load, record, user_frames};

/// Number of loads of each library.
const ROUNDS: [usize; 3] = [40, 160, 640];

/// Addresses of a function, from nm.
fn function(file: &str, name: &str) -> std::ops::Range<u64> {
    let out = Command::new("nm").args(["-S", file]).output().expect("nm is there").stdout;
    let text = String::from_utf8(out).expect("nm writes text");
    let line =
        text.lines().find(|line| line.split(' ').next_back() == Some(name)).expect("the function is there");
    let numbers: Vec<u64> =
        line.split(' ').take(2).map(|word| u64::from_str_radix(word, 16).expect("a number")).collect();
    numbers[0]..numbers[0] + numbers[1]
}

#[test]
fn a_file_mapped_in_the_place_of_another_is_walked_by_its_own_table() {
    let _alone = alone();
    // Both ways of counting: with equal stacks counted under a key, the old file's must not be the new one's.
    for counting in [true, false] {
        // Stacks are copied until a file has its table, and the thread that makes tables may wait long for a CPU: then
        // the test repeats with more rounds, so that the time before the tables is a smaller share.
        let is_enough =
            ROUNDS.iter().any(|&rounds| walked_share(counting, rounds).is_none_or(|share| share >= 0.8));
        assert!(is_enough, "most are walked in the kernel");
    }
}

/// Records `rounds` rounds, and compares each stack with nm's addresses. Returns the share unwound in the kernel; `None` if that is not
/// available.
fn walked_share(counting: bool, rounds: usize) -> Option<f64> {
    let programs = load(LoadOptions { counting, ..LoadOptions::default() })?;
    let folder = Folder::new("mappings");
    let library = |name: &str, size: &str| folder.compile("loaded.c", name, &["-shared", "-fPIC", size]);
    let (first, second) = (library("first.so", "-DSIZE=64"), library("second.so", "-DSIZE=4096"));
    let program = folder.compile("loads.c", "loads", &["-no-pie", "-ldl"]);
    let out = folder.path("out");
    let script = format!("{program} {first} {second} {rounds} 10 > {out}");
    let recorded = record(programs, &command(&["sh", "-c", &script]), None);

    let places = std::fs::read_to_string(&out).expect("it wrote where libraries were");
    let places: Vec<&str> = places.lines().collect();
    assert_eq!(places.len(), 2 * rounds);
    assert!(places.iter().all(|place| *place == places[0]), "each was mapped where the other had been");

    let handed_over = recorded.handed_over.as_ref().expect("there was something to hand over");
    let profile = &recorded.profile;
    let (call_first, call_second) = (function(&program, "call_first"), function(&program, "call_second"));
    let mut seen = [0, 0];
    for sample in profile.samples.iter() {
        let frames = user_frames(profile, &sample);
        let is_in = |library: &str| frames.iter().any(|(path, _)| path == library);
        let called = |by: &std::ops::Range<u64>| {
            frames.iter().any(|(path, address)| *path == program && by.contains(address))
        };
        assert!(!(is_in(&first) && is_in(&second)), "{frames:x?}");
        let index = match (called(&call_first), called(&call_second)) {
            (true, false) => 0,
            (false, true) => 1,
            (true, true) => panic!("{frames:x?}"),
            // The loader's work, including a library's initialisation.
            (false, false) => continue,
        };
        // The caller may be sampled at an instruction of its own.
        if frames.first().is_some_and(|(path, _)| *path == program) {
            continue;
        }
        assert!(is_in([&first, &second][index]), "{index}: {frames:x?}");
        assert!(!is_in([&second, &first][index]), "{index}: {frames:x?}");
        assert!(is_complete(profile, &sample), "{index}: {frames:x?}");
        seen[index] += 1;
    }
    println!("{seen:?} of {}, {handed_over:?}", profile.samples.len());
    // 10 ms of each in each round, less the loader's time.
    let most = setup::rate(&recorded) / 100.0 * rounds as f64;
    assert!(seen.iter().all(|&seen| seen as f64 > 0.75 * most), "{seen:?} of {most}");
    Some(handed_over.walked as f64 / profile.samples.len() as f64)
}

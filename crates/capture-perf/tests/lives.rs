//! Records a program that forks and execs a known number of times in a known nesting, and holds the lives against it.
//!
//! Needs perf_event_open and a C compiler: where one is missing a test says so and does nothing.

#![allow(clippy::expect_used, reason = "a failed expectation is a failed test")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use plumb_capture_perf::{Recorder, SamplingOptions};
use plumb_fixtures::{Requirement, compiles, needs};
use plumb_profile::{Begin, Life, LifeEnd, LifeId, Profile};
use plumb_target::{Launch, Target};

fn recorded(program: &Path) -> Profile {
    let launch = Launch { program: program.into(), arguments: Vec::new(), environment: Vec::new() };
    let mut recorder =
        Recorder::start(&Target::Command(launch), &SamplingOptions::default()).expect("it can be recorded");
    while recorder.step(Duration::from_millis(100)).expect("recording goes on").is_none() {}
    recorder.finish().profile
}

/// The lives that `wanted` accepts, after checking that each has a beginning and an end in that order.
fn those(profile: &Profile, wanted: impl Fn(&Life) -> bool) -> Vec<LifeId> {
    let found: Vec<LifeId> =
        profile.lives.iter().filter(|(_, life)| wanted(life)).map(|(id, _)| id).collect();
    for &id in &found {
        let life = &profile.lives[id];
        assert!(life.start_ns.is_some() && life.start_ns <= life.end_ns, "{life:?}");
        assert!(life.end_ns.is_some_and(|end| end < profile.meta.start_ns + profile.meta.duration_ns));
    }
    found
}

#[test]
fn every_life_is_there_under_its_parent() {
    if !needs(Requirement::Perf) {
        return;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("family");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/family.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread", "-o"]).arg(&program).arg(source);
    if !compiles(&mut compiler) {
        return;
    }
    let profile = recorded(&program);
    let is = |life: &Life, name: &str| profile.strings.get(life.exe).rsplit('/').next() == Some(name);
    let how = |name: &'static str, begin, end, parents: &[LifeId]| {
        let parents = parents.to_vec();
        let is = &is;
        those(&profile, move |life| {
            is(life, name)
                && (life.begin, life.end) == (begin, end)
                && life.parent.map_or(parents.is_empty(), |parent| parents.contains(&parent))
        })
    };
    let main = how("family", Begin::Exec, LifeEnd::Exit, &[]);
    assert_eq!(main.len(), 1, "{:#?}", profile.lives.rows());
    let workers = how("family", Begin::Fork, LifeEnd::Exit, &main);
    assert_eq!(workers.len(), 5);
    assert_eq!(
        how("family", Begin::Fork, LifeEnd::Exec, &workers).len(),
        20,
        "before the workers' children exec"
    );
    let true_name = std::fs::canonicalize("/bin/true").expect("it is there");
    let true_name: &'static str =
        String::leak(true_name.file_name().expect("it has a name").to_string_lossy().into_owned());
    let of_workers = how(true_name, Begin::Exec, LifeEnd::Exit, &workers);
    assert_eq!(of_workers.len(), 20);
    assert_eq!(how("family", Begin::Fork, LifeEnd::Exit, &workers).len(), 10, "children that never exec");
    assert_eq!(how("family", Begin::Fork, LifeEnd::Exec, &main).len(), 4, "before the vforked children exec");
    assert_eq!(how(true_name, Begin::Exec, LifeEnd::Exit, &main).len(), 4);
    // The recorder's child is there before its exec if a sample hit it.
    let begun = profile.lives.rows().iter().filter(|life| life.start_ns.is_some()).count();
    assert_eq!(begun, 1 + 5 + 20 + 20 + 10 + 4 + 4, "and nobody else");
    assert_eq!(profile.strings.get(profile.lives[of_workers[0]].comm), "true");
    for id in of_workers {
        let life = &profile.lives[id];
        let before =
            profile.lives.rows().iter().find(|other| other.pid == life.pid && other.end == LifeEnd::Exec);
        assert_eq!(before.and_then(|before| before.end_ns), life.start_ns, "its exec ended the life before");
    }
    assert!(
        profile.lives[main[0]].peak_rss_bytes.is_some_and(|bytes| (64 << 20..80 << 20).contains(&bytes)),
        "it holds 64 MiB"
    );
}

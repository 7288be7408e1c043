//! Attribution of samples: processes that live for a millisecond, and processes that started before the recording.

mod setup;

use std::process::{Command, Stdio};
use std::time::Duration;

use plumb_capture_bpf::LoadOptions;
use plumb_capture_perf::Recorded;
use plumb_fixtures::{Requirement, copy_program, skip};
use plumb_profile::{Begin, LifeEnd, Profile, Sample};
use plumb_target::Target;
use setup::{Folder, alone, command, is_complete, load, record, user_frames};

fn executable(profile: &Profile, sample: &Sample) -> String {
    let process = &profile.processes[profile.threads[sample.thread].process];
    profile.strings.get(process.exe).to_owned()
}

/// Compares the CPU time of lifetimes with the kernel's accounting for all of them.
fn check_accounts(recorded: &Recorded, path: &str) {
    let profile = &recorded.profile;
    let lives = profile.lives.rows();
    let known = lives.iter().filter(|life| life.cpu_ns.is_some()).count();
    let unknown = lives.iter().filter(|life| life.cpu_ns.is_none());
    let mut kinds = std::collections::BTreeMap::<_, u64>::new();
    for life in unknown {
        *kinds.entry((life.begin.name(), life.end.name(), life.process.is_some())).or_default() += 1;
    }
    println!("without an account: {kinds:?}");
    assert!(known * 100 >= lives.len() * 98, "{known} of {}", lives.len());
    let sum: u64 = lives.iter().filter_map(|life| life.cpu_ns).sum();
    let all = recorded.target_cpu.expect("a command's time is known").total().as_nanos() as f64;
    println!("{} ms of {} ms in {known} lives", sum / 1_000_000, all / 1e6);
    // Lifetimes without a CPU time are not in the sum, nor is CPU time after the last reading: more of it if other processes evict
    // caches.
    let part = sum as f64 / all * lives.len() as f64 / known as f64;
    assert!((0.92..1.02).contains(&part), "{sum} of {all}");
    // The time restarts at exec: including the shell's moments before, it would exceed the total.
    let own = lives.iter().filter(|life| profile.strings.get(life.exe) == path && life.begin == Begin::Exec);
    assert!(
        own.filter_map(|life| life.cpu_ns).all(|ns| ns > 50_000),
        "none starts and exits in less than 50 us"
    );
}

/// Checks that every lifetime of the program at `path` is present, and that samples in its file are exactly the samples of its process.
fn check(recorded: &Recorded, path: &str, shell: &str, count: usize) {
    let profile = &recorded.profile;
    let of_program =
        |life: &&plumb_profile::Life| profile.strings.get(life.exe) == path && life.begin == Begin::Exec;
    let lives: Vec<_> = profile.lives.rows().iter().filter(of_program).collect();
    assert_eq!(lives.len(), count);
    assert!(lives.iter().all(|life| life.end == LifeEnd::Exit && life.start_ns < life.end_ns));
    let (mut own, mut elsewhere) = (0, Vec::new());
    for sample in profile.samples.iter() {
        let frames = user_frames(profile, &sample);
        let runs = executable(profile, &sample);
        let is_in = |file: &str| frames.iter().any(|(path, _)| path == file);
        own += usize::from(runs == path);
        // The program's code runs in the program's process, and the shell's never does.
        if is_in(path) && runs != path || is_in(shell) && runs == path {
            elsewhere.push((runs, frames));
        }
    }
    println!("{own} of {} samples, {:?}", profile.samples.len(), recorded.handed_over);
    assert!(elsewhere.is_empty(), "{} elsewhere: {:x?}", elsewhere.len(), elsewhere.first());
    assert!(own * 4 >= count, "each takes some 0.3 ms or more, most of it its own: {own}");
}

#[test]
fn every_dirname_is_dirnames() {
    let _alone = alone();
    let folder = Folder::new("processes");
    // Separate copies: these files have not been seen before, and no other process runs them.
    let copy = |name: &str, from: &str| {
        let to = folder.path(name);
        copy_program(from, &to);
        to
    };
    let (shell, dirname) = (copy("testsh", "/bin/sh"), copy("testdirname", "/usr/bin/dirname"));
    for counting in [true, false] {
        let Some(programs) = load(LoadOptions { counting, ..LoadOptions::default() }) else { return };
        let script = format!("i=0; while [ $i -lt 800 ]; do {dirname} /a/b >/dev/null; i=$((i+1)); done");
        let recorded = record(programs, &command(&[&shell, "-c", &script]), None);
        assert_eq!(recorded.statistics.lost_samples, 0);
        check(&recorded, &dirname, &shell, 800);
        check_accounts(&recorded, &dirname);
    }
}

#[test]
fn only_the_processes_that_were_named_are_sampled_with_their_children() {
    let _alone = alone();
    let Some(programs) = load(LoadOptions::default()) else { return };
    let folder = Folder::new("named");
    let burn = folder.burn();
    let other = folder.path("other");
    copy_program(&burn, &other);
    let start = |program: &str, arguments: [&str; 2]| {
        Command::new(program).args(arguments).stdout(Stdio::null()).spawn().expect("it starts")
    };
    // One burns in successive forked children, the other by itself.
    let mut named = start(&burn, ["1500", "30"]);
    let mut bystander = start(&other, ["6000", "0"]);
    let recorded = record(programs, &Target::Processes(vec![named.id()]), Some(Duration::from_secs(30)));
    bystander.kill().expect("it can be killed");
    bystander.wait().expect("it was killed");
    named.wait().expect("it has ended");

    let profile = &recorded.profile;
    let handed_over = recorded.handed_over.as_ref().expect("there was something to hand over");
    assert!(profile.samples.iter().all(|sample| executable(profile, &sample) == burn));
    assert!(handed_over.others > 100, "the other was left alone: {handed_over:?}");
    let used = recorded.target_cpu.expect("it is accounted").total().as_secs_f64() * setup::rate(&recorded);
    let samples = profile.samples.len() as f64;
    let chance = setup::chance(&recorded);
    let range = used * 0.95 - chance..used * 1.05 + chance + setup::stolen() * setup::rate(&recorded);
    assert!(range.contains(&samples), "{samples} of {used}");
    assert!(handed_over.walked as f64 >= samples * 0.9, "{handed_over:?} of {samples}");
}

#[test]
fn short_processes_of_a_file_that_only_they_see_are_read_through_their_parent() {
    let _alone = alone();
    let Some(programs) = load(LoadOptions::default()) else { return };
    let folder = Folder::new("mounted");
    let hidden = folder.path("hidden");
    std::fs::create_dir(&hidden).expect("a folder for a file system");
    let unshare = ["unshare", "--mount", "--propagation", "private"];
    let can =
        Command::new(unshare[0]).args(&unshare[1..]).args(["mount", "-t", "tmpfs", "none", &hidden]).status();
    if !can.is_ok_and(|status| status.success()) {
        skip(Requirement::Mount, "no file systems can be mounted here");
        return;
    }
    let script = format!(
        "mount -t tmpfs none {hidden} && cp /usr/bin/dirname {hidden}/own && i=0 && \\
         while [ $i -lt 600 ]; do {hidden}/own /a/b >/dev/null; i=$((i+1)); done"
    );
    let words: Vec<&str> = unshare.into_iter().chain(["sh", "-c", &script]).collect();
    let recorded = record(programs, &command(&words), None);
    let profile = &recorded.profile;
    let own = format!("{hidden}/own");
    let samples: Vec<_> =
        profile.samples.iter().filter(|sample| executable(profile, sample) == own).collect();
    let whole = samples.iter().filter(|sample| is_complete(profile, sample)).count();
    println!("{whole} of {} are complete", samples.len());
    assert!(samples.len() >= 150 && whole * 100 >= samples.len() * 98, "{:?}", recorded.statistics);
}

#[test]
fn short_processes_of_a_file_that_was_deleted_before_they_began_are_read_through_who_has_it_open() {
    let _alone = alone();
    let Some(programs) = load(LoadOptions::default()) else { return };
    let folder = Folder::new("deleted");
    let own = folder.path("own");
    copy_program("/usr/bin/dirname", &own);
    let script = format!(
        "exec 9<{own}; rm {own}; i=0; while [ $i -lt 600 ]; do /proc/self/fd/9 /a/b >/dev/null; i=$((i+1)); done"
    );
    let recorded = record(programs, &command(&["sh", "-c", &script]), None);
    let profile = &recorded.profile;
    let samples: Vec<_> =
        profile.samples.iter().filter(|sample| executable(profile, sample) == own).collect();
    let whole = samples.iter().filter(|sample| is_complete(profile, sample)).count();
    println!("{whole} of {} are complete", samples.len());
    assert!(samples.len() >= 150 && whole * 100 >= samples.len() * 98, "{:?}", recorded.statistics);
}

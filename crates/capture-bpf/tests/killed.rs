//! A recorder that is killed leaves no program, map or link behind; two recorders don't mind each other.

mod setup;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aya::maps::loaded_maps;
use aya::programs::{loaded_links, loaded_programs};
use plumb_capture_bpf::{Options, Programs};
use plumb_capture_perf::{Recorder, Target};
use setup::{alone, is_complete, load, record};

/// What the kernel has, by kind and number.
type Things = BTreeSet<(&'static str, u32)>;

/// What a process holds by its descriptors. A link is told by its program.
fn held_by(pid: u32) -> Things {
    let mut held = Things::new();
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return held };
    for file in files.flatten() {
        let text = fs::read_to_string(file.path()).unwrap_or_default();
        for kind in ["prog_id", "map_id", "link_id"] {
            let line = text.lines().find_map(|line| line.strip_prefix(kind)?.strip_prefix(":"));
            held.extend(line.and_then(|number| Some((kind, number.trim().parse().ok()?))));
        }
    }
    held
}

/// What is there, whoever holds it.
fn there() -> Things {
    let programs = loaded_programs().flatten().map(|one| ("prog_id", one.id()));
    let maps = loaded_maps().flatten().map(|one| ("map_id", one.id()));
    let links = loaded_links().flatten().map(|one| ("link_id", one.id()));
    programs.chain(maps).chain(links).collect()
}

/// Starts a recorder of the machine in a process of its own.
fn recorder() -> Child {
    Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--ignored", "--exact", "records_until_it_is_killed"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

#[test]
#[ignore = "only a part of the others: records the machine for a minute"]
fn records_until_it_is_killed() {
    let Some(programs) = load(Options::default()) else { return };
    let options = plumb_capture_perf::Options::default();
    let mut recorder = Recorder::start_with(&Target::Machine, &options, Some(Box::new(programs)))
        .expect("the machine can be recorded");
    while recorder.elapsed() < Duration::from_secs(60)
        && recorder.step(Duration::from_millis(50)).expect("recording goes on").is_none()
    {}
}

#[test]
fn a_killed_recorder_leaves_nothing_behind() {
    let _alone = alone();
    if load(Options::default()).is_none() {
        return;
    }
    let own = held_by(std::process::id());
    assert_eq!(own, Things::new(), "what was loaded to see whether it can be has gone");
    let mut seen = Things::new();
    // Moments all over the start, and some after it: it takes about 100 ms, in a debug build three times that.
    let moments = [1, 13, 29, 47, 61, 83, 109, 131, 163, 199, 241, 293, 359, 431, 521, 811, 1511];
    for moment in moments {
        let mut child = recorder();
        let until = Instant::now() + Duration::from_millis(moment);
        while Instant::now() < until {
            seen.extend(held_by(child.id()));
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("it runs");
        child.wait().expect("it was killed");
    }
    let kinds: BTreeSet<_> = seen.iter().map(|(kind, _)| *kind).collect();
    assert!(kinds.contains("prog_id") && kinds.contains("map_id") && kinds.contains("link_id"), "{seen:?}");
    // The kernel frees in its own time, but soon.
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let left: Things = seen.intersection(&there()).copied().collect();
        if left.is_empty() {
            println!("{} things came and went", seen.len());
            break;
        }
        assert!(Instant::now() < until, "left behind: {left:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let pinned = Path::new("/sys/fs/bpf");
    let pins = fs::read_dir(pinned).map_or(0, |entries| {
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().contains("plumb")).count()
    });
    assert_eq!(pins, 0, "nothing is pinned");
}

#[test]
fn two_recorders_see_the_same() {
    let _alone = alone();
    if load(Options::default()).is_none() {
        return;
    }
    let mut burn = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh is there");
    let pid = burn.id();
    let shares = std::thread::scope(|scope| {
        let recorders = [true, false].map(|counting| scope.spawn(move || share_of(pid, counting)));
        recorders.map(|recorder| recorder.join().expect("it recorded"))
    });
    burn.kill().expect("it runs");
    burn.wait().expect("it was killed");
    assert!((0.93..1.07).contains(&(shares[0] / shares[1])), "shares of a processor: {shares:?}");
}

/// Records the machine for two seconds, and returns how much of a processor a process had.
fn share_of(pid: u32, counting: bool) -> f64 {
    let programs = Programs::load(Options { counting, ..Options::default() }).expect("one could be loaded");
    let recorded = record(programs, &Target::Machine, Some(Duration::from_secs(2)));
    let profile = &recorded.profile;
    let is_its =
        |sample: &plumb_profile::Sample| profile.processes[profile.threads[sample.thread].process].pid == pid;
    let samples: Vec<_> = profile.samples.iter().filter(is_its).collect();
    let whole = samples.iter().filter(|sample| is_complete(profile, sample)).count();
    let all: u64 = samples.iter().map(|sample| sample.weight).sum();
    println!("{:?} {:?}", recorded.statistics, recorded.handed_over);
    assert_eq!(recorded.statistics.lost_samples, 0);
    assert!(samples.len() > 300 && whole * 100 >= samples.len() * 98, "{whole} of {}", samples.len());
    all as f64 / profile.meta.duration_ns as f64
}

//! A killed recorder leaves no program, map or link behind; two recorders don't affect each other.

mod setup;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aya::maps::loaded_maps;
use aya::programs::{loaded_links, loaded_programs};
use plumb_capture_bpf::{LoadOptions, Programs};
use plumb_capture_perf::Recorder;
use plumb_target::Target;
use setup::{alone, is_complete, load, record};

/// BPF objects, by kind and ID.
type Things = BTreeSet<(&'static str, u32)>;

/// The objects that a process holds by its descriptors. A link is identified by its program.
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

/// All existing objects, whoever holds them.
fn there() -> Things {
    let programs = loaded_programs().flatten().map(|one| ("prog_id", one.id()));
    let maps = loaded_maps().flatten().map(|one| ("map_id", one.id()));
    let links = loaded_links().flatten().map(|one| ("link_id", one.id()));
    programs.chain(maps).chain(links).collect()
}

/// Starts a recorder of the machine in a separate process.
fn recorder() -> Child {
    Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--ignored", "--exact", "records_until_it_is_killed"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

/// A process that is killed at the end of the test, however that ends.
struct Killed(Child);

impl Killed {
    fn now(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it was killed");
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "only a part of the others: records the machine for a minute"]
fn records_until_it_is_killed() {
    let Some(programs) = load(LoadOptions::default()) else { return };
    let options = plumb_capture_perf::SamplingOptions::default();
    let mut recorder = Recorder::start_beside(&Target::Machine, &options, Some(Box::new(programs)), None)
        .expect("the machine can be recorded");
    while recorder.elapsed() < Duration::from_secs(60)
        && recorder.step(Duration::from_millis(50)).expect("recording goes on").is_none()
    {}
}

#[test]
fn a_killed_recorder_leaves_nothing_behind() {
    let _alone = alone();
    if load(LoadOptions::default()).is_none() {
        return;
    }
    let own = held_by(std::process::id());
    assert_eq!(own, Things::new(), "what was loaded to see whether it can be has gone");
    let mut seen = Things::new();
    // Some are killed before or while they load; the others this many milliseconds afterwards.
    let early = [1, 17, 41, 73, 101, 149].map(|moment| (false, moment));
    let late = [0, 2, 5, 11, 23, 47, 97, 199, 401].map(|moment| (true, moment));
    for (is_late, moment) in early.into_iter().chain(late) {
        let mut child = Killed(recorder());
        let mut held = Things::new();
        let started = Instant::now();
        while is_late && held.is_empty() {
            held = held_by(child.0.id());
            assert!(started.elapsed() < Duration::from_secs(300), "it loads something");
        }
        let until = Instant::now() + Duration::from_millis(moment);
        while Instant::now() < until {
            seen.extend(held_by(child.0.id()));
            std::thread::sleep(Duration::from_millis(1));
        }
        seen.extend(held);
        child.now();
    }
    let kinds: BTreeSet<_> = seen.iter().map(|(kind, _)| *kind).collect();
    assert!(kinds.contains("prog_id") && kinds.contains("map_id") && kinds.contains("link_id"), "{seen:?}");
    // The kernel frees them asynchronously, but soon.
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
    if load(LoadOptions::default()).is_none() {
        return;
    }
    let burn = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh is there");
    let burn = Killed(burn);
    let pid = burn.0.id();
    let shares = std::thread::scope(|scope| {
        let recorders = [true, false].map(|counting| scope.spawn(move || share_of(pid, counting)));
        recorders.map(|recorder| recorder.join().expect("it recorded"))
    });
    let stolen = setup::stolen();
    for (sampled, used, chance) in shares {
        let range = used * 0.95 - chance..used * 1.05 + chance + stolen;
        assert!(range.contains(&sampled), "{sampled} s of {used}, give or take {chance}, {stolen} stolen");
    }
}

/// Records a process for two seconds. Returns the seconds sampled, the seconds used, and the statistical error of the former, in
/// seconds.
fn share_of(pid: u32, counting: bool) -> (f64, f64, f64) {
    let programs =
        Programs::load(LoadOptions { counting, ..LoadOptions::default() }).expect("one could be loaded");
    let recorded = record(programs, &Target::Processes(vec![pid]), Some(Duration::from_secs(2)));
    let profile = &recorded.profile;
    let samples = profile.samples.len();
    let whole = profile.samples.iter().filter(|sample| is_complete(profile, sample)).count();
    let handed_over = recorded.handed_over.as_ref().expect("there was something to hand over");
    assert_eq!(recorded.statistics.lost_samples, 0);
    assert!(whole * 100 >= samples * 98, "{whole} of {samples}");
    // On a busy machine a table may be late; other tests check the share of stacks unwound in the kernel.
    assert!(handed_over.walked as usize * 4 >= samples, "{handed_over:?} of {samples}");
    // The two recorders started at different times: the kernel's accounting shows whether each is complete.
    let used = recorded.target_cpu.expect("it is accounted").total().as_secs_f64();
    let seconds = profile.samples.iter().map(|sample| sample.weight).sum::<u64>() as f64 / 1e9;
    (seconds, used, setup::chance(&recorded) / setup::rate(&recorded))
}

//! Off-CPU time compared with a program's own measurements, by the functions in which it waited.

mod setup;

use std::ops::Range;
use std::process::Command;

use plumb_capture_bpf::{LoadOptions, OffCpu};
use plumb_capture_perf::Recorded;
use plumb_fixtures::{Requirement, skip};
use setup::{Folder, alone, command, load, record, stolen, user_frames};

/// Number of sleeps in each of two functions.
const TIMES: u64 = 800;
/// Number if some times represent the others.
const MANY_TIMES: u64 = 2400;
/// Busy time of each of two threads that share a CPU.
const BURNS_MS: u64 = 150;
/// As many stacks as there are times.
const ALL: OffCpu = OffCpu { min_ns: 0, stacks_per_second: 100_000, walks: true, looks_back: true };
/// Far fewer stacks than times.
const FEW: OffCpu = OffCpu { stacks_per_second: 100, ..ALL };

/// Address range of a function in its file.
fn place(path: &str, function: &str) -> Range<u64> {
    let output = Command::new("nm").args(["-S", path]).output().expect("nm is there");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.ends_with(&format!(" {function}"))).expect("it has a symbol");
    let mut numbers = line.split(' ').map(|word| u64::from_str_radix(word, 16));
    let (begin, size) = (numbers.next(), numbers.next());
    let begin = begin.expect("an address").expect("a number");
    begin..begin + size.expect("a size").expect("a number")
}

/// A recording of the program, and the program's own figures: time in the one function, in the other, in the run queue,
/// and in the run queue for others.
struct Measured {
    recorded: Recorded,
    program: String,
    truth: [u64; 4],
    // Directory of the program.
    _folder: Folder,
}

impl Measured {
    /// `None`: not available here.
    fn of(name: &str, off_cpu: OffCpu, counting: bool, times: u64) -> Option<Self> {
        let programs = load(LoadOptions {
            counting,
            measure: Some(plumb_capture_bpf::Measured::OffCpu(off_cpu)),
            ..LoadOptions::default()
        })?;
        let folder = Folder::new(name);
        let (program, file) = (folder.compile("waits.c", "waits", &[]), folder.path("truth"));
        let recorded =
            record(programs, &command(&[&program, &times.to_string(), &BURNS_MS.to_string(), &file]), None);
        let truth = std::fs::read_to_string(&file).expect("the program ended well");
        let truth: Vec<u64> = truth.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        let truth = truth.try_into().expect("four numbers");
        Some(Self { recorded, program, truth, _folder: folder })
    }

    /// The weights of an event's samples, restricted to a function if given.
    fn weights(&self, event: &str, function: Option<&str>) -> Vec<u64> {
        let profile = &self.recorded.profile;
        let place = function.map(|function| place(&self.program, function));
        let is_in = |sample: &plumb_profile::Sample| {
            let frames = user_frames(profile, sample);
            let is_there = |place: &Range<u64>| {
                frames.iter().any(|(path, address)| *path == self.program && place.contains(address))
            };
            profile.strings.get(profile.events[sample.event].name) == event
                && place.as_ref().is_none_or(is_there)
        };
        profile.samples.iter().filter(is_in).map(|sample| sample.weight).collect()
    }

    fn waited(&self) -> Vec<u64> {
        self.weights("run-queue", Some("contends"))
    }

    fn off(&self, function: Option<&str>) -> u64 {
        let times = ["off-cpu", "run-queue"].map(|event| self.weights(event, function));
        times.iter().flatten().sum()
    }

    /// Checks that the time by function equals the program's measurement within these fractions.
    fn check(&self, [short, long, waited]: [f64; 3]) {
        let [truth_short, truth_long, truth_waited, _] = self.truth;
        let stolen = stolen() * 1e9;
        let close = |what: &str, seen: u64, truth: u64, part: f64| {
            println!("{what}: {seen} of {truth} ns, give or take {part:.2}");
            assert!(
                seen.abs_diff(truth) as f64 <= truth as f64 * part + stolen,
                "{what}: {seen} of {truth} ns"
            );
        };
        // The program's clocks can't separate sleep from the run-queue wait after it, and exclude the tracing overhead of a switch,
        // which is a few percent of a short sleep.
        let short = short + 0.03;
        close("short sleeps", self.off(Some("sleeps_short")), truth_short, short);
        close("long sleeps", self.off(Some("sleeps_long")), truth_long, long);
        close("waited", self.waited().iter().sum(), truth_waited, waited);
        let blocked: u64 = self.weights("off-cpu", Some("contends")).iter().sum();
        assert!(blocked * 20 <= truth_waited, "they were never blocked");
        let unmeasured = self.recorded.unmeasured.expect("it was measured");
        assert_eq!((unmeasured.short, unmeasured.lost), (0, 0));
    }

    /// Checks that the sum of all off-CPU time is complete, with or without stacks.
    fn check_sum(&self) {
        let rest = self.recorded.unmeasured.expect("it was measured").rest_ns;
        let (sum, known) = (self.off(None) + rest, self.truth.iter().sum::<u64>());
        println!("{sum} of {known} ns");
        assert!(sum.abs_diff(known) * 20 <= known, "{sum} of {known}");
    }
}

#[test]
fn each_time_has_its_stack_where_they_are_few() {
    let _alone = alone();
    for (counting, looks_back, walks) in [
        (true, true, true),
        (false, true, true),
        (true, false, true),
        (true, true, false),
        (true, false, false),
    ] {
        println!("counting {counting}, looking back {looks_back}, walking {walks}");
        let off_cpu = OffCpu { walks, looks_back, ..ALL };
        let Some(measured) = Measured::of("all", off_cpu, counting, TIMES) else { return };
        measured.check([0.05; 3]);
        let samples = measured.weights("off-cpu", None).len() as u64;
        assert!(samples * 100 >= 2 * TIMES * 98, "{samples}");
        let complete = measured.recorded.statistics.complete;
        assert!(complete * 100 >= samples * 95, "{complete} of {samples}");
    }
}

#[test]
fn some_stand_for_the_others_where_they_are_many() {
    let _alone = alone();
    for (counting, walks) in [(true, true), (false, true), (true, false)] {
        println!("counting {counting}, walking {walks}");
        let off_cpu = OffCpu { walks, ..FEW };
        let Some(measured) = Measured::of("few", off_cpu, counting, MANY_TIMES) else { return };
        let [short, long] =
            ["sleeps_short", "sleeps_long"].map(|name| measured.weights("off-cpu", Some(name)));
        println!("{} and {} samples, {:?}", short.len(), long.len(), measured.recorded.handed_over);
        assert!(((short.len() + long.len()) as u64) < MANY_TIMES, "most stand for others");
        let [short, long, waited] = [short, long, measured.waited()].map(|weights| 4.0 * scatter(&weights));
        measured.check([short, long, waited.max(0.05)]);
        measured.check_sum();
    }
}

/// Relative standard deviation of a sum of samples of one kind, if they are a random selection: few samples with large weights
/// dominate. (Evenly spaced samples vary less.)
fn scatter(weights: &[u64]) -> f64 {
    let squares: f64 = weights.iter().map(|&weight| (weight as f64).powi(2)).sum();
    squares.sqrt() / weights.iter().sum::<u64>() as f64
}

/// Without looking back the sum is the same, but much of it has no stack.
#[test]
fn the_sum_closes_also_without_stacks() {
    let _alone = alone();
    let Some(measured) = Measured::of("sum", OffCpu { looks_back: false, ..FEW }, true, TIMES) else {
        return;
    };
    measured.check_sum();
    let [short, long, ..] = measured.truth;
    // The two sleeps last a millisecond on average, far more sleeps than requested stacks. On a busy machine each is followed by a run-queue wait,
    // and their number may drop to the number of stacks taken per CPU.
    let apart_ns = 1_000_000_000 / u64::from(FEW.stacks_per_second);
    if (short + long) / (2 * TIMES) > apart_ns / 4 {
        skip(
            Requirement::Machine,
            "which stack stands for which time, as this machine has too few processors for who runs",
        );
        return;
    }
    let with_stack = measured.off(Some("main"));
    assert!(
        with_stack < (short + long) * 9 / 10,
        "not all of it has a stack: {with_stack} of {short} and {long}"
    );
    let samples = measured.weights("off-cpu", None).len() as u64;
    assert!(samples < TIMES, "{samples}");
}

#[test]
fn what_is_too_short_is_summed_up() {
    let _alone = alone();
    let Some(measured) = Measured::of("short", OffCpu { min_ns: 1_000_000, ..ALL }, true, TIMES) else {
        return;
    };
    let unmeasured = measured.recorded.unmeasured.expect("it was measured");
    let [short, long, ..] = measured.truth;
    // On a busy machine some take long after all. None is shorter than 300 us: with this mean at most half can be longer than 1 ms.
    assert!(short / TIMES > 650_000 || unmeasured.short * 2 >= TIMES, "{unmeasured:?} {short}");
    let seen = measured.off(Some("sleeps_short"));
    assert!((seen + unmeasured.short_ns) * 100 >= short * 90, "{seen} {unmeasured:?} {short}");
    let seen = measured.off(Some("sleeps_long"));
    assert!(seen.abs_diff(long) <= long / 20, "{seen} of {long}");
}

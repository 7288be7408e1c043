//! Time off the processor: what a program measures of itself, by the functions in which it waited.

mod setup;

use std::ops::Range;
use std::process::Command;

use plumb_capture_bpf::{OffCpu, Options};
use plumb_capture_perf::Recorded;
use setup::{Folder, alone, command, load, record, stolen, user_frames};

/// How often the program sleeps in each of two functions.
const TIMES: u64 = 800;
/// How long each of two threads that share a processor is busy.
const BURNS_MS: u64 = 150;
/// As many stacks as there are times.
const ALL: OffCpu = OffCpu { min_ns: 0, stacks_per_second: 100_000, walks: true, looks_back: true };
/// Far fewer.
const FEW: OffCpu = OffCpu { stacks_per_second: 100, ..ALL };

/// Where a function is in its file.
fn place(path: &str, function: &str) -> Range<u64> {
    let output = Command::new("nm").args(["-S", path]).output().expect("nm is there");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.ends_with(&format!(" {function}"))).expect("it has a symbol");
    let mut numbers = line.split(' ').map(|word| u64::from_str_radix(word, 16));
    let (begin, size) = (numbers.next(), numbers.next());
    let begin = begin.expect("an address").expect("a number");
    begin..begin + size.expect("a size").expect("a number")
}

/// A recording of the program, and what it says of itself: time in the one function, in the other, without a processor,
/// and for others that were without one.
struct Measured {
    recorded: Recorded,
    program: String,
    truth: [u64; 4],
    // Has the program.
    _folder: Folder,
}

impl Measured {
    /// `None`: it can't be done here.
    fn of(name: &str, off_cpu: OffCpu, counting: bool) -> Option<Self> {
        let programs = load(Options { counting, off_cpu: Some(off_cpu), ..Options::default() })?;
        let folder = Folder::new(name);
        let (program, file) = (folder.compile("waits.c", "waits", &[]), folder.path("truth"));
        let recorded =
            record(programs, &command(&[&program, &TIMES.to_string(), &BURNS_MS.to_string(), &file]), None);
        let truth = std::fs::read_to_string(&file).expect("the program ended well");
        let truth: Vec<u64> = truth.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        let truth = truth.try_into().expect("four numbers");
        Some(Self { recorded, program, truth, _folder: folder })
    }

    /// The weight and number of samples of an event, in a function if that is said.
    fn weight(&self, event: &str, function: Option<&str>) -> (u64, usize) {
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
        let samples = profile.samples.iter().filter(is_in);
        samples.fold((0, 0), |(sum, count), sample| (sum + sample.weight, count + 1))
    }

    fn off(&self, function: Option<&str>) -> u64 {
        self.weight("off-cpu", function).0 + self.weight("run-queue", function).0
    }

    /// Time by function is what the program measured, give or take these parts of it.
    fn check(&self, [short, long, waited]: [f64; 3]) {
        let [truth_short, truth_long, truth_waited, _] = self.truth;
        let stolen = stolen() * 1e9;
        let close = |what: &str, seen: u64, truth: u64, part: f64| {
            println!("{what}: {seen} of {truth} ns");
            assert!(
                seen.abs_diff(truth) as f64 <= truth as f64 * part + stolen,
                "{what}: {seen} of {truth} ns"
            );
        };
        // By its own clocks the program can't tell being asleep from then waiting for a processor; what looking at a switch takes
        // is in neither of them, which of a short sleep is a few percent.
        let short = short + 0.03;
        close("short sleeps", self.off(Some("sleeps_short")), truth_short, short);
        close("long sleeps", self.off(Some("sleeps_long")), truth_long, long);
        close("waited", self.weight("run-queue", Some("contends")).0, truth_waited, waited);
        assert!(self.weight("off-cpu", Some("contends")).0 * 20 <= truth_waited, "they were never blocked");
        let unmeasured = self.recorded.unmeasured.expect("it was measured");
        assert_eq!((unmeasured.short, unmeasured.lost), (0, 0));
    }

    /// All time off is there, whatever its stack.
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
        let Some(measured) = Measured::of("all", OffCpu { walks, looks_back, ..ALL }, counting) else {
            return;
        };
        measured.check([0.05; 3]);
        let samples = measured.weight("off-cpu", None).1 as u64;
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
        let Some(measured) = Measured::of("few", OffCpu { walks, ..FEW }, counting) else { return };
        let (_, short) = measured.weight("off-cpu", Some("sleeps_short"));
        let (_, long) = measured.weight("off-cpu", Some("sleeps_long"));
        println!("{short} and {long} samples, {:?}", measured.recorded.handed_over);
        assert!(((short + long) as u64) < TIMES, "{short} + {long}");
        // Samples of one kind are scattered by the root of their number at most: here by four times that.
        let scatter = |count: usize| 4.0 / (count as f64).sqrt();
        let (_, waited) = measured.weight("run-queue", Some("contends"));
        measured.check([scatter(short), scatter(long), scatter(waited).max(0.05)]);
        measured.check_sum();
    }
}

/// Without a look back the sum is the same, but much of it has no stack.
#[test]
fn the_sum_closes_also_without_stacks() {
    let _alone = alone();
    let Some(measured) = Measured::of("sum", OffCpu { looks_back: false, ..FEW }, true) else { return };
    measured.check_sum();
    let [short, long, ..] = measured.truth;
    assert!(measured.off(Some("main")) < (short + long) * 9 / 10, "not all of it has a stack");
    let (_, samples) = measured.weight("off-cpu", None);
    assert!((samples as u64) < TIMES, "{samples}");
}

#[test]
fn what_is_too_short_is_summed_up() {
    let _alone = alone();
    let Some(measured) = Measured::of("short", OffCpu { min_ns: 1_000_000, ..ALL }, true) else { return };
    let unmeasured = measured.recorded.unmeasured.expect("it was measured");
    let [short, long, ..] = measured.truth;
    // On a busy machine some take long after all.
    assert!(unmeasured.short * 2 >= TIMES, "{unmeasured:?}");
    let seen = measured.off(Some("sleeps_short"));
    assert!((seen + unmeasured.short_ns) * 100 >= short * 90, "{seen} {unmeasured:?} {short}");
    let seen = measured.off(Some("sleeps_long"));
    assert!(seen.abs_diff(long) <= long / 20, "{seen} of {long}");
}

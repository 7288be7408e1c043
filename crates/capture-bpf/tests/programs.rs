//! The programs in a kernel that takes them, as root: they walk what runs, and leave nothing behind.

mod setup;

use plumb_capture_bpf::Options;
use plumb_capture_perf::Recorded;
use setup::{Folder, alone, command, load, record, record_at, stolen};

/// Nothing is missing, nearly all stacks are complete, and most were walked in the kernel.
fn check(recorded: &Recorded) {
    let statistics = &recorded.statistics;
    let handed_over = recorded.handed_over.as_ref().expect("there was something to hand over");
    let samples = recorded.profile.samples.len() as u64;
    assert_eq!(statistics.samples, samples, "counted samples are samples");
    let asked = recorded.target_cpu.expect("a command's time is known").total().as_secs_f64() * 999.0;
    let most = asked * 1.1 + stolen() * 999.0;
    assert!(
        (samples as f64) > asked * 0.9 && (samples as f64) < most,
        "{samples} of {asked}, at most {most}"
    );
    assert!(statistics.complete * 100 >= samples * 97, "{statistics:?}");
    assert!(handed_over.walked * 100 >= samples * 60, "{handed_over:?} of {samples}");
}

#[test]
fn a_command_is_walked_in_the_kernel_to_its_root() {
    let _alone = alone();
    let Some(programs) = load(Options::default()) else { return };
    let folder = Folder::new("command");
    check(&record(programs, &command(&[&folder.burn(), "1500"]), None));
}

#[test]
fn processes_of_a_millisecond_are_walked_too() {
    let _alone = alone();
    let Some(programs) = load(Options { counting: false, ..Options::default() }) else { return };
    let script = "i=0; while [ $i -lt 600 ]; do /usr/bin/dirname /a/b >/dev/null; i=$((i+1)); done";
    check(&record(programs, &command(&["sh", "-c", script]), None));
}

#[test]
fn nothing_is_dropped_at_five_thousand_samples_a_second_on_each_processor() {
    let _alone = alone();
    for counting in [true, false] {
        let Some(programs) = load(Options { counting, ..Options::default() }) else { return };
        let folder = Folder::new("often");
        let burn = folder.burn();
        let script = format!("{burn} 1500 & {burn} 1500 & wait");
        let options = plumb_capture_perf::Options { frequency_hz: 4999, ..Default::default() };
        let recorded = record_at(programs, &command(&["sh", "-c", &script]), None, options);
        let stolen = stolen() * 4999.0;
        let (statistics, samples) = (&recorded.statistics, recorded.profile.samples.len() as f64);
        let wanted = recorded.target_cpu.expect("a command's time is known").total().as_secs_f64() * 4999.0;
        assert_eq!((statistics.lost_samples, statistics.damaged_records), (0, 0));
        let range = wanted * 0.97..wanted * 1.03 + stolen;
        assert!(range.contains(&samples), "{samples} of {wanted}, {stolen} stolen");
    }
}

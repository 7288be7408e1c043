//! The programs in a kernel that supports them, as root: they walk the stacks of running programs, and leave nothing behind.

mod setup;

use std::time::Duration;

use plumb_capture_bpf::LoadOptions;
use plumb_capture_perf::Recorded;
use setup::{Folder, alone, command, load, rate, record, record_awake, stolen};

/// Time until root's ring of 16 MiB is full at five thousand samples a second, each with a stack copy of 16 KiB, as before tables are
/// loaded; halved, as the recorder also has to catch up after it was kept from its rings.
const RINGS_LAST: Duration = Duration::from_millis(100);

/// Checks that no sample is missing, nearly all stacks are complete, and most were walked in the kernel.
fn check(recorded: &Recorded) {
    let statistics = &recorded.statistics;
    let handed_over = recorded.handed_over.as_ref().expect("there was something to hand over");
    let samples = recorded.profile.samples.len() as u64;
    assert_eq!(statistics.samples, samples, "counted samples are samples");
    let hz = rate(recorded);
    let asked = recorded.target_cpu.expect("a command's time is known").total().as_secs_f64() * hz;
    let most = asked * 1.1 + stolen() * hz;
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
    let Some(programs) = load(LoadOptions::default()) else { return };
    let folder = Folder::new("command");
    check(&record(programs, &command(&[&folder.burn(), "1500"]), None));
}

#[test]
fn processes_of_a_millisecond_are_walked_too() {
    let _alone = alone();
    let Some(programs) = load(LoadOptions { counting: false, ..LoadOptions::default() }) else { return };
    let script = "i=0; while [ $i -lt 600 ]; do /usr/bin/dirname /a/b >/dev/null; i=$((i+1)); done";
    check(&record(programs, &command(&["sh", "-c", script]), None));
}

#[test]
fn nothing_is_dropped_at_five_thousand_samples_a_second_on_each_processor() {
    let _alone = alone();
    for counting in [true, false] {
        let Some(programs) = load(LoadOptions { counting, ..LoadOptions::default() }) else { return };
        let folder = Folder::new("often");
        let burn = folder.burn();
        let script = format!("{burn} 1500 & {burn} 1500 & wait");
        let options = plumb_capture_perf::SamplingOptions { frequency_hz: 4999, ..Default::default() };
        let target = command(&["sh", "-c", &script]);
        let (recorded, kept_away) = record_awake(programs, &target, None, options);
        let stolen = stolen() * rate(&recorded);
        let statistics = &recorded.statistics;
        let samples = (recorded.profile.samples.len() as u64 + statistics.lost_samples) as f64;
        let wanted =
            recorded.target_cpu.expect("a command's time is known").total().as_secs_f64() * rate(&recorded);
        assert_eq!(statistics.damaged_records, 0);
        println!("{} lost, kept away for {kept_away:?}", statistics.lost_samples);
        assert!(
            statistics.lost_samples == 0 || kept_away > RINGS_LAST,
            "{} lost, though it was kept from its rings for {kept_away:?} at most",
            statistics.lost_samples
        );
        let range = wanted * 0.97..wanted * 1.03 + stolen;
        assert!(range.contains(&samples), "{samples} of {wanted}, {stolen} stolen");
    }
}

//! The idle task in records: in no recording of this machine, and left alone in what another tool recorded.

use plumb_capture_api::FrameWord;

use super::tests::{Kernel, Made, comm, feed, sample};
use super::*;

/// No process has this pid: it is above the largest one.
const TARGET: u32 = 4_194_999;

/// The frames of a sample in the kernel.
const IN_KERNEL_FRAMES: [FrameWord; 1] = [FrameWord::new(u64::MAX - 0x10000)];

/// A program in the kernel, the idle task, and the program again.
fn records() -> [Made; 4] {
    let of = |pid| sample(&Kernel { pid, abi: 0, ip: 0, stack: None });
    [comm(TARGET, "program", 0), of(TARGET), of(0), of(TARGET)]
}

fn pids(profile: &Profile) -> Vec<u32> {
    let process = |sample: plumb_profile::Sample| profile.threads[sample.thread].process;
    profile.samples.iter().map(|sample| profile.processes[process(sample)].pid).collect()
}

#[test]
fn no_recording_of_this_machine_holds_the_idle_task() {
    for filter in [Filter::All, Filter::Tree(vec![TARGET])] {
        let mut ingest = Ingest::new(Source::Live, filter.clone());
        feed(&mut ingest, &records());
        let (profile, statistics) = ingest.finish();
        assert_eq!(pids(&profile), [TARGET; 2], "{filter:?}");
        assert_eq!((statistics.samples, statistics.filtered), (2, 1), "{filter:?}");
        assert!(profile.lives.iter().all(|(_, life)| life.pid != 0), "{filter:?}");
    }
}

#[test]
fn nor_does_one_whose_stacks_are_walked_in_the_kernel() {
    let mut ingest = Ingest::new(Source::Live, Filter::All);
    let event = ingest.add_event("cycles", "cycles");
    let walked = |pid| plumb_capture_api::WalkedSample {
        is_stack_only: false,
        time_ns: 1,
        cpu: 0,
        pid,
        tid: pid,
        event: 0,
        syscall: None,
        period: 1,
        key: 0,
        in_kernel: true,
        has_user: false,
        user: 0..0,
        kernel: 0..1,
        script: 0..0,
        script_is_cut: false,
    };
    let parts = || plumb_capture_api::Parts { user: &[], kernel: &IN_KERNEL_FRAMES, script: &[] };
    assert!(ingest.walked(event, &walked(0), parts()).is_none());
    assert!(ingest.walked(event, &walked(TARGET), parts()).is_some());
    assert_eq!(pids(&ingest.finish().0), [TARGET]);
}

#[test]
fn what_happens_on_a_machine_may_happen_in_the_idle_task() {
    let mut ingest = Ingest::new(Source::Live, Filter::All);
    let event = ingest.add_event("irq:softirq_entry", "");
    ingest.weights().keep_idle(event);
    let [name, program, idle, _] = records();
    for made in [name, program, idle] {
        made.feed_to(&mut ingest, event);
    }
    assert_eq!(pids(&ingest.finish().0), [TARGET, 0]);
}

#[test]
fn another_tools_recording_keeps_what_it_says() {
    let mut ingest = Ingest::new(Source::File, Filter::All);
    feed(&mut ingest, &records());
    assert_eq!(pids(&ingest.finish().0), [TARGET, 0, TARGET], "--no-idle leaves it out");
}

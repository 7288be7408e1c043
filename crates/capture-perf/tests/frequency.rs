//! Changes the sampling frequency while a program runs, and compares the weights of its samples with the kernel's accounting.
//!
//! Needs perf_event_open and a C compiler; without them, a test prints so and is skipped.

#![allow(clippy::expect_used, reason = "a failed expectation is a failed test")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use plumb_capture_perf::{Recorder, SamplingOptions};
use plumb_fixtures::host::stolen;
use plumb_fixtures::{Requirement, compiles, needs};
use plumb_target::{Launch, Target};

/// Samples per second of each stage.
const STAGES: [u32; 6] = [997, 97, 23, 11, 197, 499];

#[test]
fn each_sample_weighs_the_period_at_which_it_was_taken() {
    if !needs(Requirement::Perf) {
        return;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("burn-for-stages");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/burn.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-o"]).arg(&program).arg(source);
    if !compiles(&mut compiler) {
        return;
    }
    let launch = Launch { program: program.into(), arguments: vec!["4000".into()], environment: Vec::new() };
    let options = SamplingOptions { frequency_hz: STAGES[0], ..SamplingOptions::default() };
    let before = stolen();
    let mut recorder = Recorder::start(&Target::Command(launch), &options).expect("it can be recorded");
    let (mut stage, mut began) = (0, Instant::now());
    let mut used = Duration::ZERO;
    while recorder.step(Duration::from_millis(50)).expect("recording goes on").is_none() {
        let now = recorder.target_mut().cpu_time().map_or(used, |time| time.total());
        // Measured in the program's own CPU time: on a busy machine a stage is longer.
        let is_over = now - used >= Duration::from_millis(600) || began.elapsed() > Duration::from_secs(60);
        if stage + 1 < STAGES.len() && is_over {
            stage += 1;
            recorder.set_frequency(STAGES[stage]).expect("it can be changed");
            assert_eq!(recorder.setup().frequency_hz, STAGES[stage]);
            (began, used) = (Instant::now(), now);
        }
    }
    let recorded = recorder.finish();
    assert_eq!(stage, STAGES.len() - 1, "the program ran through all stages");
    let stolen = stolen() - before;
    let accounted = recorded.target_cpu.expect("the kernel accounts it").total().as_secs_f64();
    let weights: Vec<u64> = recorded.profile.samples.iter().map(|sample| sample.weight).collect();
    let sum = weights.iter().sum::<u64>() as f64 / 1e9;
    // Each change loses less than a period.
    let cut: f64 = STAGES.iter().map(|&hz| 1.0 / f64::from(hz)).sum();
    assert!(sum > 0.95 * accounted - cut && sum < 1.05 * accounted + cut + stolen, "{sum} of {accounted} s");
    for hz in STAGES {
        let period = 1_000_000_000 / u64::from(hz);
        assert!(weights.contains(&period), "no sample of {hz} a second");
    }
    assert_eq!(recorded.statistics.lost_samples, 0);
}

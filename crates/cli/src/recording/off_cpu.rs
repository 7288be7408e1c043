//! `--off-cpu`: loads the measurement, and summarizes its results.

use anyhow::{Result, anyhow};
use plumb_capture_api::{KernelUnwinder, Unmeasured};
use plumb_capture_bpf::{LoadOptions, Programs};
use plumb_profile::{Event, Profile};

use crate::exit;

/// Loads the programs that measure off-CPU time.
pub fn measure(options: LoadOptions) -> Result<Box<dyn KernelUnwinder>> {
    match Programs::load(options) {
        Ok(programs) => Ok(Box::new(programs)),
        Err(error) => Err(anyhow!(
            "cannot measure off-CPU time: {error}{}\
             \n  without:  plumb record -e context-switches, which counts them",
            exit::remedy(&error)
        )),
    }
}

/// Smallest total time that is reported.
const NOTABLE_NS: u64 = 1_000_000;

/// Whether an event is off-CPU time, by its name.
pub fn is_it(event: &str) -> bool {
    event == Event::OFF_CPU
}

/// Whether a recording has only off-CPU time.
pub fn is_off_cpu(profile: &Profile) -> bool {
    profile.events.rows().first().is_some_and(|event| is_it(profile.strings.get(event.name)))
}

/// The recorded times by event, in one line.
pub fn line(profile: &Profile) -> String {
    let seconds = |event: &str| {
        let is_it =
            |sample: &plumb_profile::Sample| profile.strings.get(profile.events[sample.event].name) == event;
        let (count, sum) = profile
            .samples
            .iter()
            .filter(is_it)
            .fold((0_u64, 0_u64), |(count, sum), sample| (count + 1, sum.saturating_add(sample.weight)));
        (count, sum as f64 / 1e9)
    };
    let ((blocks, blocked), (waits, waited)) = (seconds(Event::OFF_CPU), seconds(Event::RUN_QUEUE));
    let used = profile.meta.target_cpu_ns.map(|used| format!("on a processor {:.3} s, ", used as f64 / 1e9));
    format!(
        "{}off the processor {blocked:.3} s in {blocks} samples, run-queue wait {waited:.3} s in {waits}, {:.2} s recorded, {} lost",
        used.unwrap_or_default(),
        profile.meta.duration_ns as f64 / 1e9,
        profile.meta.lost_samples
    )
}

/// The times that are in no sample, as sentences for the recording.
pub fn left_out(unmeasured: &Unmeasured) -> Vec<String> {
    let mut texts = Vec::new();
    if unmeasured.short > 0 {
        texts.push(format!(
            "{} times off the processor, {:.3} s together, were below --min-block",
            unmeasured.short,
            unmeasured.short_ns as f64 / 1e9
        ));
    }
    if unmeasured.lost > 0 {
        texts.push(format!(
            "{} times off the processor, {:.3} s together, were lost because the buffer was full; to record fewer: --min-block 1ms",
            unmeasured.lost,
            unmeasured.lost_ns as f64 / 1e9
        ));
    }
    if unmeasured.rest_ns >= NOTABLE_NS {
        texts.push(format!(
            "times off the processor of {:.3} s together came after the last stack",
            unmeasured.rest_ns as f64 / 1e9
        ));
    }
    texts
}

//! What a recording is worth, on stderr at its end: samples, coverage, losses, complete stacks and why others are
//! not, what plumb itself cost, and what to type next.

use std::time::Duration;

use plumb_capture_perf::{Code, CpuTime, Setup};
use plumb_profile::Profile;

use super::causes::Stacks;
use super::live::percent;
use super::output::Written;

/// Causes that are named one by one.
const CAUSES: usize = 5;

/// Prints it.
pub(super) fn print(profile: &Profile, setup: &Setup, target: Option<CpuTime>, written: &Written) {
    for line in lines(profile, setup, target) {
        eprintln!("plumb: {line}");
    }
    eprintln!("plumb: {}", written.text());
}

fn lines(profile: &Profile, setup: &Setup, target: Option<CpuTime>) -> Vec<String> {
    let stacks = Stacks::of(profile);
    let mut lines = vec![samples(profile, setup, target, stacks.samples)];
    if stacks.samples > 0 {
        lines.extend(stack_lines(&stacks));
    }
    lines.extend(setup.limits.iter().cloned());
    lines.extend(own(profile, target));
    lines
}

fn samples(profile: &Profile, setup: &Setup, target: Option<CpuTime>, samples: u64) -> String {
    let mut text = format!("{samples} samples");
    if let Some(target) = target {
        // Only the code that is sampled can be covered.
        let (time, whose) = match setup.code {
            Code::All => (target.total(), "processor time"),
            Code::User => (target.user, "user time"),
            Code::Kernel => (target.system, "kernel time"),
        };
        let asked = time.as_secs_f64() * f64::from(setup.frequency_hz);
        text += &format!(" in {:.2} s of {whose}", time.as_secs_f64());
        if asked >= 1.0 {
            let share = samples as f64 / asked * 100.0;
            text += &format!(", coverage {share:.1}% at {} a second", setup.frequency_hz);
        }
    }
    text + &format!(", {} lost", profile.meta.lost_samples)
}

fn stack_lines(stacks: &Stacks) -> Vec<String> {
    let mut first = format!("{} of stacks complete", percent(stacks.complete, stacks.samples));
    if stacks.stitched > 0 {
        first += &format!(" ({} stitched from earlier samples)", percent(stacks.stitched, stacks.samples));
    }
    let unknown = stacks.samples - stacks.complete;
    if unknown > 0 {
        first += &format!(", {} cut:", percent(unknown, stacks.samples));
    }
    let mut lines = vec![first];
    for cause in stacks.causes.iter().take(CAUSES) {
        lines.push(format!("  {:>6}  {}", percent(cause.samples, stacks.samples), cause.text()));
        if !cause.remedy().is_empty() {
            lines.push(format!("          -> {}", cause.remedy()));
        }
    }
    let rest: u64 = stacks.causes.iter().skip(CAUSES).map(|cause| cause.samples).sum();
    if rest > 0 {
        lines.push(format!("  {:>6}  other causes: plumb doctor FILE", percent(rest, stacks.samples)));
    }
    lines
}

fn own(profile: &Profile, target: Option<CpuTime>) -> Option<String> {
    let own = Duration::from_nanos(profile.meta.recorder_cpu_ns?).as_secs_f64();
    let mut text = format!("plumb itself took {own:.2} s of processor time");
    let target = target.map_or(0.0, |target| target.total().as_secs_f64());
    if target > 0.0 {
        text += &format!(", {:.1}% of the target's", own / target * 100.0);
    }
    Some(text)
}

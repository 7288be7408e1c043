//! The summary of a recording in lines: samples, coverage, losses, truncated stacks with their causes, and plumb's own cost.
//!
//! Elsewhere: printing it (`cli`), the causes of truncated stacks (`stack-quality`).

mod unwinding;
mod waits;
mod why_none;

use std::cell::LazyCell;
use std::time::Duration;

use plumb_analyze::{Precision, is_off_cpu, part_of};
use plumb_capture_api::SamplingRate;
use plumb_capture_bpf::support_here;
use plumb_capture_perf::{Code, SampledEvent, Setup};
use plumb_process::usage::CpuTime;
use plumb_profile::{Event, Profile};
use plumb_stack_quality::{Completeness, StackCounts, Way, interpreted, nameless};

use crate::recording::Recording;

/// Smallest share of the samples that gets advice, in percent: nobody rebuilds a library for one sample of thousands.
const ADVISED: f64 = 1.0;
/// Most causes that are named individually.
const CAUSES: usize = 5;
/// Fewest samples for a meaningful coverage.
pub(super) const ENOUGH_SAMPLES: f64 = 20.0;
/// Minimum CPU time of the target, in seconds, for an overhead in percent.
const ENOUGH_SECONDS: f64 = 0.1;

impl Recording {
    /// The summary.
    pub fn summary(&self) -> Vec<String> {
        let Recording { profile, earlier, setup, target_cpu, recording_cpu, .. } = self;
        lines(profile, &earlier.and(profile), setup, *target_cpu, *recording_cpu)
    }

    /// The share of stacks that were unwound in the kernel. `None`: there were none, or a summary need not show it.
    pub fn unwinding_summary(&self) -> Option<String> {
        self.unwinding.as_ref().and_then(unwinding::line)
    }
}

fn lines(
    profile: &Profile,
    counts: &StackCounts,
    setup: &Setup,
    target: Option<CpuTime>,
    recording: Duration,
) -> Vec<String> {
    let stacks = counts.clone().stacks(profile);
    let mut lines = match is_off_cpu(profile) {
        true => vec![waits::line(profile)],
        false => {
            let line = |event: &SampledEvent| match event.counter.name() == Event::OFF_CPU {
                true => waits::line(profile),
                false => event_line(profile, counts.of_event(event.id), setup, event, target),
            };
            setup.events.iter().map(line).collect()
        }
    };
    lines.extend(lost_lines(profile.meta.lost_samples, stacks.samples, counts.by_kernel));
    if stacks.samples > 0 {
        lines.extend(stack_lines(&stacks));
    } else if setup.events.iter().all(|event| event.counter.trigger().is_some()) {
        let names: Vec<&str> = setup.events.iter().map(|event| event.counter.name()).collect();
        let names = names.join(" and ");
        lines.push(format!("no samples: {names} did not happen to the target while it was recorded"));
    } else {
        let is_little = || target.and_then(|target| why_none::is_little(target.total(), setup.frequency_hz));
        lines.extend(why_none::changes_user(profile).or_else(is_little));
    }
    lines.extend(nameless_line(profile));
    lines.extend(interpreted_lines(profile, counts.by_kernel));
    // Includes the limits of the setup.
    lines.extend(profile.meta.warnings.iter().cloned());
    lines.extend(own(profile, target, recording));
    lines
}

/// The share of lost samples and the remedy, if the share is at least [`ADVISED`].
fn lost_lines(lost: u64, samples: u64, by_kernel: bool) -> Vec<String> {
    let all = samples.saturating_add(lost);
    let remedy = match by_kernel {
        true => "record fewer: -F 200",
        false => "as root, --capture bpf needs less room for a sample; or record fewer: -F 200",
    };
    let Some(arrow) = arrow(remedy, (lost, all)).filter(|_| lost > 0) else { return Vec::new() };
    vec![format!("{} of samples were lost, as their buffers were full", part_of(lost, all)), arrow]
}

/// The line on an event.
fn event_line(
    profile: &Profile,
    (samples, weight): (u64, u64),
    setup: &Setup,
    event: &SampledEvent,
    target: Option<CpuTime>,
) -> String {
    let text = match event.counter.trigger() {
        None => clock(profile, event, target, samples),
        Some(_) => occurrences(profile, event, target, (samples, weight)),
    };
    match setup.events.last() {
        Some(last) if last.id == event.id => text + &format!(", {} lost", profile.meta.lost_samples),
        _ => text,
    }
}

fn clock(profile: &Profile, event: &SampledEvent, target: Option<CpuTime>, samples: u64) -> String {
    let mut text = samples_text(samples);
    if let Some(target) = target {
        // Only sampled code can be covered. The kernel splits time into user and system by its own tick,
        // so that the parts are less exact than the sum.
        let (time, whose, about) = match event.code {
            Code::All => (target.total(), "processor time", ""),
            Code::User => (target.user, "user time", "about "),
            Code::Kernel => (target.system, "kernel time", "about "),
        };
        let frequency_hz = profile.meta.frequency_hz.unwrap_or(0);
        let asked = time.as_secs_f64() * f64::from(frequency_hz);
        text += &format!(" in {:.2} s of {whose}", time.as_secs_f64());
        if asked >= ENOUGH_SAMPLES && matches!(event.pace, SamplingRate::Frequency(_)) {
            let share = samples as f64 / asked * 100.0;
            let share = Precision::of_samples(samples).min(Precision::TENTHS).percent(share);
            text += &format!(", coverage {about}{share} at {frequency_hz} a second");
        }
    }
    if let Some(idle) = profile.meta.idle_share() {
        text += &format!(", processors idle {:.1}% of the time", idle * 100.0);
    }
    text
}

/// The line on an event that is not a clock: the number of occurrences, and the number that samples represent.
fn occurrences(
    profile: &Profile,
    event: &SampledEvent,
    target: Option<CpuTime>,
    (samples, weight): (u64, u64),
) -> String {
    let mut text = format!("{} of {}", samples_text(samples), event.counter.name());
    if weight != samples {
        text += &format!(", standing for {weight}");
    }
    match profile.meta.occurrences_of(event.id) {
        Some(counted) if counted == weight && counted == samples => text += ", each one that happened",
        Some(counted) => text += &format!("; {counted} happened"),
        None => {}
    }
    if let Some(target) = target {
        text += &format!(" in {:.2} s of processor time", target.total().as_secs_f64());
    }
    text
}

/// The place with most samples in unnamed functions, with its remedy.
fn nameless_line(profile: &Profile) -> Option<String> {
    let (places, samples) = nameless(profile);
    let place = places.first()?;
    let remedy = Some(place.remedy(profile)).filter(|remedy| !remedy.is_empty());
    let remedy = remedy.map_or_else(String::new, |remedy| format!(": {remedy}"));
    let share = part_of(place.samples, samples);
    Some(format!("{share} of samples are in {}, without names{remedy}", place.place))
}

/// Languages whose interpreter is shown instead of their functions.
fn interpreted_lines(profile: &Profile, by_kernel: bool) -> Vec<String> {
    let refusal = LazyCell::new(|| support_here().err());
    let (languages, samples) = interpreted(profile, Way { by_kernel, refusal: &|| refusal.clone() });
    let mut lines = Vec::new();
    for found in languages.iter().take(CAUSES) {
        let (share, language) = (part_of(found.samples, samples), found.language);
        lines.push(format!("{share} of samples are in {language}: {}", found.shown()));
        lines.extend(arrow(&found.remedy, (found.samples, samples)));
    }
    lines
}

/// The line with a remedy, if there is one and it affects enough of the samples.
fn arrow(remedy: &str, (part, whole): (u64, u64)) -> Option<String> {
    (!remedy.is_empty() && part as f64 * 100.0 >= whole as f64 * ADVISED)
        .then(|| format!("          -> {remedy}"))
}

fn stack_lines(stacks: &Completeness) -> Vec<String> {
    let mut first = format!("{} of stacks complete", part_of(stacks.complete, stacks.samples));
    let limits = stacks.limits();
    if !limits.is_empty() {
        first += &format!(" ({})", limits.join(", "));
    }
    let unknown = stacks.samples - stacks.complete;
    if unknown > 0 {
        first += &format!(", {} cut:", part_of(unknown, stacks.samples));
    }
    let mut lines = vec![first];
    let mut causes = stacks.causes.iter().take(CAUSES).peekable();
    // Successive ones with the same remedy.
    let mut mended = 0;
    while let Some(cause) = causes.next() {
        mended += cause.samples;
        lines.push(format!("  {:>6}  {}", part_of(cause.samples, stacks.samples), cause.text()));
        let remedy = cause.remedy();
        if causes.peek().is_none_or(|next| next.remedy() != remedy) {
            lines.extend(arrow(remedy, (std::mem::take(&mut mended), stacks.samples)));
        }
    }
    let rest: u64 = stacks.causes.iter().skip(CAUSES).map(|cause| cause.samples).sum();
    if rest > 0 {
        lines.push(format!("  {:>6}  other causes: plumb doctor FILE", part_of(rest, stacks.samples)));
    }
    lines
}

fn own(profile: &Profile, target: Option<CpuTime>, recording: Duration) -> Option<String> {
    let own = Duration::from_nanos(profile.meta.recorder_cpu_ns?);
    let mut text = format!("overhead: {:.2} s of processor time", own.as_secs_f64());
    let target = target.map_or(0.0, |target| target.total().as_secs_f64());
    if target >= ENOUGH_SECONDS {
        let share = own.as_secs_f64() / target * 100.0;
        text += &format!(", {}% of the target's", significant(share));
    }
    text += &format!(": recording {:.2} s", recording.as_secs_f64());
    Some(text + &format!(", names {:.2} s", own.saturating_sub(recording).as_secs_f64()))
}

/// A number of samples.
fn samples_text(samples: u64) -> String {
    if samples == 1 { "1 sample".into() } else { format!("{samples} samples") }
}

/// A figure with two or three digits, as many as the clocks of a short run justify.
fn significant(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rare_has_no_advice() {
        assert_eq!(arrow("build libc again", (1, 8757)), None);
        assert!(arrow("build libc again", (88, 8757)).is_some());
        assert_eq!(arrow("", (8757, 8757)), None);
    }

    #[test]
    fn no_samples_are_explained_by_the_time_that_was_used() {
        let text = why_none::is_little(Duration::from_micros(400), 999).expect("that is less than a period");
        assert!(text.contains("every 1.0 ms") && text.contains("used 0.4 ms"), "{text}");
        assert_eq!(why_none::is_little(Duration::from_secs(1), 999), None, "so much time explains nothing");
    }
}

//! `--off-cpu`: what measures, what is shown of it, and stacks that begin with the reason.

use anyhow::{Result, anyhow};
use plumb_capture_api::{KernelUnwinder, Unmeasured};
use plumb_capture_bpf::{LoadOptions, Programs};
use plumb_profile::{FrameId, FrameKind, Profile, Samples, StackId};

use crate::exit;

/// The event of time that was slept or waited.
const BLOCKED: &str = "off-cpu";
/// The function of the kernel in which every switch happens. What it calls is what looks at the switch.
const SWITCH: &str = "__schedule";
/// So many frames may be inside of it.
const MAX_INSIDE: usize = 16;
/// Functions of the kernel that every stack of a switch ends in: who called them is the reason.
const SCHEDULER: [&str; 8] = [
    "__schedule",
    "schedule",
    "preempt_schedule",
    "preempt_schedule_common",
    "preempt_schedule_irq",
    "schedule_timeout",
    "schedule_hrtimeout_range",
    "schedule_hrtimeout_range_clock",
];

/// What measures time off the processor.
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

/// A sum of times that is worth a word.
const NOTABLE_NS: u64 = 1_000_000;

/// Whether a recording is of time off the processor.
pub fn is_off_cpu(profile: &Profile) -> bool {
    profile.events.rows().first().is_some_and(|event| profile.strings.get(event.name) == BLOCKED)
}

/// Takes the scheduler's own functions off the inner ends of stacks.
pub fn name_reasons(profile: &mut Profile) {
    let mut samples = Samples::default();
    for sample in profile.samples.iter() {
        let stack = sample.stack.map(|stack| without_scheduler(profile, stack));
        samples.push(plumb_profile::Sample { stack, ..sample });
    }
    profile.samples = samples;
}

fn without_scheduler(profile: &Profile, stack: StackId) -> StackId {
    let callers = std::iter::successors(Some(stack), |&stack| profile.stacks.node(stack).caller);
    let is_switch = |&stack: &StackId| is_one_of(profile, profile.stacks.node(stack).frame, &[SWITCH]);
    let mut stack = callers.take(MAX_INSIDE).filter(is_switch).last().unwrap_or(stack);
    // A stack that is nothing else stays as it is.
    while is_one_of(profile, profile.stacks.node(stack).frame, &SCHEDULER)
        && let Some(caller) = profile.stacks.node(stack).caller
    {
        stack = caller;
    }
    stack
}

fn is_one_of(profile: &Profile, frame: FrameId, names: &[&str]) -> bool {
    profile.frames[frame].kind == FrameKind::Kernel
        && profile.symbols.of(frame).last().is_some_and(|line| {
            let name = profile.symbols.functions[line.function].name;
            names.contains(&profile.strings.get(name))
        })
}

/// How much of which was recorded, in one line.
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
    let ((blocks, blocked), (waits, waited)) = (seconds(BLOCKED), seconds("run-queue"));
    let used = profile.meta.target_cpu_ns.map(|used| format!("on a processor {:.3} s, ", used as f64 / 1e9));
    format!(
        "{}off the processor {blocked:.3} s in {blocks} samples, run-queue wait {waited:.3} s in {waits}, {:.2} s recorded, {} lost",
        used.unwrap_or_default(),
        profile.meta.duration_ns as f64 / 1e9,
        profile.meta.lost_samples
    )
}

/// What is in none of the samples, as sentences for the recording.
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

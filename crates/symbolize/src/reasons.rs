//! Stacks of threads that went off the processor begin with the reason: what called the scheduler.
//!
//! Not here: how such stacks are recorded.

use plumb_profile::{FrameId, FrameKind, Profile, Samples, StackId};

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

/// Takes the scheduler's own functions off the inner ends of stacks, by their names: what called them is why a thread went off the processor.
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

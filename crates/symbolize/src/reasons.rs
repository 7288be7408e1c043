//! Trims off-CPU stacks so that they begin with the reason: the function that called the scheduler.
//!
//! Elsewhere: recording such stacks.

use plumb_profile::{FrameId, FrameKind, Profile, Samples, StackId};

/// The kernel function in which every context switch happens. Functions that it calls only observe the switch.
const SWITCH: &str = "__schedule";
/// Largest number of frames inside it.
const MAX_INSIDE: usize = 16;
/// Kernel functions at the inner end of every off-CPU stack: their caller is the reason.
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

/// Removes the scheduler's own functions from the inner ends of stacks, by name: their caller is why the thread went off-CPU.
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
    // A stack of nothing but these stays as it is.
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

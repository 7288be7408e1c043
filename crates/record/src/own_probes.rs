//! Removes plumb's own BPF programs from the target's stacks: they are not part of the target.
//!
//! Invariant: programs of other tools stay. Elsewhere: intervals in which the target is traced (`advice`).

use plumb_capture_bpf::PROGRAM_NAMES;
use plumb_profile::{Event, FrameId, Id, Profile, StackId};

/// Prefixes of the functions by which tracepoints call programs.
const CALLERS: [&str; 3] = ["bpf_trace_run", "__bpf_trace_", "__traceiter_"];

/// A part of a probe in a stack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Probe {
    /// The caller of a program that is not yet known.
    Caller,
    /// One of plumb's programs.
    Own,
    /// A program of another tool, or a function that a program calls.
    Other,
}

fn probe(profile: &Profile, frame: FrameId) -> Option<Probe> {
    let line = profile.symbols.of(frame).last()?;
    let name = profile.strings.get(profile.symbols.functions[line.function].name);
    // As the kernel names a program: `bpf_prog_0123456789abcdef_on_enter`.
    if let Some(rest) = name.strip_prefix("bpf_prog_") {
        let own = rest.split_once('_').is_some_and(|(_, function)| PROGRAM_NAMES.contains(&function));
        return Some(if own { Probe::Own } else { Probe::Other });
    }
    CALLERS.iter().any(|caller| name.starts_with(caller)).then_some(Probe::Caller)
}

/// State of a stack's examination.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// The stack outside of the first probe frame.
    outside: Option<StackId>,
    is_in_probe: bool,
    /// Whether the innermost program is one of plumb's. Functions that it calls belong to it.
    is_in_own: bool,
    is_foreign: bool,
}

/// Whether the samples of an event are of code that runs. The stacks of others, such as waits, are taken in a probe by design.
fn is_of_running_code(profile: &Profile, event: &Event) -> bool {
    let (name, unit) = (profile.strings.get(event.name), profile.strings.get(event.unit));
    ["ns", "cycles"].contains(&unit) && !Event::WAITS.contains(&name)
}

/// Attributes samples in plumb's own probes to the probed functions. Returns their number, without those of events for which a probe takes the
/// stacks.
pub fn leave_out(profile: &mut Profile) -> usize {
    let probes: Vec<Option<Probe>> = profile.frames.iter().map(|(id, _)| probe(profile, id)).collect();
    if !probes.contains(&Some(Probe::Own)) {
        return 0;
    }
    let mut stacks: Vec<Seen> = Vec::with_capacity(profile.stacks.len());
    for (_, node) in profile.stacks.iter() {
        // Callers precede their callees.
        let mut seen = node.caller.map_or_else(Seen::default, |caller| stacks[caller.index()]);
        if let Some(probe) = probes[node.frame.index()] {
            if !seen.is_in_probe {
                (seen.outside, seen.is_in_probe) = (node.caller, true);
            }
            match probe {
                Probe::Caller => seen.is_in_own = false,
                Probe::Own => seen.is_in_own = true,
                Probe::Other => seen.is_foreign |= !seen.is_in_own,
            }
        }
        stacks.push(seen);
    }
    let running: Vec<bool> =
        profile.events.rows().iter().map(|event| is_of_running_code(profile, event)).collect();
    let mut count = 0;
    for index in 0..profile.samples.len() {
        let Some(sample) = profile.samples.get(index) else { continue };
        let Some(seen) = sample.stack.map(|stack| stacks[stack.index()]) else { continue };
        if seen.is_in_probe && !seen.is_foreign && seen.outside.is_some() {
            profile.samples.set_stack(index, seen.outside);
            count += usize::from(running[sample.event.index()]);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use plumb_fixtures::Made;

    use super::*;

    /// The innermost function of each sample.
    fn innermost(profile: &Profile) -> Vec<&str> {
        let name = |frame: FrameId| {
            let line = profile.symbols.of(frame).last().expect("all have names");
            profile.strings.get(profile.symbols.functions[line.function].name)
        };
        let frames = |stack| profile.frames_of(stack).next().expect("there is a stack");
        profile.samples.iter().map(|sample| name(frames(sample.stack))).collect()
    }

    const TRACED: &str =
        "main@app;do_syscall_64@k;syscall_trace_enter@k;__traceiter_sys_enter@k;bpf_trace_run2@k";

    #[test]
    fn own_probes_are_no_work_of_the_target_and_those_of_others_stay() {
        let mut made = Made::new();
        for (program, inner) in
            [("on_enter", "bpf_lru_pop_free"), ("on_enter", "htab_map_hash"), ("trace_all", "x")]
        {
            made.sample("app/1", &format!("{TRACED};bpf_prog_0123456789abcdef_{program}@k;{inner}@k"), 10);
        }
        made.sample("app/1", TRACED, 10);
        made.sample("app/1", "main@app", 10);
        assert_eq!(leave_out(&mut made.profile), 3);
        let all = innermost(&made.profile);
        assert_eq!(all, ["syscall_trace_enter", "syscall_trace_enter", "x", "syscall_trace_enter", "main"]);
    }

    #[test]
    fn what_an_own_program_calls_is_own_and_what_another_calls_is_not() {
        let mut made = Made::new();
        let program = |name: &str| format!("bpf_prog_0123456789abcdef_{name}@k");
        for inner in [
            [program("on_function"), program("note_stack")].join(";"),
            [program("on_tracepoint"), "bpf_loop@k".into(), program("walk_step")].join(";"),
            [program("on_enter"), "x@k;bpf_trace_run1@k".into(), program("trace_all")].join(";"),
            [program("trace_all"), program("on_enter")].join(";"),
        ] {
            made.sample("app/1", &format!("{TRACED};{inner};y@k"), 10);
        }
        assert_eq!(leave_out(&mut made.profile), 2);
        assert_eq!(innermost(&made.profile), ["syscall_trace_enter", "syscall_trace_enter", "y", "y"]);
    }

    #[test]
    fn stacks_that_a_probe_takes_are_no_time_in_it() {
        let mut made = Made::new();
        made.event(Event::OFF_CPU, "ns");
        made.sample("app/1", &format!("{TRACED};bpf_prog_0123456789abcdef_on_switch@k"), 10);
        made.sample("app/1", &format!("{TRACED};bpf_prog_0123456789abcdef_on_enter@k"), 10);
        assert_eq!(leave_out(&mut made.profile), 0);
        assert_eq!(innermost(&made.profile)[1], "syscall_trace_enter");
    }

    #[test]
    fn where_plumb_has_no_program_nothing_is_touched() {
        let mut made = Made::new();
        made.sample("app/1", &format!("{TRACED};bpf_prog_0123456789abcdef_others@k"), 10);
        made.sample("app/1", TRACED, 10);
        assert_eq!(leave_out(&mut made.profile), 0);
        assert!(innermost(&made.profile)[1] == "bpf_trace_run2");
    }
}
